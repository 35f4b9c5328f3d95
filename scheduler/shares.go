package scheduler

import (
	"math"
	"slices"
	"time"

	"tensile/graph"
	"tensile/program"
)

// Share is what a job has of each direction of the link, in parts of Whole.
type Share struct{ Out, In int64 }

// Whole is the whole link: a number that up to 16 jobs can divide evenly.
const Whole = 720720

// balanced plans with even shares of the link and, where the plans' demands are uneven, once more with shares by demand.
// The plans that lose less time by prediction are kept: further rounds would cost as much planning as the first and gain
// little. Plans are made with shares that leave the weights out: a job that planned with the larger share that it then
// gets would swap more for it, not less.
func (r *Request) balanced(policy Policy) (Result, error) {
	r.shares, r.rounds = divide(nil, make([]demand, len(r.Jobs))), new(int)
	r.prepare()
	best, err := r.best(policy)
	if err != nil {
		return Result{}, err
	}
	r.stage(Packing)
	for i := range best.Jobs {
		j := &best.Jobs[i]
		r.shares[i] = j.Share
		j.Bounds, j.Unplanned, j.Phase = r.bounds(i, j.Plan), r.unplannedTime(i), ColdStart
		if r.Jobs[i].Measured {
			j.Phase = Updated
		}
	}
	return best, nil
}

// best is balanced without the figures beside the plans.
func (r *Request) best(policy Policy) (Result, error) {
	best, err := policy(*r)
	if err != nil {
		return Result{}, err
	}
	lost := r.settle(&best)
	shares := divide(nil, r.demands(&best))
	if r.meter.spent || !best.decided() || !differ(r.shares, shares) {
		return best, nil
	}
	r.shares = shares
	next, err := policy(*r)
	if err == nil {
		r.stage(Planning)
		if r.settle(&next) < lost {
			best = next
		}
	}
	best.Rounds = *r.rounds
	return best, nil
}

// prepare looks through the graphs once for all plans that are tried.
func (r *Request) prepare() {
	r.stage(Planning)
	r.wirings, r.digests = make([]*wiring, len(r.Jobs)), make([]graph.Digest, len(r.Jobs))
	for i := range r.Jobs {
		if j := r.sameGraph(i); j < i {
			r.wirings[i] = r.wirings[j]
			continue
		}
		r.wirings[i] = newWiring(r.Jobs[i].Graph, r.Align)
		r.meter.count(4 * len(r.wirings[i].touches.all))
	}
	r.stage(Packing) // a digest is part of the proof, not of planning
	for i := range r.Jobs {
		if j := r.sameGraph(i); j < i {
			r.digests[i] = r.digests[j]
			continue
		}
		r.digests[i] = r.Jobs[i].Graph.Digest()
		r.meter.count(8 * len(r.Jobs[i].Graph.Ops))
	}
}

// sameGraph returns the job before job i if it is a copy of the same graph, or else i.
func (r *Request) sameGraph(i int) int {
	if i > 0 && r.Jobs[i-1].Graph == r.Jobs[i].Graph {
		return i - 1
	}
	return i
}

// settle gives the jobs their shares by weight and demand, or those planned with if these lose less time, and returns
// what is lost. A single job has the whole link.
func (r *Request) settle(result *Result) (lost int64) {
	result.assign(r, r.shares)
	if len(r.Jobs) < 2 {
		return 0
	}
	programs := r.compile(result)
	planned := r.slowdown(result, programs)
	result.assign(r, divide(r.weights(), r.demands(result)))
	if lost = r.slowdown(result, programs); lost > planned {
		result.assign(r, r.shares)
	}
	return min(lost, planned)
}

// demand is how much a job copies in each direction in a second of its time.
type demand struct{ out, in int64 }

// demands returns what the jobs' plans copy, over the sum of their steps' latencies: stalls left out, since they are
// what a share is to avoid.
func (r *Request) demands(result *Result) []demand {
	demands := make([]demand, len(r.Jobs))
	for i, s := range result.Jobs {
		took := sumOf(s.Plan.Made)
		out, in := s.Plan.Copied(r.Jobs[i].Graph)
		demands[i] = demand{perSecond(out, took), perSecond(in, took)}
	}
	return demands
}

func perSecond(b graph.Bytes, d time.Duration) int64 {
	const most = 1 << 50 // times a weight, it fits
	return int64(min(most, float64(b)/max(1, float64(d))*1e9))
}

// divide returns the shares for what jobs copy. Time spent on copies is demand/share, so its sum over jobs, weighed, is
// least when shares go by the square root of weight times demand. Jobs that copy nothing leave the link to the others,
// but for an eighth of an even share, which everyone has. If nobody copies, shares are even. Without weights, all are 1.
func divide(weights []int64, demands []demand) []Share {
	outs, ins := make([]int64, len(demands)), make([]int64, len(demands))
	for i, d := range demands {
		if weights != nil {
			d.out, d.in = d.out*weights[i], d.in*weights[i]
		}
		outs[i], ins[i] = root(d.out), root(d.in)
	}
	outs, ins = portions(outs), portions(ins)
	shares := make([]Share, len(demands))
	for i := range shares {
		shares[i] = Share{outs[i], ins[i]}
	}
	return shares
}

// weights returns the jobs' weights in lowest terms, so that roots are rounded alike for equal proportions.
func (r *Request) weights() []int64 {
	weights := make([]int64, len(r.Jobs))
	var common int64
	for i := range r.Jobs {
		weights[i] = int64(r.Jobs[i].weight())
		for rest := weights[i]; rest > 0; {
			common, rest = rest, common%rest
		}
	}
	for i := range weights {
		weights[i] /= common
	}
	return weights
}

func root(n int64) int64 { return int64(math.Sqrt(float64(n))) }

// portions divides Whole in proportion to parts, or evenly if there are none, above a floor.
func portions(parts []int64) []int64 {
	n := int64(len(parts))
	var sum int64
	for _, p := range parts {
		sum += p
	}
	if sum == 0 {
		parts, sum = slices.Repeat([]int64{1}, len(parts)), n
	}
	floor := max(1, Whole/(8*max(1, n)))
	all := make([]int64, n)
	for i, p := range parts {
		all[i] = floor + (Whole-n*floor)*p/sum
	}
	return all
}

// differ reports whether a share is so far from what was planned with, by a sixteenth, that planning again may help.
func differ(planned, shares []Share) bool {
	far := func(a, b int64) bool { return max(a-b, b-a) > a/16 }
	for i, s := range shares {
		if far(planned[i].Out, s.Out) || far(planned[i].In, s.In) {
			return true
		}
	}
	return false
}

// assign tells each job its share.
func (result *Result) assign(r *Request, shares []Share) {
	for i, s := range shares {
		j := &result.Jobs[i]
		j.Share, j.Out, j.In = s, r.Out.Share(s.Out, Whole), r.In.Share(s.In, Whole)
	}
}

// decided reports whether anything was swapped or recomputed: otherwise the plans do not depend on the link.
func (result *Result) decided() bool {
	return slices.ContainsFunc(result.Jobs, func(j Scheduled) bool {
		return slices.ContainsFunc(j.Decisions, func(d Decision) bool { return d.Kind != "keep" })
	})
}

func (r *Request) compile(result *Result) []*program.Program {
	programs := make([]*program.Program, len(result.Jobs))
	for i, s := range result.Jobs {
		r.meter.count(8 * len(s.Plan.Steps))
		programs[i] = program.Compile(r.Jobs[i].Graph, s.Plan, s.Layout, program.Options{})
	}
	return programs
}

// slowdown sums the jobs' predicted iterations over what their ops take, weighed, in parts of ten thousand.
func (r *Request) slowdown(result *Result, programs []*program.Program) int64 {
	var sum int64
	for i, s := range result.Jobs {
		r.meter.count(8 * len(s.Plan.Steps))
		timing := program.Time(programs[i], program.Durations{Steps: s.Plan.Made, Out: s.Out, In: s.In})
		sum += int64(r.Jobs[i].weight()) * int64(timing.Iteration*10000/max(1, sumOf(r.Jobs[i].Latency)))
	}
	return sum
}

func sumOf(latencies []time.Duration) (sum time.Duration) {
	for _, l := range latencies {
		sum += l
	}
	return sum
}
