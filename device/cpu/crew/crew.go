// Package crew divides loops among threads. A device has one crew, which all its jobs share: a loop is helped by the
// members that have nothing else to do, and whoever asks for it works on it, too. So loops of several jobs get on at
// once, and none waits for another.
package crew

import (
	"sync"
	"sync/atomic"
	"time"
)

// Crew is goroutines that help with loops. Nil is a crew without members: who asks does all alone.
type Crew struct {
	size    int
	members []member
	loops   chan *loop // unbuffered: only a member that sleeps takes one
}

// member is a goroutine that helps. To wake a goroutine takes longer than many a loop, so each looks for its next loop
// for a while before it sleeps, as who asks does for the end of the others.
type member struct {
	next atomic.Pointer[loop] // nil: it works or sleeps; looking: it takes what is put here
	_    [56]byte             // so that each is in a cache line of its own
}

// looking stands for no loop, in the place for one.
var looking loop

// How long goroutines look before they sleep. To wake one takes 50 to 100 microseconds on a virtual machine.
const (
	lookTime = 100 * time.Microsecond // for the next loop, when there may be none
	waitTime = 500 * time.Microsecond // for the end of one: who sleeps there is late for the next, as all others are
)

// loop is one that is being worked on.
type loop struct {
	do      func(from, to int)
	n, part int
	next    atomic.Int64   // the first index that nobody has
	helping atomic.Int64   // members that have not ended with it
	helpers sync.WaitGroup // the same, for who sleeps until they have
}

// spin waits until a condition holds, or for a time.
func spin(limit time.Duration, until func() bool) {
	for begin := time.Now(); !until() && time.Since(begin) < limit; {
	}
}

// New returns a crew for so many threads, that of who asks among them.
func New(threads int) *Crew {
	if threads <= 1 {
		return nil
	}
	c := &Crew{size: threads, loops: make(chan *loop), members: make([]member, threads-1)}
	for i := range c.members {
		go c.serve(&c.members[i])
	}
	return c
}

// serve works on loops until the crew is closed.
func (c *Crew) serve(m *member) {
	m.next.Store(&looking)
	for {
		l := m.look()
		if l == nil {
			var open bool
			if l, open = <-c.loops; !open {
				return
			}
		}
		l.work()
		l.helpers.Done()
		m.next.Store(&looking) // before who asks goes on, perhaps with another loop
		l.helping.Add(-1)
	}
}

// look returns a loop that is put in place within lookTime, or nil.
func (m *member) look() *loop {
	spin(lookTime, func() bool { return m.next.Load() != &looking })
	if l := m.next.Swap(nil); l != &looking {
		return l
	}
	return nil
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
	spin(waitTime, func() bool { return l.helping.Load() == 0 })
	l.helpers.Wait()
}

// ask reports whether a member that had nothing else to do helps with the loop.
func (c *Crew) ask(l *loop) bool {
	l.helping.Add(1)
	l.helpers.Add(1)
	for i := range c.members {
		if c.members[i].next.CompareAndSwap(&looking, l) {
			return true
		}
	}
	select {
	case c.loops <- l:
		return true
	default:
		l.helping.Add(-1)
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
