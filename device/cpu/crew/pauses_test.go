package crew

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Loops of several askers are done once each, whatever the pauses between them and the number of processors.
func TestPauses(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 8} {
		runtime.GOMAXPROCS(procs)
		for _, threads := range []int{2, 3, 8} {
			c := New(threads)
			var all sync.WaitGroup
			end := time.Now().Add(150 * time.Millisecond)
			for range 3 {
				all.Go(func() {
					for time.Now().Before(end) {
						n := rand.IntN(50)
						done := make([]int32, n)
						c.Split(n, 1+rand.IntN(3), func(from, to int) {
							if rand.IntN(20) == 0 {
								time.Sleep(time.Duration(rand.IntN(1500)) * time.Microsecond)
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
							time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
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
		time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
		c.Close()
	}
	for begin := time.Now(); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 5*time.Second {
			t.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
		}
	}
}
