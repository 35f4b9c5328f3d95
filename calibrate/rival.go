package calibrate

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// rivals are threads of this process that are busy with products and passes over memory, as other jobs are.
type rivals struct {
	stop atomic.Bool
	done sync.WaitGroup
	used atomic.Int64 // processor time, ns
}

// startRivals starts n busy threads.
func startRivals(n int) *rivals {
	r := &rivals{}
	for range n {
		r.done.Go(func() {
			runtime.LockOSThread() // and is ended with the goroutine's thread
			before := threadTime()
			r.work()
			r.used.Add(int64(threadTime() - before))
			runtime.UnlockOSThread()
		})
	}
	return r
}

// work multiplies and adds in rows that do not fit the inner caches.
func (r *rivals) work() {
	const n = 1 << 18
	a, b := make([]float32, n), make([]float32, n)
	for !r.stop.Load() {
		for i := range a {
			a[i] = a[i]*0.999 + b[n-1-i] + 1
		}
		a, b = b, a
	}
}

// end stops them and returns the processor time that they took.
func (r *rivals) end() time.Duration {
	r.stop.Store(true)
	r.done.Wait()
	return time.Duration(r.used.Load())
}
