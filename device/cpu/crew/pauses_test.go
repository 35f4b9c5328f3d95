package crew

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Loops of several askers are done once each, whatever the pauses between them and the number of processors.
func TestPauses(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 8} {
		runtime.GOMAXPROCS(procs)
		for _, threads := range []int{2, 3, 8} {
			c := New(threads)
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					for range 100 {
						n := rand.IntN(50)
						done := make([]int32, n)
						c.Split(n, 1+rand.IntN(3), func(from, to int) {
							if rand.IntN(20) == 0 {
								yield(rand.IntN(10_000))
							}
							for i := from; i < to; i++ {
								atomic.AddInt32(&done[i], 1)
							}
						})
						for i := range done {
							if done[i] != 1 {
								t.Errorf("index %d of %d: %d times", i, n, done[i])
							}
						}
						if rand.IntN(3) == 0 {
							yield(rand.IntN(3000))
						}
					}
				})
			}
			all.Wait()
			c.Close()
		}
	}
}

// Members end when the crew is closed, whatever they do at that time.
func TestCloseWhileLooking(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	before := runtime.NumGoroutine()
	for i := range 300 {
		runtime.GOMAXPROCS([]int{1, 2, 8}[i%3])
		c := New(3)
		if i%2 == 0 {
			c.Split(8, 1, func(from, to int) {})
		}
		yield(rand.IntN(2000))
		c.Close()
	}
	for runtime.NumGoroutine() > before { // until the test may take no longer
		runtime.Gosched()
	}
}

// yield gives others the processor some times, a tenth of a microsecond or more each.
func yield(times int) {
	for range times {
		runtime.Gosched()
	}
}
