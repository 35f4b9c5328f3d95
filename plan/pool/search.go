package pool

import "math"

// The work of a search is bounded by steps, which are counted and so are the same on every machine. A round has
// fewSteps at least, stepsPerFew for each item up to usualSteps, which take 10 to 20 ms, and stepsPerMany for each
// where they are very many. A step costs more then, as they no longer fit into a cache.
const (
	fewSteps     = 1_000_000
	stepsPerFew  = 20_000
	usualSteps   = 4_000_000
	stepsPerMany = 1_000
)

// simpleTries is how many simple tries share a round's work; one that takes more only looks into the uppermost gaps.
const simpleTries = 8

// search is what methods share: the problem, the lowest layout so far, and the work that is left.
type search struct {
	problem   *problem
	greedy    *greedy
	capacity  int64       // bytes: the height to aim at; 0: the lowest
	enough    int64       // bytes: a height that ends the search
	stop      func() bool // ends the search early
	bound     int64       // bytes: no layout is lower
	placed    bool        // there is a layout
	offsets   []int64     // of that layout: bytes, per item
	height    int64       // of that layout: bytes
	round     int         // the work that the problem is worth, in steps
	steps     int         // left to the method at work
	allowance int         // steps after which a simple try only looks into the uppermost gaps

	// The state in which methods resume in their next turn; nil at first.
	coarse   *search
	mending  []*mended
	descents *descents

	// Set in a search of the substantial items alone, which serves another search.
	whole *search
	part  []int // the items of whole that are its own
}

func newSearch(p *problem, o Options) *search {
	s := &search{problem: p, greedy: newGreedy(p), capacity: o.Capacity, enough: o.Enough, stop: o.Stop, bound: p.load}
	if s.stop == nil {
		s.stop = func() bool { return false }
	}
	s.greedy.ask = func() bool { return s.stop() && s.placed } // the first layout is always made
	s.stop()
	s.round = max(fewSteps, min(stepsPerFew*len(p.items), usualSteps), stepsPerMany*len(p.items))
	s.allowance = s.round / simpleTries
	s.steps = s.round * min(max(1, o.Rounds), math.MaxInt/64/s.round)
	return s
}

// method improves the layout of a search, or makes the first one. It stops when the search is done.
type method func(s *search)

// procedure is what a search does: some methods once, whatever work is left, and then stages round after round.
type procedure struct {
	first  []method
	stages []stage
}

// stage is a method and its weight: the share of the work left in a round, relative to the stages after it, which get
// what it does not use.
type stage struct {
	method method
	weight int
}

// run ends when the search is done, or when nothing is left that could be tried.
func (s *search) run(p procedure) {
	for _, m := range p.first {
		m(s)
	}
	vain := make([]int, len(p.stages))
	for before := s.steps + 1; before != s.steps && !s.done(); {
		before = s.steps
		s.turn(p.stages, vain)
	}
}

// maxVain is how often in a row the part of a stage is halved.
const maxVain = 4

// turn runs each stage once, with the work of a round. The part of a stage is halved for each of its last turns that
// brought no lower layout; vain counts them per stage.
func (s *search) turn(stages []stage, vain []int) {
	left := min(s.round, s.steps)
	rest := s.steps - left
	part := func(i int) int { return stages[i].weight << maxVain >> min(vain[i], maxVain) }
	parts := 0
	for i := range stages {
		parts += part(i)
	}
	for i, st := range stages {
		before, mine := s.height, part(i)
		s.steps = left * mine / parts
		left -= s.steps
		st.method(s)
		left += s.steps
		parts -= mine
		if vain[i]++; s.height < before {
			vain[i] = 0
		}
	}
	s.steps = rest + left
}

// goal is the height to aim at.
func (s *search) goal() int64 { return max(s.bound, s.capacity) }

func (s *search) content() bool { return s.height <= max(s.goal(), s.enough) || s.stop() }

// done reports whether there is nothing to gain or no work left. The first layout is always made.
func (s *search) done() bool { return s.placed && (s.steps <= 0 || s.content()) }

// try places the items and keeps the layout if it is the lowest so far. It gives up at the first item that shows it is
// not, and returns that item's position in the order; -1 for a new best. After some steps it only looks into the
// uppermost gaps.
func (s *search) try(order []int, fit fit, steps int) (stopped int) {
	return s.attempt(run{order: order, fit: fit, limit: s.below(), steps: steps})
}

// below is the largest height that is an improvement.
func (s *search) below() int64 {
	if s.placed {
		return s.height - 1
	}
	return math.MaxInt64
}

// attempt does a run and keeps its layout if it is complete and the lowest so far.
func (s *search) attempt(r run) (stopped int) {
	height, stopped := s.greedy.place(r)
	s.steps -= s.greedy.query.steps
	if stopped < 0 && (!s.placed || height < s.height) {
		s.keep(height, s.greedy.offsets)
	}
	return stopped
}

// keep makes a layout the best.
func (s *search) keep(height int64, offsets []int64) {
	s.placed, s.height = true, height
	s.offsets = append(s.offsets[:0], offsets...)
	if s.whole != nil {
		s.hand(height, offsets)
	}
}
