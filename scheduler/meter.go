package scheduler

import (
	"errors"
	"fmt"
)

// UsualWork is the limit of planning that Options.Work stands for when it is 0.
const UsualWork = 3_000_000_000

// ErrStopped is the error of a Schedule whose stop function said so.
var ErrStopped = errors.New("planning was stopped")

// WorkLimitError says that planning used up its work before it found a plan that fits.
type WorkLimitError struct {
	Work int64 // the limit, in steps
	Last error // why the last plans found do not fit; nil: none was complete
}

func (e *WorkLimitError) Error() string {
	last := ""
	if e.Last != nil {
		last = "; the best plans up to then: " + e.Last.Error()
	}
	return fmt.Sprintf("no plan was found in %d steps of planning, the limit: plan fewer jobs together, give a larger budget, or more steps with --planning-work%s", e.Work, last)
}

func (e *WorkLimitError) Unwrap() error { return ErrNoPlan }

// meter counts the work of one Schedule in steps of its inner loops, of some nanoseconds each. A limit in steps ends a
// search at the same point on every machine.
//
// Steps are counted deep inside of plans that nobody needs once the search is over. So the end of a search unwinds the
// stack, by a panic with a value of this package that search, or for a stop Schedule, recovers.
type meter struct {
	stop  func() bool // nil: never
	every int64       // steps between two questions
	limit int64       // steps; 0: none at present
	steps int64
	next  int64 // when to look at limit and stop again
	spent bool  // the limit was reached
}

// asking is how many steps lie between two questions to stop: a fraction of a millisecond.
const asking = 1 << 15

func newMeter(stop func() bool) *meter { return &meter{stop: stop, every: asking} }

type (
	workStopped struct{}
	workSpent   struct{}
)

// count adds steps. It does not return if the work is to end.
func (m *meter) count(steps int) {
	if m.steps += int64(steps); m.steps >= m.next {
		m.look()
	}
}

func (m *meter) look() {
	m.next = m.steps + m.every
	if m.stop != nil && m.stop() {
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

// search does something until the limit is reached, and reports whether it came to its end. What it was at work on is
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
