package calibrate

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// background is a load on the processors: threads of this process that are busy with products and passes over memory,
// as other jobs are.
type background struct {
	stop atomic.Bool
	done sync.WaitGroup
	used atomic.Int64 // processor time, ns
}

// startBackground starts n busy threads.
func startBackground(n int) *background {
	b := &background{}
	for range n {
		b.done.Go(func() {
			runtime.LockOSThread() // and is ended with the goroutine's thread
			before := threadTime()
			b.work()
			b.used.Add(int64(threadTime() - before))
			runtime.UnlockOSThread()
		})
	}
	return b
}

// work multiplies and adds in rows that do not fit the inner caches, until it is stopped.
func (b *background) work() {
	const n = 1 << 18
	x, y := make([]float32, n), make([]float32, n)
	for !b.stop.Load() {
		for i := range x {
			x[i] = x[i]*0.999 + y[n-1-i] + 1
		}
		x, y = y, x
	}
}

// end stops them and returns the processor time that they took.
func (b *background) end() time.Duration {
	b.stop.Store(true)
	b.done.Wait()
	return time.Duration(b.used.Load())
}
