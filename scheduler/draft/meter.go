package draft

import "tensile/scheduler"

// meter counts the work of planning in steps of its inner loops, of some nanoseconds each. A limit in steps ends a
// search at the same point on every machine.
//
// Steps are counted deep inside of plans that nobody needs once the search is over. So the end of a search unwinds the
// stack, by a panic with a value of this package that search, or for a stop Open, recovers.
type meter struct {
	stop  func(steps int64) bool // nil: never
	every int64                  // steps between two questions
	limit int64                  // steps; 0: none at present
	steps int64
	next  int64 // when to look at limit and stop again
	ticks int64 // since the last question by tick
	spent bool  // the limit was reached
}

// asking is how many steps lie between two questions to stop: a fraction of a millisecond.
const asking = 1 << 15

func newMeter(w scheduler.Watch) *meter {
	m := &meter{stop: w.Stop, every: w.Every}
	if m.every <= 0 {
		m.every = asking
	}
	return m
}

type (
	workStopped struct{}
	workSpent   struct{}
)

// count adds steps. It does not return if the work is to end.
func (m *meter) count(steps int) {
	if m.steps += int64(steps); m.steps >= m.next {
		m.checkWatch()
	}
}

// tick asks whether to stop, as often as count does, for work that counts otherwise.
func (m *meter) tick(steps int) {
	if m.ticks += int64(steps); m.ticks >= m.every {
		m.ticks = 0
		if m.stop != nil && m.stop(m.steps) {
			panic(workStopped{})
		}
	}
}

func (m *meter) checkWatch() {
	m.next = m.steps + m.every
	if m.stop != nil && m.stop(m.steps) {
		panic(workStopped{})
	}
	if m.limit == 0 {
		return
	}
	if m.steps >= m.limit {
		m.spent = true
		panic(workSpent{})
	}
	m.next = min(m.next, m.limit)
}

// search does something until the limit is reached, and reports whether it came to its end. What it was working on is
// then of no use. Outside of a search there is no limit.
func (m *meter) search(limit int64, do func()) (ended bool) {
	before := m.limit
	m.limit = limit
	m.next = min(m.next, limit)
	defer func() {
		m.limit = before
		if p := recover(); p != nil {
			if _, spent := p.(workSpent); !spent {
				panic(p)
			}
			ended = false
		}
	}()
	do()
	return true
}

// stoppable does something unless the watch stops it: then the error is scheduler.ErrStopped.
func (m *meter) stoppable(do func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if _, stopped := p.(workStopped); !stopped {
				panic(p)
			}
			err = scheduler.ErrStopped
		}
	}()
	do()
	return nil
}
