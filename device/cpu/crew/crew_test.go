package crew

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	_ "tensile/internal/long" // the flag -long
)

// Every index is done once, whatever the sizes and however many ask at once.
func TestSplit(t *testing.T) {
	for threads := range 5 {
		c := New(threads)
		var all sync.WaitGroup
		for n := range 40 {
			all.Go(func() {
				for grain := range n + 2 {
					done := make([]atomic.Int32, n)
					c.Split(n, grain, func(from, to int) {
						if to-from < min(grain, n) && to < n {
							t.Errorf("%d threads: a part of %d to %d where %d is the least", threads, from, to, grain)
						}
						for i := from; i < to; i++ {
							done[i].Add(1)
						}
					})
					for i := range done {
						if got := done[i].Load(); got != 1 {
							t.Errorf("%d threads, %d of %d by %d: done %d times", threads, i, n, grain, got)
						}
					}
				}
			})
		}
		all.Wait()
		c.Close()
	}
}

// A member works at the same time as who asks: their parts meet.
func TestMemberHelps(t *testing.T) {
	c := New(2)
	defer c.Close()
	meet := make(chan int)
	l := &loop{n: 2, part: 1, do: func(from, _ int) {
		select {
		case meet <- from:
		case <-meet:
		}
	}}
	for !c.ask(l) { // until the member rests
		runtime.Gosched()
	}
	l.work()
	l.helpers.Wait()
}

// A loop within a loop is done, though no member rests.
func TestNested(t *testing.T) {
	c := New(3)
	defer c.Close()
	var sum atomic.Int64
	c.Split(8, 1, func(from, to int) {
		for range to - from {
			c.Split(8, 1, func(from, to int) { sum.Add(int64(to - from)) })
		}
	})
	if sum.Load() != 64 {
		t.Errorf("%d of 64 were done", sum.Load())
	}
}
