package leader

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tensile/wire"
)

// store is what two controllers share: keys with revisions, and the newest term that has fenced them.
type store struct {
	mu       sync.Mutex
	keys     map[string][]byte
	revision uint64 // of the leader's key
	term     int64
	requests func(user string, data []byte, reply func([]byte)) // who serves
}

// line is the connection of one controller to the store.
type line struct {
	wire.Bus // of which nothing else is used
	*store
	term    int64
	stopped chan struct{} // nil: it is not; what the process of this controller does waits until it is closed
	mu      sync.Mutex
}

// stop has all that the controller asks for from now on wait until it goes on, but for what it writes.
func (l *line) stop() (goOn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stopped := make(chan struct{})
	l.stopped = stopped
	return func() { close(stopped) }
}

func (l *line) wait(ctx context.Context) {
	l.mu.Lock()
	stopped := l.stopped
	l.mu.Unlock()
	if stopped != nil {
		select {
		case <-stopped:
		case <-ctx.Done():
		}
	}
}

func (l *line) Revision(ctx context.Context, key string) ([]byte, uint64, error) {
	l.wait(ctx)
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.store.revision == 0 {
		return nil, 0, wire.ErrNotFound
	}
	return l.keys[key], l.store.revision, nil
}

func (l *line) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	l.wait(ctx)
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if revision != l.store.revision {
		return 0, wire.ErrConflict
	}
	l.store.revision++
	l.keys[key] = value
	return l.store.revision, nil
}

func (l *line) Fence(_ context.Context, term int64) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if term < l.store.term {
		return wire.ErrDeposed
	}
	l.store.term, l.term = term, term
	return nil
}

func (l *line) Put(_ context.Context, key string, value []byte) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.term < l.store.term {
		return wire.ErrDeposed
	}
	l.keys[key] = value
	return nil
}

func (l *line) Remove(_ context.Context, _, name string) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	delete(l.keys, name)
	return nil
}

func (l *line) Serve(_ string, each func(string, []byte, func([]byte))) (func(), error) {
	l.requests = each
	return func() {}, nil
}

// lead is what a controller does while it leads: it says so, and waits.
type lead struct {
	as  wire.Leadership
	bus wire.Bus
	ctx context.Context
}

// enter has a controller take part until the test ends.
func enter(t *testing.T, l *line, id string) (leads chan lead, end func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	leads = make(chan lead)
	result := make(chan error, 1)
	go func() {
		result <- Run(ctx, l, Config{ID: id, Where: "host " + id, Lease: "lease"}, slog.New(slog.DiscardHandler),
			func(ctx context.Context, bus wire.Bus, as wire.Leadership) error {
				leads <- lead{as, bus, ctx}
				<-ctx.Done()
				return context.Cause(ctx)
			})
	}()
	return leads, func() error { cancel(); return <-result }
}

// A leader that is stopped, and goes on after another has taken its place, writes nothing more, also before it knows.
func TestStoppedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{keys: make(map[string][]byte)}
		a, b := &line{store: s}, &line{store: s}
		leadsA, endA := enter(t, a, "a")
		first := <-leadsA
		leadsB, endB := enter(t, b, "b")
		if err := first.bus.Put(t.Context(), "record.j", []byte("of a")); err != nil {
			t.Fatal(err)
		}
		goOn := a.stop()
		stopped := time.Now()
		second := <-leadsB
		if took := time.Since(stopped); took > 10*time.Second || second.as.Term != 2 || second.as.Lease != "lease" {
			t.Errorf("%+v leads after %v, want term 2 in less than 10 s", second.as, took)
		}
		if err := second.bus.Put(t.Context(), "record.j", []byte("of b")); err != nil {
			t.Fatal(err)
		}
		if err := first.bus.Remove(t.Context(), "", "record.j"); !errors.Is(err, errDoubt) {
			t.Errorf("who was stopped removes: %v", err)
		}
		if err := a.Put(t.Context(), "record.j", []byte("late")); !errors.Is(err, wire.ErrDeposed) {
			t.Errorf("what was on its way when another has taken over: %v", err)
		}
		goOn()
		<-first.ctx.Done()
		if !errors.Is(context.Cause(first.ctx), wire.ErrDeposed) {
			t.Errorf("the first term has ended with %v", context.Cause(first.ctx))
		}
		if err := first.bus.Put(t.Context(), "record.j", []byte("later")); !errors.Is(err, wire.ErrDeposed) {
			t.Errorf("who was deposed writes: %v", err)
		}
		if string(s.keys["record.j"]) != "of b" {
			t.Errorf("the record is %q", s.keys["record.j"])
		}
		if err := endB(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		resigned := time.Now()
		if third := <-leadsA; third.as.Term != 3 || time.Since(resigned) > 2*time.Second {
			t.Errorf("%+v leads %v after b has resigned", third.as, time.Since(resigned))
		}
		endA()
	})
}

// A leader whose write a stream refuses stands by, and answers no requests.
func TestRefusedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{keys: make(map[string][]byte)}
		a := &line{store: s}
		leads, end := enter(t, a, "a")
		first := <-leads
		served := 0
		if _, err := first.bus.Serve("control", func(_ string, _ []byte, reply func([]byte)) {
			served++
			reply(nil)
		}); err != nil {
			t.Fatal(err)
		}
		s.requests("", nil, func([]byte) {})
		s.mu.Lock()
		s.term = 7
		s.mu.Unlock()
		if err := first.bus.Put(t.Context(), "record.j", nil); !errors.Is(err, wire.ErrDeposed) {
			t.Errorf("a stream has refused it, and Put says %v", err)
		}
		s.requests("", nil, func([]byte) {})
		if served != 1 {
			t.Errorf("%d requests were answered, want the one before", served)
		}
		<-first.ctx.Done()
		end()
	})
}

// A leader that returns what a stream has told it, while Run waits for the store, stands by as well.
func TestLeaderReturnsRefused(t *testing.T) {
	for range 20 { // Run hears of both at once
		synctest.Test(t, func(t *testing.T) {
			s := &store{keys: make(map[string][]byte)}
			a := &line{store: s}
			ctx, cancel := context.WithCancel(t.Context())
			terms := 0
			err := Run(ctx, a, Config{ID: "a"}, slog.New(slog.DiscardHandler),
				func(ctx context.Context, bus wire.Bus, _ wire.Leadership) error {
					if terms++; terms == 2 {
						cancel()
						return context.Cause(ctx)
					}
					goOn := a.stop()
					time.AfterFunc(time.Minute, func() {
						goOn()
						time.Sleep(time.Second / 2)
						s.mu.Lock()
						defer s.mu.Unlock()
						s.keys[wire.LeaderKey] = wire.Encode(wire.Leadership{Term: 7})
						s.revision++
					})
					time.Sleep(2 * time.Second) // of the bubble, in which Run has begun to renew the key
					s.mu.Lock()
					s.term = 7
					s.mu.Unlock()
					return bus.Put(ctx, "record.j", nil)
				})
			if terms != 2 || !errors.Is(err, context.Canceled) {
				t.Fatalf("it led %d times, and Run returns %v", terms, err)
			}
		})
	}
}

// What a leader returns by itself ends it, and others lead at once.
func TestLeaderFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{keys: make(map[string][]byte)}
		failed := errors.New("it has failed")
		err := Run(t.Context(), &line{store: s}, Config{ID: "a"}, slog.New(slog.DiscardHandler),
			func(context.Context, wire.Bus, wire.Leadership) error { return failed })
		if !errors.Is(err, failed) {
			t.Errorf("Run returns %v", err)
		}
		holds, err := wire.DecodeAs[wire.Leadership](s.keys[wire.LeaderKey])
		if err != nil || holds.ID != "" || holds.Term != 1 {
			t.Errorf("the key has %+v, %v", holds, err)
		}
	})
}

// A leader that may have been deposed answers a request when it knows that it was not.
func TestDoubtfulLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{keys: make(map[string][]byte)}
		a := &line{store: s}
		leads, end := enter(t, a, "a")
		first := <-leads
		if _, err := first.bus.Serve("control", func(_ string, _ []byte, reply func([]byte)) {
			reply(nil)
		}); err != nil {
			t.Fatal(err)
		}
		goOn := a.stop()
		time.Sleep(time.Minute) // of the bubble
		answered := make(chan time.Time, 1)
		go s.requests("", nil, func([]byte) { answered <- time.Now() })
		synctest.Wait()
		if len(answered) > 0 {
			t.Error("a leader that has not been heard for a minute answers")
		}
		goOn()
		<-answered
		end()
	})
}
