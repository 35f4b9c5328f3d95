package autoswap

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"tensile/graph"
	"tensile/peak"
	"tensile/scheduler/draft"
)

// Iteration is what AutoSwap knows of an iteration. Its time axis is that of an iteration in which nothing is swapped;
// the paper's operation index is a slot.
type Iteration struct {
	Took     []time.Duration // per slot
	Load     []graph.Bytes   // per slot, nothing swapped
	Pauses   []Pause
	Arrivals []Arrival // by ascending slot; they are copied in one after the other as the iteration begins

	starts   []time.Duration // per slot, and where the next iteration begins
	byAccess []int           // pauses by From
	byNext   []int           // pauses by To, folded into one iteration
	arrived  time.Duration   // when the last arrival has ended
}

// Pause is the time between two accesses to a variable that follow each other.
type Pause struct {
	Bytes       graph.Bytes   // the bytes that its absence frees
	From, To    int           // slots of the accesses, To-From at least 2; To counts on over the end of the iteration
	Send, Fetch time.Duration // how long the copies take; Send is 0 where the host has the content
}

// Arrival is an input that is copied in for a slot in each iteration.
type Arrival struct {
	Slot  int
	Fetch time.Duration
}

// prepare derives what follows from the rest.
func (it *Iteration) prepare() *Iteration {
	n := len(it.Took)
	it.starts = make([]time.Duration, n+1)
	next := it.Arrivals
	for slot := range n {
		for ; len(next) > 0 && next[0].Slot == slot; next = next[1:] {
			it.arrived += next[0].Fetch
			it.starts[slot] = max(it.starts[slot], it.arrived)
		}
		it.starts[slot+1] = it.starts[slot] + it.Took[slot]
	}
	it.byAccess, it.byNext = make([]int, len(it.Pauses)), make([]int, len(it.Pauses))
	for i := range it.Pauses {
		it.byAccess[i], it.byNext[i] = i, i
	}
	slices.SortStableFunc(it.byAccess, func(a, b int) int { return it.Pauses[a].From - it.Pauses[b].From })
	slices.SortStableFunc(it.byNext, func(a, b int) int { return it.Pauses[a].To%n - it.Pauses[b].To%n })
	return it
}

// Length is how long an iteration takes in which nothing is swapped.
func (it *Iteration) Length() time.Duration { return it.starts[len(it.Took)] }

// Peak returns the first slot with the largest load, and that.
func (it *Iteration) Peak() (slot int, load graph.Bytes) { return peakOf(it.Load) }

func peakOf(load []graph.Bytes) (slot int, most graph.Bytes) {
	for i, l := range load {
		if l > most {
			slot, most = i, l
		}
	}
	return slot, most
}

// start and end return when an unrolled slot begins and ends.
func (it *Iteration) start(slot int) time.Duration {
	n := len(it.Took)
	return it.starts[slot%n] + time.Duration(slot/n)*it.Length()
}

func (it *Iteration) end(slot int) time.Duration { return it.start(slot) + it.Took[slot%len(it.Took)] }

// firstEndedAt returns the first slot from one on, before another, that ends at t or later; that other one if there is
// none.
func (it *Iteration) firstEndedAt(t time.Duration, from, to int) int {
	return from + sort.Search(to-from, func(i int) bool { return it.end(from+i) >= t })
}

// lastEndedBy returns the last slot from one on, before another, that has ended at t; the one before it if none has.
func (it *Iteration) lastEndedBy(t time.Duration, from, to int) int {
	return from + sort.Search(to-from, func(i int) bool { return it.end(from+i) > t }) - 1
}

// crosses reports whether a slot lies between the accesses.
func (p *Pause) crosses(slot, slots int) bool {
	return p.From < slot && slot < p.To || slot+slots < p.To
}

// Least returns what the load cannot be below, with everything swapped that may be, and where.
func (it *Iteration) Least(o Options) (slot int, load graph.Bytes) {
	n := len(it.Load)
	c := newLoad(it.Load)
	for i := range it.Pauses {
		if p := &it.Pauses[i]; p.Bytes > o.smallest() {
			c.removePause(p, n)
		}
	}
	return c.Peak()
}

// loadCurve is the load by what is picked.
type loadCurve struct{ *peak.Curve }

func newLoad(load []graph.Bytes) loadCurve { return loadCurve{peak.NewCurve(load)} }

// removePause takes a variable off between its accesses.
func (c loadCurve) removePause(p *Pause, n int) { c.takeOff(p.From+1, p.To, n, p.Bytes) }

// takeOff takes bytes off the unrolled slots [from, to).
func (c loadCurve) takeOff(from, to, n int, bytes graph.Bytes) {
	if from < n {
		c.Add(from, min(to, n), -bytes)
	}
	if to > n {
		c.Add(max(from, n)-n, to-n, -bytes)
	}
}

// OfDraft reads what AutoSwap knows from a draft in which nothing is decided, and returns the gap of each pause.
func OfDraft(d *draft.Draft) (*Iteration, []*draft.Gap) {
	it := &Iteration{Load: d.Footprint()}
	for _, step := range d.Steps() {
		it.Took = append(it.Took, d.Latency(step.Op))
	}
	out, in := d.Links()
	var gaps []*draft.Gap
	for _, x := range d.Gaps() {
		bytes := d.Graph().Storages[x.Storage()].Bytes
		if x.Arrival() {
			it.Arrivals = append(it.Arrivals, Arrival{x.To(), in.Time(bytes)})
			continue
		}
		if x.Dies() {
			continue
		}
		p := Pause{Bytes: d.Bytes(x.Storage()), From: x.From(), To: x.To(), Fetch: in.Time(bytes)}
		if !d.Clean(x) {
			p.Send = out.Time(bytes)
		}
		it.Pauses, gaps = append(it.Pauses, p), append(gaps, x)
	}
	if it.prepare(); it.Length() != d.Period() {
		panic(fmt.Sprintf("autoswap: an iteration of %v, the draft has %v", it.Length(), d.Period()))
	}
	return it, gaps
}
