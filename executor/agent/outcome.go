package agent

import (
	"time"

	"tensile/executor"
	"tensile/graph"
	"tensile/wire"
)

// outcome is what a job has come to so far. Times are of the device's clock.
type outcome struct {
	// reports is how many iterations were reported.
	reports int
	// begin and end are when the first iteration began and when the last one ended.
	begin, end time.Duration
	// left is when the job left Home first.
	left time.Duration
	// first is when the first iteration ended.
	first time.Duration
	// stall is for how long compute waited for copies, in all iterations.
	stall time.Duration
	// gate is for how long compute waited for page grants, in all iterations.
	gate time.Duration
	// peaks are the slot peaks of the plans that the host was given, by epoch, in bytes.
	peaks map[int64]graph.Bytes
	// peak is the highest slot peak of the plans that came into force.
	peak graph.Bytes
	// arena is their largest arena, in bytes.
	arena graph.Bytes
	// plans is how many programs were applied. It is set when the job has ended, and so are transition and touched.
	plans int
	// transition is the time spent on the way out of Home and back.
	transition time.Duration
	// touched is the highest byte of an arena that a command has used.
	touched graph.Bytes
	// logged is when an iteration was logged last, by the machine's clock.
	logged time.Duration
}

// recordPlan records a plan that may come into force.
func (o *outcome) recordPlan(f *Fetched) {
	if o.peaks == nil {
		o.peaks = make(map[int64]graph.Bytes)
	}
	o.peaks[f.Epoch] = f.Peak
}

// recordApplied records the plan that has come into force.
func (o *outcome) recordApplied(a *executor.Applied) {
	o.peak, o.arena = max(o.peak, o.peaks[a.Epoch]), max(o.arena, a.Arena)
}

// recordIteration adds one, and reports whether none was logged within the last second.
func (o *outcome) recordIteration(r *executor.Report, now time.Duration) (log bool) {
	if o.reports++; o.reports == 1 {
		o.left, o.begin, o.first = r.Left, r.Begin, r.End
	}
	o.end = r.End
	o.stall += r.Stall
	o.gate += r.Gate
	return o.reports == 1 || now-o.logged >= time.Second
}

// result returns the result of a job that has ended, and the same with its losses and weights; nil if there are none.
// origin is the zero of the device's clock. A job that has ended before its first iteration has no times.
func (o *outcome) result(k *Kept, origin time.Duration) (result, full *wire.Result) {
	if o.reports == 0 {
		origin = 0
	}
	result = &wire.Result{Left: origin + o.left, Begin: origin + o.begin, First: origin + o.first,
		End: origin + o.end, Stall: o.stall, Gate: o.gate, Touched: o.touched, Arena: o.arena, SlotPeak: o.peak,
		Plans: o.plans, Transition: o.transition, Saved: k.Saved}
	if n := len(k.Losses); n > 0 {
		last := wire.Loss(k.Losses[n-1])
		result.Last = &last
	}
	if k.Losses == nil && k.Weights == nil {
		return result, nil
	}
	all := *result
	all.Losses, all.Weights = k.Losses, k.Weights
	return result, &all
}
