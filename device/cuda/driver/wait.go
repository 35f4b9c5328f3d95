//go:build gpu

package driver

import (
	"context"
	"runtime"
	"sync"

	"gorgonia.org/cu"

	"tensile/device/cuda"
)

// end is what Next returns once.
type end struct {
	token uint64
	err   error
}

// ended is the queue that waiters and runs fill, and Next empties.
type ended struct {
	mu      sync.Mutex
	queue   []end
	filled  chan struct{} // holds a value while the queue may have one
	running sync.WaitGroup
}

func newEnded() *ended { return &ended{filled: make(chan struct{}, 1)} }

func (q *ended) put(e end) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, e)
	q.signal()
}

// signal is called with the mutex held.
func (q *ended) signal() {
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

func (q *ended) take() (end, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return end{}, false
	}
	e := q.queue[0]
	if q.queue = q.queue[1:]; len(q.queue) > 0 {
		q.signal()
	}
	return e, true
}

// waiter waits for the watched events of a stream, in their order, on a thread of its own.
type waiter struct {
	watched chan watched
	done    chan struct{}
}

type watched struct {
	event cuda.Event
	token uint64
}

// backlog is how many events of a stream may be watched before Watch waits for the oldest: more than a device has
// outstanding, since streams themselves hold about a thousand commands.
const backlog = 4096

func newWaiter(context cu.CUContext, to *ended) (*waiter, error) {
	w := &waiter{watched: make(chan watched, backlog), done: make(chan struct{})}
	entered := make(chan error)
	go func() {
		defer close(w.done)
		runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine, and its context with it
		err := wrap("cuCtxSetCurrent", cu.SetCurrentContext(context))
		entered <- err
		for next := range w.watched {
			if err == nil {
				err = wrap("cuEventSynchronize", handle[cu.Event](next.event).Synchronize())
			}
			to.put(end{next.token, err}) // an error is the context's, and stays
		}
	}()
	if err := <-entered; err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// stop ends the waiter when all that it watches has ended.
func (w *waiter) stop() {
	close(w.watched)
	<-w.done
}

// Watch has Next return the token when the event, recorded on the stream, has ended.
func (d *Driver) Watch(s cuda.Stream, e cuda.Event, token uint64) {
	d.streams[s].watched <- watched{e, token}
}

// Run executes f beside the caller, and has Next return the token when it has returned.
func (d *Driver) Run(f func(), _, _ []byte, token uint64) {
	d.ended.running.Go(func() {
		f()
		d.ended.put(end{token: token})
	})
}

// Next returns the token of what ended, false when wake is signalled or ctx is done before that. An error comes with
// the token of the event that could not be waited for.
func (d *Driver) Next(ctx context.Context, wake <-chan struct{}) (token uint64, ok bool, err error) {
	for {
		if e, ok := d.ended.take(); ok {
			return e.token, e.err == nil, e.err
		}
		select {
		case <-d.ended.filled:
		case <-wake:
			return 0, false, nil
		case <-ctx.Done():
			return 0, false, nil
		}
	}
}
