// Package crew divides loops among threads. A device has one crew, which all its jobs share: a loop is helped by the
// members that have nothing else to do, and whoever asks for it works on it, too. So loops of several jobs get on at
// once, and none waits for another.
package crew

import (
	"sync"
	"sync/atomic"
)

// Crew is goroutines that help with loops. Nil is a crew without members: who asks does all alone.
type Crew struct {
	size  int
	loops chan *loop // unbuffered: only a member that rests takes one
}

// loop is one that is being worked on.
type loop struct {
	do      func(from, to int)
	n, part int
	next    atomic.Int64 // the first index that nobody has
	helpers sync.WaitGroup
}

// New returns a crew for so many threads, that of who asks among them.
func New(threads int) *Crew {
	if threads <= 1 {
		return nil
	}
	c := &Crew{size: threads, loops: make(chan *loop)}
	for range threads - 1 {
		go func() {
			for l := range c.loops {
				l.work()
				l.helpers.Done()
			}
		}()
	}
	return c
}

// Close ends the members. Nobody may ask any more.
func (c *Crew) Close() {
	if c != nil {
		close(c.loops)
	}
}

// Threads is how many threads a loop may have.
func (c *Crew) Threads() int {
	if c == nil {
		return 1
	}
	return c.size
}

// partsOfThread is in how many parts a loop is divided for each thread, so that one that began late has fewer.
const partsOfThread = 2

// Split calls do with parts that together are [0, n), each but the last of at least grain indices unless n is smaller,
// at once on as many threads as are free. It returns when all is done.
func (c *Crew) Split(n, grain int, do func(from, to int)) {
	parts := min(n/max(grain, 1), partsOfThread*c.Threads())
	if c == nil || parts < 2 {
		do(0, n)
		return
	}
	l := &loop{do: do, n: n, part: (n + parts - 1) / parts}
	for helper := 1; helper < min(c.size, parts) && c.ask(l); helper++ {
	}
	l.work()
	l.helpers.Wait()
}

// ask reports whether a member that rested helps with the loop.
func (c *Crew) ask(l *loop) bool {
	l.helpers.Add(1)
	select {
	case c.loops <- l:
		return true
	default:
		l.helpers.Done()
		return false
	}
}

// work does parts of the loop until nobody has to.
func (l *loop) work() {
	for {
		from := int(l.next.Add(int64(l.part))) - l.part
		if from >= l.n {
			return
		}
		l.do(from, min(from+l.part, l.n))
	}
}
