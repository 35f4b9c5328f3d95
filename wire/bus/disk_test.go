//go:build linux

package bus

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tensile/internal/needs"
	"tensile/wire"
)

// A server whose disk was full says so, and stores again when there is space, with the same connections.
func TestDiskFull(t *testing.T) {
	dir := needs.SmallDisk(t, 3<<20)
	var said atomic.Pointer[string]
	s := start(t, Options{Dir: dir, Listen: "127.0.0.1:0", Log: func(line string) {
		if strings.Contains(line, "disk is full") {
			said.Store(&line)
		}
		if strings.Contains(line, "no space left") {
			t.Errorf("the log has a line of nats-server about the disk: %s", line)
		}
	}})
	ctx := within(t)
	c, x := rule(t, s), join(t, s, Executor("a"))
	must(t, c.Put(ctx, "orders.a", []byte("1")))
	orders := newEvents()
	_, err := x.Watch(ctx, "orders.a", orders.each)
	must(t, err)
	orders.want(t, "orders.a=1")

	fill := filepath.Join(dir, "fill")
	f, err := os.Create(fill)
	must(t, err)
	for err = nil; err == nil; {
		_, err = f.Write(make([]byte, 1<<10))
	}
	must(t, f.Close())
	for s.Trouble() == "" {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		_ = x.Append(short, wire.LogSubject("a", "job"), make([]byte, 10<<10)) // until nothing fits any more
		cancel()
	}
	if want := "the controller's disk is full: free some space for " + dir; !strings.HasPrefix(s.Trouble(), want) {
		t.Errorf("the trouble is %q, want %q", s.Trouble(), want)
	}
	if line := said.Load(); line == nil || *line != s.Trouble() {
		t.Error("the log does not say so")
	}

	must(t, os.Remove(fill))
	for again := c.Put(ctx, "orders.a", []byte("2")); again != nil; again = c.Put(ctx, "orders.a", []byte("2")) {
		if ctx.Err() != nil {
			t.Fatalf("with space again: %v; trouble: %q", again, s.Trouble())
		}
	}
	orders.until(t, "orders.a=2")
	for again := x.Append(ctx, wire.LogSubject("a", "job"), []byte("x")); again != nil; again = x.Append(ctx,
		wire.LogSubject("a", "job"), []byte("x")) {
		if ctx.Err() != nil {
			t.Fatalf("with space again: %v; trouble: %q", again, s.Trouble())
		}
	}
	for s.Trouble() != "" { // until the server that stores again is known to do so
		if err := c.Put(ctx, "orders.a", []byte("3")); ctx.Err() != nil {
			t.Fatalf("there is still trouble: %s, %v", s.Trouble(), err)
		}
	}
}

// A store that has what it may have is told of, until there is room again.
func TestStoreFull(t *testing.T) {
	s := listening(t)
	ctx, c, a := within(t), rule(t, s), join(t, s, Executor("a"))
	results := streams[slices.IndexFunc(streams, func(c jetstream.StreamConfig) bool { return c.Name == "KV_result" })]
	results.MaxBytes = 10 << 20
	_, err := jet(t, s).UpdateStream(ctx, results)
	must(t, err)
	if full := s.full(); full != "" {
		t.Errorf("without a result: %s", full)
	}
	for i := 0; err == nil; i++ {
		if i > 20 {
			t.Fatal("the store takes more than it may have")
		}
		err = a.Put(ctx, fmt.Sprint("result.a.", i), make([]byte, 1<<20))
	}
	if full := s.full(); !strings.Contains(full, "store KV_result is full with") {
		t.Errorf("a full store: %q, after %v", full, err)
	}
	for s.Full() == "" {
		must(t, c.Put(ctx, "orders.a", []byte("x"))) // which has room
	}
	if trouble := s.Trouble(); trouble != "" {
		t.Errorf("where results have no room: %s", trouble)
	}
	for i := range 20 {
		must(t, c.Delete(ctx, fmt.Sprint("result.a.", i)))
	}
	if full := s.full(); full != "" || inStream(t, c, "KV_result") != 0 {
		t.Errorf("when all results are gone: %q, %d messages are left", full, inStream(t, c, "KV_result"))
	}
}
