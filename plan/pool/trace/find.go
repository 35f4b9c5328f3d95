package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// errNoIteration is what Find returns when no part of a trace repeats, or none that is an iteration: a *PartError then.
var errNoIteration = errors.New("no part of the trace repeats: record at least two whole iterations more, or take " +
	"the whole trace as one")

// PartError says that something repeats in a trace, but is no iteration. It unwraps to ErrNoIteration.
type PartError struct {
	Iteration        // what repeats
	Why       string // a clause that goes on after "but"
}

func (e *PartError) Error() string {
	return fmt.Sprintf("%d events repeat %d times from event %d on, but %s", e.Events, e.Repeats, e.From, e.Why)
}

func (e *PartError) Unwrap() error { return errNoIteration }

// Iteration is the part of a trace that repeats: events [From, From+Events) and those that follow, Repeats times. The
// paper calls an event's place in it the operation index; here it is the slot.
type Iteration struct {
	From    int
	Events  int
	Repeats int // 1: the trace is taken as a whole and nothing repeats
}

// end is that of the last iteration.
func (it Iteration) end() int { return it.From + it.Events*it.Repeats }

// whole takes all events of a trace as one iteration. The first held of them stand for blocks from before it.
func whole(t Trace, held int) Iteration {
	return Iteration{From: held, Events: len(t) - held, Repeats: 1}
}

// Find returns the iteration of a trace (SmartPool, sections II-D and V): what comes again and again between a start
// and an end that differ. The first held events stand for blocks from before the record and are no part of it. Two
// iterations are equal when event by event kinds and sizes agree and the blocks correspond: the block was malloced at
// the same slot of the same or of the previous iteration, or is one block from before the first.
//
// An iteration ends with as many blocks and bytes as it began with. Of all such repetitions Find takes those that cover
// the most events, or nine tenths as many, and of these the one with the shortest period, so that two iterations are
// not taken for one. A loop over equal layers within an iteration loses: what repeats by two periods at once is shorter
// than both together, so that a loop whose layer is at most half an iteration covers less than one and a half
// iterations, while the iterations cover at least two.
//
// Of all places at which an iteration can be said to begin, it takes that with the fewest bytes of blocks that go on
// over the boundary. Where a block lives for longer than a period, several periods count as one iteration if they
// repeat.
//
// What was found is an iteration only if no block lives for longer and it covers the record: see [history.doubt]. A
// loop within a recording of one iteration is none.
//
// The error wraps ErrNoIteration, or names the first event that does not fit those before it. O(n log n) for n events,
// beside the comparison with a first pass, which takes the product of its mallocs and an iteration's, divided by 64.
func Find(t Trace, held int) (Iteration, error) {
	h, err := newHistory(t)
	if err != nil {
		return Iteration{}, err
	}
	if held < 0 || held > len(t) {
		return Iteration{}, fmt.Errorf("%d of %d events cannot stand for blocks from before them", held, len(t))
	}
	even, uneven := longestRun(t, h, held)
	if even.period == 0 && uneven.period == 0 {
		return Iteration{}, errNoIteration
	}
	it := h.iteration(t, even)
	why := h.doubt(t, even, it, held)
	if why == "" {
		return it, nil
	}
	if uneven.covers() > even.covers() {
		it = h.iteration(t, uneven)
		why = h.doubt(t, uneven, it, held)
	}
	return Iteration{}, &PartError{it, why}
}

// iteration says where an iteration of a run begins and ends.
func (h *history) iteration(t Trace, r run) Iteration {
	if r.period == 0 {
		return Iteration{}
	}
	r.period = h.lengthen(t, r)
	from := r.from + h.quietest(t, r)
	return Iteration{from, r.period, (r.to - from) / r.period}
}

// covers is the number of events in whole periods.
func (r run) covers() int {
	if r.period == 0 {
		return 0
	}
	return r.length() / r.period * r.period
}

// enough reports whether covering some events is about as good as covering others.
func enough(covered, others int) bool { return 10*covered >= 9*others }

// longestRun returns the run of equal iterations to take, from the first event that is of the record on, and one whose
// iterations leave more than they found, or less; a period is 0 if there is none.
//
// What repeats exactly is part of a run of the labels, whose smallest period divides its own. Longest first, each run
// is checked event by event: at its period and, as far as it does not hold at that, at multiples. The checking ends
// after a number of steps that only made-up traces reach.
func longestRun(t Trace, h *history, held int) (even, uneven run) {
	candidates := runs(h.labels(t)[held:])
	slices.SortFunc(candidates, func(a, b run) int {
		return cmp.Or(cmp.Compare(b.length(), a.length()), cmp.Compare(a.period, b.period), cmp.Compare(a.from, b.from))
	})
	var evens, unevens []run
	largest, most, steps := 0, 0, 64*len(t)+1<<20
	for _, c := range candidates {
		if !enough(c.length(), largest) || steps <= 0 {
			break
		}
		c.from, c.to = c.from+held, c.to+held
		for smallest := c.period; 2*c.period <= c.length() && steps > 0; c.period += smallest {
			if !enough(c.covers(), largest) {
				continue
			}
			steps -= c.length()
			r := h.check(t, c)
			switch blocks, bytes := h.growth(t, r); {
			case r.length() < 2*c.period:
			case blocks != 0 || bytes != 0:
				unevens = append(unevens, r)
				most = max(most, r.covers())
			default:
				evens = append(evens, r)
				largest = max(largest, r.covers())
			}
			if r == c {
				break
			}
		}
	}
	return shortest(evens, largest), shortest(unevens, most)
}

// growth is how many more blocks and bytes a run has after a period than before it.
func (h *history) growth(t Trace, r run) (blocks int, bytes int64) {
	for i := r.from; i < min(r.from+r.period, r.to); i++ {
		switch t[i].Kind {
		case Malloc:
			blocks, bytes = blocks+1, bytes+t[i].Bytes
		case Free:
			blocks, bytes = blocks-1, bytes-h.size(t, i)
		}
	}
	return blocks, bytes
}

// shortest returns the run of the shortest period among those that cover enough, and of these the longest, the first.
func shortest(runs []run, largest int) run {
	var best run
	for _, r := range runs {
		if enough(r.covers(), largest) && (best.period == 0 || r.period < best.period ||
			r.period == best.period && r.length() > best.length()) {
			best = r
		}
	}
	return best
}

// check returns the longest part of a run of the labels in which iterations of its period are equal, the first of
// several. The part is no run where it is shorter than two periods.
func (h *history) check(t Trace, c run) run {
	best := run{c.from, c.from, c.period}
	from := c.from // what has been checked from here on is equal
	for i := c.from; i+c.period < c.to; i++ {
		switch how := h.relate(t, i, c.period); {
		case how == unlike:
			from = i + 1
			continue
		case how == fixed:
			from = max(from, h.malloc[i]+1) // the block is to be from before the first iteration
			fallthrough
		default:
			if before := i - c.period; before >= from && h.relate(t, before, c.period) != how {
				from = before + 1
			}
		}
		if to := i + c.period + 1; to-from > best.length() {
			best = run{from, to, c.period}
		}
	}
	return best
}

// lengthen returns the smallest multiple of a run's period that is larger than the age of every block freed in an
// iteration, or the period itself if that multiple does not repeat.
func (h *history) lengthen(t Trace, r run) int {
	oldest := 0
	for i := r.from; i < r.from+r.period; i++ {
		if t[i].Kind == Free {
			oldest = max(oldest, i-h.malloc[i])
		}
	}
	if periods := oldest/r.period + 1; periods <= r.length()/(2*r.period) {
		return periods * r.period
	}
	return r.period
}

// quietest returns how many events after a run's start an iteration is best said to begin, so that two are left.
func (h *history) quietest(t Trace, r run) int {
	change := make([]int64, 2*r.period+1) // of the bytes over the boundary, from one place for it to the next
	for slot := range r.period {
		m := r.from + slot
		if age := h.freed[m] - m; t[m].Kind == Malloc && age < r.period {
			change[slot+1] += t[m].Bytes
			change[slot+age+1] -= t[m].Bytes
		}
	}
	over := make([]int64, 2*r.period)
	var now int64
	for i := range over {
		now += change[i]
		over[i] = now
	}
	best := 0
	for i := range min(r.period, r.length()-2*r.period+1) {
		if over[i]+over[i+r.period] < over[best]+over[best+r.period] {
			best = i
		}
	}
	return best
}
