package bus

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"tensile/wire"
)

func TestKeys(t *testing.T) {
	ctx, c := within(t), rule(t, start(t, Options{}))
	if _, err := c.Get(ctx, wire.RecordKey("a")); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("Get before Put: %v", err)
	}
	must(t, c.Delete(ctx, wire.RecordKey("a")))
	for _, value := range []string{"1", "", strings.Repeat("x", 1<<20), "2"} {
		must(t, c.Put(ctx, wire.RecordKey("a"), []byte(value)))
		got, err := c.Get(ctx, wire.RecordKey("a"))
		if err != nil || got == nil || string(got) != value {
			t.Errorf("Get = %d bytes, %v; want %d", len(got), err, len(value))
		}
	}
	must(t, c.Delete(ctx, wire.RecordKey("a")))
	if _, err := c.Get(ctx, wire.RecordKey("a")); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("Get after Delete: %v", err)
	}
	for _, key := range []string{wire.OrdersKey("a"), wire.StatusKey("a"), wire.RecordKey("b"), wire.DeviceKey("a"),
		wire.ResultKey("a", 1, 2)} {
		must(t, c.Put(ctx, key, []byte(key)))
		if got, err := c.Get(ctx, key); err != nil || string(got) != key {
			t.Errorf("Get %s = %q, %v", key, got, err)
		}
	}
	for _, key := range []string{"", "record", "record.", "others.a", wire.RecordKey("*"), "record.a b"} {
		if err := c.Put(ctx, key, nil); err == nil {
			t.Errorf("Put %q is no error", key)
		}
	}
	if err := c.Put(ctx, wire.RecordKey("a"), make([]byte, wire.MaxMessage+1)); err == nil ||
		!strings.Contains(err.Error(), "limit of 8388608") {
		t.Errorf("Put of too much: %v", err)
	}
}

func TestWatch(t *testing.T) {
	ctx, c := within(t), rule(t, start(t, Options{}))
	put := func(key, value string) { must(t, c.Put(ctx, key, []byte(value))) }
	put("status.a", "1")
	put("status.b", "1")
	put("status.gone", "1")
	must(t, c.Delete(ctx, "status.gone"))
	put("status.a", "2")
	put("record.a", "other")

	all, one := newEvents(), newEvents()
	stopAll, err := c.Watch(ctx, wire.StatusKey("*"), all.each)
	must(t, err)
	if len(all) != 2 {
		t.Errorf("%d values were reported when Watch returned, want 2", len(all))
	}
	all.want(t, "status.b=1", "status.a=2")
	stopOne, err := c.Watch(ctx, wire.StatusKey("a"), one.each)
	must(t, err)
	one.want(t, "status.a=2")

	put("status.b", "3")
	must(t, c.Delete(ctx, "status.a"))
	put("status.a", "4")
	put("status.a", "")
	all.want(t, "status.b=3", "status.a=deleted", "status.a=4", "status.a=")
	one.want(t, "status.a=deleted", "status.a=4", "status.a=")

	stopAll()
	put("status.a", "5")
	one.want(t, "status.a=5")
	all.none(t)
	stopOne()
	stopOne() // does nothing
}

// TestWatchWhilePutting has values come while watches start: each sees values in order, and the last one.
func TestWatchWhilePutting(t *testing.T) {
	s := listening(t)
	ctx, c := within(t), rule(t, s)
	watchers := make([]*Conn, 20)
	for i := range watchers {
		watchers[i] = join(t, s, Controller)
	}
	const end = 1 << 30
	var started, ended sync.WaitGroup
	for _, watcher := range watchers {
		started.Add(1)
		ended.Go(func() {
			defer started.Done()
			before, done := -1, make(chan bool)
			_, err := watcher.Watch(ctx, "status.*", func(_ string, value []byte) {
				var now int
				fmt.Sscan(string(value), &now)
				if now <= before {
					t.Errorf("%d after %d", now, before)
				}
				if before = now; now == end {
					close(done)
				}
			})
			if err != nil {
				t.Error(err)
				return
			}
			ended.Go(func() {
				select {
				case <-done:
				case <-ctx.Done():
					t.Error("the last value never came")
				}
			})
		})
	}
	all := make(chan bool)
	go func() {
		started.Wait()
		close(all)
	}()
	for i, going := 0, true; going; i++ {
		must(t, c.Put(ctx, "status.a", fmt.Append(nil, i)))
		select {
		case <-all:
			going = false
		default:
		}
	}
	must(t, c.Put(ctx, "status.a", fmt.Append(nil, end)))
	ended.Wait()
}

func TestObjects(t *testing.T) {
	ctx, c := within(t), rule(t, start(t, Options{}))
	bucket := wire.Bucket("e1")
	for _, size := range []int{0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 5*chunkBytes + 3} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i * 7 >> 3)
		}
		must(t, c.Store(ctx, bucket, "layout", data))
		must(t, c.Store(ctx, wire.Graphs, "layout", data[:size/2]))
		got, err := c.Load(ctx, bucket, "layout")
		if err != nil || !slices.Equal(got, data) {
			t.Errorf("Load of %d bytes: %d bytes, %v", size, len(got), err)
		}
	}
	if n := inStream(t, c, "OBJ_x-e1"); n != 1+6 {
		t.Errorf("%d messages are stored, want the info and 6 chunks of the last", n)
	}
	must(t, c.Store(ctx, bucket, "layout.2", []byte("2")))
	must(t, c.Remove(ctx, bucket, "layout"))
	must(t, c.Remove(ctx, bucket, "layout"))
	if _, err := c.Load(ctx, bucket, "layout"); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("Load after Remove: %v", err)
	}
	if got, err := c.Load(ctx, bucket, "layout.2"); string(got) != "2" {
		t.Errorf("Load of another: %q, %v", got, err)
	}
	if n := inStream(t, c, "OBJ_x-e1"); n != 2 {
		t.Errorf("%d messages are stored after one of two was removed, want 2", n)
	}
	must(t, c.Remove(ctx, bucket, ""))
	must(t, c.Remove(ctx, bucket, ""))
	must(t, c.Remove(ctx, bucket, "layout"))
	if _, err := c.Load(ctx, bucket, "layout.2"); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("Load after all was removed: %v", err)
	}
	if _, err := c.Load(ctx, wire.Graphs, "layout"); err != nil {
		t.Errorf("Load from another bucket: %v", err)
	}
	must(t, c.Store(ctx, bucket, "layout", []byte("again")))
	if got, err := c.Load(ctx, bucket, "layout"); string(got) != "again" {
		t.Errorf("Load from a bucket that is there again: %q, %v", got, err)
	}
	if err := c.Store(ctx, bucket, "x", make([]byte, maxObject+1)); err == nil {
		t.Error("Store of too much is no error")
	}
	if err := c.Store(ctx, bucket, "", nil); err == nil {
		t.Error("Store without a name is no error")
	}
	if err := c.Store(ctx, "x.y", "x", nil); err == nil {
		t.Error("Store in a bucket with a dot is no error")
	}
}

// inStream returns the number of messages in a stream.
func inStream(t *testing.T, c *Conn, stream string) uint64 {
	t.Helper()
	js, err := jetstream.New(c.nats)
	must(t, err)
	st, err := js.Stream(within(t), stream)
	must(t, err)
	return st.CachedInfo().State.Msgs
}

func TestAsk(t *testing.T) {
	s := listening(t)
	ctx, c, client := within(t), rule(t, s), join(t, s, Client)
	for _, asker := range []*Conn{c, client} {
		if _, err := asker.Ask(ctx, wire.ControlSubject, nil); !errors.Is(err, wire.ErrNobody) {
			t.Errorf("Ask when nobody serves: %v", err)
		}
	}
	stop, err := c.Serve(wire.ControlSubject,
		func(_ string, data []byte, reply func([]byte)) { reply(append([]byte("re: "), data...)) })
	must(t, err)
	for _, asker := range []*Conn{c, client} {
		got, err := asker.Ask(ctx, wire.ControlSubject, []byte("hello"))
		if err != nil || string(got) != "re: hello" {
			t.Errorf("Ask = %q, %v", got, err)
		}
	}
	stop()
	if _, err := client.Ask(ctx, wire.ControlSubject, nil); !errors.Is(err, wire.ErrNobody) {
		t.Errorf("Ask when nobody serves any more: %v", err)
	}
}

func TestEvents(t *testing.T) {
	s := listening(t)
	c, x := rule(t, s), join(t, s, Executor("e.1"))
	got := newEvents()
	stop, err := c.Subscribe(wire.ReportSubject("*", "*"), got.each)
	must(t, err)
	must(t, x.Publish(wire.ReportSubject("e.1", "job"), []byte("1")))
	must(t, x.Publish(wire.ReportSubject("e.1", "job"), []byte("2")))
	got.want(t, "report.e_2e1.job=1", "report.e_2e1.job=2")
	stop()
}

func TestLogs(t *testing.T) {
	s := listening(t)
	ctx, x, client := within(t), join(t, s, Executor("e1")), join(t, s, Client)
	add := func(job, line string) { must(t, x.Append(ctx, wire.LogSubject("e1", job), []byte(line))) }
	add("a", "1")
	add("b", "of b")
	add("a", "2")
	got := newEvents()
	stop, err := client.Follow(ctx, wire.LogSubject("*", "a"), func(_ string, line []byte) { got.each("a", line) })
	must(t, err)
	if len(got) != 2 {
		t.Errorf("%d lines were reported when Follow returned, want 2", len(got))
	}
	add("b", "of b")
	add("a", "3")
	add("a", "")
	add("a", strings.Repeat("x", maxLine+1))
	got.want(t, "a=1", "a=2", "a=3", "a=", "a="+strings.Repeat("x", maxLine))
	stop()
}

// TestLogKeepsNewest fills a log beyond its limit.
func TestLogKeepsNewest(t *testing.T) {
	if raceEnabled {
		t.Skip("20,000 messages take the race detector too long")
	}
	ctx, c := within(t), rule(t, start(t, Options{}))
	log := wire.LogSubject("e1", "a")
	for i := range maxLines + 10 {
		must(t, c.Publish(log, fmt.Append(nil, i)))
	}
	must(t, c.Append(ctx, log, []byte("end"))) // the others are stored then
	got := newEvents()
	n, first := 0, ""
	stop, err := c.Follow(ctx, log, func(_ string, line []byte) {
		if n++; n == 1 {
			first = string(line)
		}
	})
	must(t, err)
	stop()
	if n != maxLines || first != "11" {
		t.Errorf("%d lines from %q on, want %d from 11", n, first, maxLines)
	}
	got.none(t)
}

// TestSlowWatcher has more values come than a watcher keeps while its callback runs: it asks for what it has missed.
func TestSlowWatcher(t *testing.T) {
	ctx, c := within(t), rule(t, start(t, Options{}))
	const keys = 50
	got, blocked, going := newEvents(), make(chan bool), make(chan bool)
	first := true
	_, err := c.Watch(ctx, "status.*", func(key string, value []byte) {
		if first {
			first = false
			close(blocked)
			<-going
		}
		got.each(key, value)
	})
	must(t, err)
	c.mu.Lock()
	for e := range c.subscriptions {
		must(t, e.sub.SetPendingLimits(5, -1))
	}
	c.mu.Unlock()
	must(t, c.Put(ctx, "status.first", nil))
	<-blocked
	for i := range keys {
		must(t, c.Put(ctx, fmt.Sprintf("status.%d", i), []byte("x")))
	}
	close(going)
	missing := map[string]bool{}
	for i := range keys {
		missing[fmt.Sprintf("status.%d", i)] = true
	}
	for len(missing) > 0 {
		select {
		case v := <-got:
			delete(missing, v.name)
		case <-ctx.Done():
			t.Fatalf("never told of %d keys", len(missing))
		}
	}
}

// TestClose closes a connection while others are at work on it.
func TestClose(t *testing.T) {
	s := listening(t)
	c := join(t, s, Controller)
	ctx := within(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				if err := c.Put(ctx, "status.a", []byte("x")); err != nil {
					if !errors.Is(err, wire.ErrAway) {
						t.Errorf("Put on a closed connection: %v", err)
					}
					return
				}
			}
		})
	}
	seen := make(chan bool, 1)
	if _, err := c.Watch(ctx, "status.*", func(string, []byte) {
		select {
		case seen <- true:
		default:
		}
	}); err != nil {
		t.Fatal(err)
	}
	<-seen
	must(t, c.Close())
	group.Wait()
	if _, err := c.Watch(ctx, "status.*", nil); !errors.Is(err, wire.ErrAway) {
		t.Errorf("Watch on a closed connection: %v", err)
	}
	if c.Connected() {
		t.Error("a closed connection is connected")
	}
}
