package bus

import (
	"bytes"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tensile/internal/long"
	"tensile/wire"
)

// What an executor may send comes back with time, at its rate and up to its burst, and each has its own.
func TestAllowance(t *testing.T) {
	const kib = 1 << 10
	g := &gate{senders: make(map[string]*sender)}
	a := &allowance{kind: "report.", rate: 100 * kib, burst: 300 * kib, each: kib}
	now := time.Unix(0, 0)
	send := func(executor string) (sent int) {
		for g.spend(executor, a, 9*kib, now) {
			sent++
		}
		return sent
	}
	for _, step := range []struct {
		after    time.Duration
		executor string
		want     int
	}{{0, "a", 30}, {0, "a", 0}, {0, "b", 30}, {time.Second / 2, "a", 5}, {time.Second, "a", 10}, {time.Hour, "a", 30},
		{1e6 * time.Hour, "a", 30}, {-time.Hour, "a", 0}, {time.Hour, "c", 30}} {
		now = now.Add(step.after)
		if got := send(step.executor); got != step.want {
			t.Errorf("after %v executor %s sends %d messages, want %d", step.after, step.executor, got, step.want)
		}
	}
	// Past executors are forgotten, but none that may send less than its burst.
	for i := range 5000 {
		now = now.Add(time.Second)
		g.spend(fmt.Sprint("x", i), a, kib, now)
	}
	n, first, last := len(g.senders), g.senders["report.x0"], g.senders["report.x4999"]
	if n < 1024 || n > 3600+1024 || first != nil || last == nil {
		t.Errorf("of 5,000 executors in 5,000 seconds %d are remembered", n)
	}
}

// One executor that writes without end keeps its newest lines alone, and nobody else's go. What it may not send is
// refused, and it is told.
func TestLogsOfOneExecutor(t *testing.T) {
	long.Only(t)
	dir := t.TempDir()
	s := start(t, Options{Dir: dir, Listen: "127.0.0.1:0"})
	s.gate.mu.Lock()
	s.gate.bar = func(string) {} // it stays connected, to fill the log
	s.gate.mu.Unlock()
	ctx, c := within(t), rule(t, s)
	a, b := join(t, s, Executor("a")), join(t, s, Executor("b"))
	must(t, b.Append(ctx, "log.b.job", []byte("first")))
	line := bytes.Repeat([]byte("x"), maxLine)
	state := func() jetstream.StreamState {
		stream, err := jet(t, s).Stream(ctx, "LOG")
		must(t, err)
		return stream.CachedInfo().State
	}
	refused := 0
	for i := 0; state().LastSeq < 3*maxLogs/maxLine; i++ {
		subject := fmt.Sprintf("log.a.j%d", i%100) // of many logs: each alone keeps 10,000 lines
		for range 100 {                            // faster than it may
			must(t, a.nats.PublishMsg(&nats.Msg{Subject: subject, Data: line}))
		}
		if err := a.Append(ctx, subject, line); err != nil {
			if refused++; !strings.Contains(err.Error(), "executor a sends too much to log.*") {
				t.Fatal(err)
			}
		}
	}
	stored := state().Bytes
	for ; stored > maxLogs+maxLogs/4 && ctx.Err() == nil; stored = state().Bytes {
	}
	var disk int64
	must(t, filepath.WalkDir(filepath.Join(dir, "nats"), func(_ string, d fs.DirEntry, err error) error {
		if info, infoErr := d.Info(); err == nil && infoErr == nil {
			disk += info.Size()
		}
		return nil
	}))
	t.Logf("%d times it was refused; %d MiB are stored, and take %d MiB of the disk", refused, stored>>20, disk>>20)
	if refused == 0 || disk > 4*maxLogs {
		t.Errorf("it was refused %d times, and takes %d bytes of the disk", refused, disk)
	}
	got := newEvents()
	_, err := c.Follow(ctx, wire.LogSubject("*", "job"), got.each)
	must(t, err)
	got.want(t, "log.b.job=first")
	must(t, b.Append(ctx, "log.b.job", []byte("last")))
	got.want(t, "log.b.job=last")
}

// An executor that goes on sending what is refused is disconnected and let in no more for a while; others are not.
func TestBarred(t *testing.T) {
	s := listening(t)
	ctx := within(t)
	rule(t, s)
	a, b := join(t, s, Executor("a")), join(t, s, Executor("b"))
	data := make([]byte, wire.MaxMessage/2)
	to := s.Credentials(Executor("a"))
	if err := s.authenticator.keys.check(to.User, to.Password); err != nil {
		t.Fatal(err)
	}
	wantBarred(t, s, to.User, func() { _ = a.Publish(wire.ReportSubject("a", "job"), data) })
	must(t, b.Append(ctx, "log.b.job", []byte("line")))
}

// wantBarred has a user send until a server lets it in no more. Its connection may be lost before, for what the server
// has no room for, and comes back by itself.
func wantBarred(t *testing.T, s *Server, user string, send func()) {
	t.Helper()
	ctx := within(t)
	for ctx.Err() == nil {
		send() // while it can
		if _, err := s.authenticator.user(user); err != nil {
			if !strings.Contains(err.Error(), "goes on sending what is refused") {
				t.Error(err)
			}
			return
		}
	}
	t.Errorf("user %s is let in", user)
}

// A user who goes on sending requests is disconnected and let in no more for a while. The administrator is answered all
// the while.
func TestRequestsWithoutEnd(t *testing.T) {
	s := listening(t)
	ctx := within(t)
	_, err := rule(t, s).Serve(wire.ControlSubject, func(user string, _ []byte, reply func([]byte)) {
		reply([]byte("hello " + user))
	})
	must(t, err)
	admin, eve := join(t, s, Client), join(t, s, User("eve"))
	sent := 0
	wantBarred(t, s, User("eve"), func() {
		_ = eve.nats.PublishMsg(&nats.Msg{Subject: wire.ControlSubject, Reply: "_INBOX.eve"})
		if sent++; sent%5000 == 0 {
			if answer, err := admin.Ask(ctx, wire.ControlSubject, nil); err != nil || string(answer) != "hello " {
				t.Errorf("the administrator is answered %q: %v", answer, err)
			}
		}
	})
	if sent < 1000 {
		t.Errorf("eve is barred after %d requests", sent)
	}
}

// Whoever wants an answer to what nobody answers gets one at once: until then the server would remember it.
func TestReportsAreAnswered(t *testing.T) {
	s := listening(t)
	rule(t, s)
	a := join(t, s, Executor("a"))
	answer, err := a.nats.SubscribeSync("_INBOX.a")
	must(t, err)
	for _, subject := range []string{wire.ReportSubject("a", "job"), wire.TraceSubject("a", "job")} {
		must(t, a.nats.PublishMsg(&nats.Msg{Subject: subject, Reply: answer.Subject}))
		_, err = answer.NextMsgWithContext(within(t))
		must(t, err)
	}
}
