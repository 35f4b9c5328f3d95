package bus

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

// start starts a server that ends with the test.
func start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Log == nil {
		o.Log = lines(t)
	}
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// listening starts a server on a port of this machine.
func listening(t testing.TB) *Server { return start(t, Options{Listen: "127.0.0.1:0"}) }

// lines returns a log function for a test, which is quiet once the test has ended.
func lines(t testing.TB) func(string) {
	var mu sync.Mutex
	ended := false
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
	})
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			t.Log(line)
		}
	}
}

// join connects a user over TCP until the test ends.
func join(t testing.TB, s *Server, user string) *Conn {
	t.Helper()
	return joinWith(t, s.Credentials(user), ConnOptions{Log: lines(t)})
}

func joinWith(t testing.TB, to Credentials, o ConnOptions) *Conn {
	t.Helper()
	c, err := Connect(within(t), to, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// rule connects the controller within the process until the test ends.
func rule(t testing.TB, s *Server) *Conn {
	t.Helper()
	c, err := s.Connect(within(t), ConnOptions{Log: lines(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// within is a context that ends before the test would be killed, so that there is time to say what did not come.
func within(t testing.TB) context.Context {
	end := time.Now().Add(10 * time.Minute) // of benchmarks, and of tests without a limit
	if test, ok := t.(*testing.T); ok {
		if limit, limited := test.Deadline(); limited {
			end = limit.Add(-10 * time.Second)
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), end)
	t.Cleanup(cancel)
	return ctx
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// event is what a callback was told.
type event struct {
	name  string
	value string
}

// events collects what callbacks are told.
type events chan event

func newEvents() events { return make(events, 10_000) }

func (e events) each(name string, value []byte) {
	if value == nil {
		e <- event{name, "deleted"}
		return
	}
	e <- event{name, string(value)}
}

// want waits for the events named as "name=value", in order.
func (e events) want(t testing.TB, want ...string) {
	t.Helper()
	var got []string
	for range want {
		select {
		case v := <-e:
			got = append(got, v.name+"="+v.value)
		case <-within(t).Done():
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// until waits for an event, whatever comes before.
func (e events) until(t testing.TB, want string) {
	t.Helper()
	for {
		select {
		case v := <-e:
			if v.name+"="+v.value == want {
				return
			}
		case <-within(t).Done():
			t.Fatalf("%s never came", want)
		}
	}
}

// none checks that nothing came.
func (e events) none(t testing.TB) {
	t.Helper()
	select {
	case v := <-e:
		t.Fatalf("got %v, want nothing", v)
	default:
	}
}
