package pool

import "math"

// The work of a search is bounded by steps, which are counted and so are the same on every machine. What leastSteps buys
// takes some 5 to 15 ms; a step costs more where there are many items, as they no longer fit into a cache.
const (
	leastSteps   = 2_500_000
	stepsPerItem = 1_000
)

// search is what methods share: the problem, the lowest layout so far, and the work that is left.
type search struct {
	problem *problem
	greedy  *greedy
	placed  bool    // there is a layout
	offsets []int64 // of that layout: bytes, per item
	height  int64   // of that layout: bytes
	steps   int     // left to the method at work
}

func newSearch(p *problem) *search { return &search{problem: p, greedy: newGreedy(p)} }

// budget is the work that the problem is worth, in steps.
func (s *search) budget() int { return max(leastSteps, stepsPerItem*len(s.problem.items)) }

// apply runs the methods. Each may use its even share of the work left, and what it leaves goes to the later ones. It
// returns the work left in the end, less than nothing where the last try had to be finished.
func (s *search) apply(methods []method) (left int) {
	left = s.budget()
	for i, m := range methods {
		s.steps = left / (len(methods) - i)
		left -= s.steps
		m(s)
		left += s.steps
	}
	return left
}

// done reports whether there is nothing to gain or no work left. The first layout is always made.
func (s *search) done() bool {
	return s.placed && (s.height == s.problem.load || s.steps <= 0)
}

// try places the items and keeps the layout if it is the lowest so far. It gives up at the first item that shows it is
// not, and returns that item's position in the order; -1 for a new best. After half of the work that is left, a try only
// looks into the uppermost gaps.
func (s *search) try(order []int, fit fit) (stopped int) {
	r := run{order: order, fit: fit, limit: math.MaxInt64, steps: s.steps / 2}
	if s.placed {
		r.limit = s.height - 1
	}
	height, stopped := s.greedy.place(r)
	s.steps -= s.greedy.query.steps
	if stopped < 0 {
		s.placed, s.height = true, height
		s.offsets = append(s.offsets[:0], s.greedy.offsets...)
	}
	return stopped
}
