package agent_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"tensile/wire"
)

// memory is a bus within a test: what is on it can be looked at, and waited for.
type memory struct {
	mu      sync.Mutex
	changed sync.Cond
	away    bool
	slow    chan struct{} // closed when it is not
	late    atomic.Int64  // values that were given up for that
	keys    map[string][]byte
	objects map[string][]byte
	each    func(key string, value []byte) // of the watched key
	watched string
	stopped bool
	status  wire.Status // the newest
	reports []wire.Report
	last    int // with so many reports the connection is lost; 0: never
	lines   []string
}

func newMemory() *memory {
	b := &memory{keys: map[string][]byte{}, objects: map[string][]byte{}, slow: make(chan struct{})}
	close(b.slow)
	b.changed.L = &b.mu
	return b
}

func (b *memory) do(f func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.changed.Broadcast()
	if b.away {
		return wire.ErrAway
	}
	return f()
}

func (b *memory) Put(ctx context.Context, key string, value []byte) error {
	b.mu.Lock()
	slow := b.slow
	b.mu.Unlock()
	select {
	case <-slow:
	case <-ctx.Done():
		b.late.Add(1)
		return context.Cause(ctx)
	}
	return b.do(func() error {
		b.keys[key] = value
		if key != wire.StatusKey(executorName) {
			return nil
		}
		s, err := wire.DecodeAs[wire.Status](value)
		if err != nil {
			return err
		}
		for i := range s.Jobs {
			j := &s.Jobs[i]
			if j.Result != nil && j.Result.Stored != "" {
				whole, err := wire.DecodeAs[wire.Result](b.keys[j.Result.Stored])
				if err != nil {
					return err
				}
				j.Result = &whole
			}
		}
		b.status = s
		return nil
	})
}

func (b *memory) Watch(_ context.Context, pattern string, each func(key string, value []byte)) (func(), error) {
	return func() { b.do(func() error { b.stopped = true; return nil }) }, b.do(func() error {
		b.watched, b.each = pattern, each
		return nil
	})
}

func (b *memory) Load(_ context.Context, bucket, name string) (data []byte, err error) {
	err = b.do(func() error {
		var ok bool
		if data, ok = b.objects[bucket+"/"+name]; !ok {
			return wire.ErrNotFound
		}
		return nil
	})
	return data, err
}

func (b *memory) Publish(subject string, data []byte) error {
	return b.do(func() error {
		r, err := wire.DecodeAs[wire.Report](data)
		if subject != wire.ReportSubject(r.Executor, r.Job) {
			err = errors.Join(err, errors.New(subject))
		}
		b.reports = append(b.reports, r)
		b.away = b.away || len(b.reports) == b.last
		return err
	})
}

func (b *memory) Append(_ context.Context, log string, line []byte) error {
	return b.do(func() error {
		b.lines = append(b.lines, log+": "+string(line))
		return nil
	})
}

func (b *memory) Connected() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.away
}

func (b *memory) leave(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
}

// store keeps an object for the executor.
func (b *memory) store(name string, data []byte) {
	b.do(func() error { b.objects[wire.Bucket(executorName)+"/"+name] = data; return nil })
}

// order puts a value where the executor looks for its orders.
func (b *memory) order(t *testing.T, value []byte) {
	t.Helper()
	b.await(t, "the executor to watch", func() bool { return b.each != nil })
	if b.watched != wire.OrdersKey(executorName) {
		t.Fatalf("the executor watches %s", b.watched)
	}
	b.each(b.watched, value)
}

// await waits until something is so.
func (b *memory) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	defer context.AfterFunc(t.Context(), b.changed.Broadcast)()
	b.mu.Lock()
	defer b.mu.Unlock()
	for !is() {
		if t.Context().Err() != nil {
			t.Fatalf("waited for %s; the newest status is %+v", what, b.status)
		}
		b.changed.Wait()
	}
}

// job is the status of a job; the bus is locked.
func (b *memory) job(name string) wire.JobStatus {
	if i := slices.IndexFunc(b.status.Jobs, func(j wire.JobStatus) bool { return j.Name == name }); i >= 0 {
		return b.status.Jobs[i]
	}
	return wire.JobStatus{}
}

// awaitState waits until a job is in a state, and returns its status.
func (b *memory) awaitState(t *testing.T, name string, s wire.State) (j wire.JobStatus) {
	t.Helper()
	b.await(t, "job "+name+" to be "+string(s), func() bool {
		j = b.job(name)
		if j.State.Over() && j.State != s {
			t.Errorf("job %s is %+v, want it %s", name, j, s)
			return true
		}
		return j.State == s
	})
	return j
}
