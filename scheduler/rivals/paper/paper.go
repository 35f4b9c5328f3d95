package paper

import (
	"cmp"
	"math/bits"
	"slices"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// Options switch parts of the policy off. The zero value is the method as the paper has it.
type Options struct {
	NoSwap      bool
	NoRecompute bool
}

// style is what the drafts have of the paper.
var style = draft.Style{LateOut: true, OneChannel: true, Delays: true}

// Plan is the method as TENSILE has it (section IV), on slots: its peaks are those that the proof finds. Swaps are
// planned first and as far as they go, whatever the budget; storages are recomputed only if that was not enough. Both
// directions share one channel, an op stays where the graph has it, nothing stalls and nothing is chained.
func Plan(s *draft.Session) (scheduler.Result, error) { return schedule(s, style) }

// Authors is Plan with the waits of the executor that the paper's authors have published (GIS-PuppetMaster/tinyflow,
// branch TENSILE): the op after a copy out waits for it, and the next iteration for all copies of the one before. In
// the paper a release waits for the copy out (III-D), and nothing is said of the end of an iteration.
func Authors(s *draft.Session) (scheduler.Result, error) {
	waiting := style
	waiting.Waits = true
	return schedule(s, waiting)
}

func schedule(s *draft.Session, style draft.Style) (scheduler.Result, error) {
	r, o := &s.Request, scheduler.OptionsOf[Options](&s.Request)
	workingSets, err := r.CheckFirstWorkingSets()
	if err != nil {
		return scheduler.Result{}, err
	}
	s.Stage(scheduler.Planning)
	jobs := s.Drafts(draft.GraphOrder, style)
	if !o.NoSwap && !s.Search(func() { swapAll(jobs) }) {
		if r.Budget > 0 {
			return scheduler.Result{}, &scheduler.WorkLimitError{Work: s.Work()}
		}
		jobs = s.Drafts(draft.GraphOrder, style) // these were left in the middle of a change
	}
	target := r.Budget
	for {
		enough := true
		if r.Budget > 0 && !s.Search(func() { enough = recomputeUntil(s, jobs, target, o.NoRecompute) }) {
			return scheduler.Result{}, &scheduler.WorkLimitError{Work: s.Work()}
		}
		result, err := s.Finish(jobs, 0)
		if err != nil || r.Budget == 0 || result.Least <= r.Budget {
			return result, err
		}
		if !enough || target <= workingSets {
			return scheduler.Result{}, &scheduler.OverBudgetError{Need: result.Least, Budget: r.Budget,
				Reason: "what the paper's method leaves packs into that" + draft.AtSwapLimit(jobs) +
					"; policy tensile goes lower"}
		}
		target = max(workingSets, lowerTarget(target, result.Least-r.Budget, s.Needed(jobs)))
		s.Stage(scheduler.Planning)
	}
}

// lowerTarget returns a target lowered by what the packed plans were over the budget, as often as it takes to come
// below what the drafts need: until then they stay as they are, and pack as they did.
func lowerTarget(target, over, needed graph.Bytes) graph.Bytes {
	times := 1 + max(0, target-needed)/over
	return target - times*over
}

// The stopping rule of Algorithm 3: after some iterations, a mean reduction of the peaks in the last few of them below
// 1/2000 (0.05 %) ends the swapping.
const (
	firstCheck = 100
	recent     = 3
	progress   = 2000
)

// swapAll is the loop of Algorithm 3 while swapping succeeds: per iteration the peaks are analysed and the largest
// storage at a peak, of all jobs, that can be swapped is.
func swapAll(jobs []*draft.Draft) {
	pickers := make([]*draft.Picker, len(jobs))
	for i, d := range jobs {
		d.SwapSmall()
		pickers[i] = draft.NewPicker(d)
	}
	peaks := []graph.Bytes{draft.SumOfPeaks(jobs)}
	for iteration := 0; ; iteration++ {
		if n := len(peaks) - 1; iteration > firstCheck && n >= recent &&
			(peaks[n-recent]-peaks[n])*progress < recent*peaks[n-recent] {
			return
		}
		if !swapLargest(jobs, pickers) {
			return
		}
		peaks = append(peaks, draft.SumOfPeaks(jobs))
	}
}

// swapLargest tries the storages at the peaks, largest first over all jobs, until one is swapped (Algorithm 2). Then
// its other accesses are tried too.
func swapLargest(jobs []*draft.Draft, pickers []*draft.Picker) bool {
	for {
		jobs[0].Count(len(jobs))
		var best *draft.Gap
		var rank int32
		job := -1
		for i, p := range pickers {
			at, _ := p.Peak()
			if x, place := p.Largest(at); x != nil && (job < 0 ||
				p.Bytes(x.Storage()) > jobs[job].Bytes(best.Storage())) {
				best, rank, job = x, place, i
			}
		}
		if job < 0 {
			return false
		}
		d := jobs[job]
		pickers[job].Remove(rank)
		if d.Try(best) {
			swapOthers(d, best)
			return true
		}
	}
}

// swapOthers swaps the other gaps of a storage that has been swapped in one, where there is time: the earlier first.
func swapOthers(d *draft.Draft, x *draft.Gap) {
	for y := d.First(x.Storage()); y != nil; y = y.Next() {
		if y.Kind() == scheduler.Keep {
			d.TryAnywhere(y)
		}
	}
}

// recomputeUntil recomputes storages at the peaks, those first whose memory saving per second (MSPS, Equation 4) is
// largest, until the sum of the peaks is at most the target (IV-D). It reports whether it got there.
func recomputeUntil(s *draft.Session, jobs []*draft.Draft, target graph.Bytes, never bool) bool {
	for s.Needed(jobs) > target {
		var best draft.Remedy
		var of *draft.Draft
		for _, d := range jobs {
			at, _ := d.Peak()
			d.Count(len(d.Gaps()))
			for _, x := range d.Gaps() {
				if _, ok := d.Covers(x, at); !ok || never || x.Kind() != scheduler.Keep {
					continue
				}
				if m, ok := d.RecomputeAt(x); ok && neverReleased(d, x) && (of == nil || compareMSPS(m, d, best,
					of) > 0) {
					best, of = m, d
				}
			}
		}
		if of == nil {
			return false
		}
		of.Apply(best)
	}
	return true
}

// compareMSPS compares two recomputations of two jobs by bytes saved per second.
func compareMSPS(a draft.Remedy, d *draft.Draft, b draft.Remedy, e *draft.Draft) int {
	high, low := bits.Mul64(uint64(d.Bytes(a.Gap.Storage())), uint64(max(1, b.Cost)))
	otherHigh, otherLow := bits.Mul64(uint64(e.Bytes(b.Gap.Storage())), uint64(max(1, a.Cost)))
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow))
}

// neverReleased reports whether all inputs of the op that makes a storage stay on the device up to the end of the gap:
// others would have to be copied in or recomputed, which the paper avoids.
func neverReleased(d *draft.Draft, x *draft.Gap) bool {
	made := int(d.Writes(x.Storage())[0])
	op := d.Steps()[made].Op
	for _, s := range d.Touches(op) {
		d.Count(4)
		if slices.Contains(d.Makes(op), s) {
			continue
		}
		for y := d.First(s); y != nil; y = y.Next() {
			if y.Kind() != scheduler.Keep && !y.Arrival() && y.From() < x.To() && made < y.To() {
				return false
			}
		}
	}
	return true
}
