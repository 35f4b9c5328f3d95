package policies

import (
	"math"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// planBalanced plans with even shares of the link and, where the plans' demands are uneven, once more with shares by
// demand. The plans that lose less time by prediction are kept: further rounds would cost as much planning as the
// first and gain little. Plans are made with shares that leave the weights out: a job that planned with the larger
// share that it then gets would swap more for it, not less.
func planBalanced(s *draft.Session, policy Policy) (scheduler.Result, error) {
	best, err := planLessLost(s, policy)
	if err != nil {
		return scheduler.Result{}, err
	}
	s.Stage(scheduler.Packing)
	s.Divide(sharesOf(&best))
	kept := make([]graph.Bytes, len(best.Jobs))
	for _, equal := range s.Groups() {
		for n, i := range equal {
			j, first := &best.Jobs[i], &best.Jobs[equal[0]]
			if n > 0 && slices.Equal(j.Plan.Steps, first.Plan.Steps) {
				j.Bounds, kept[i], j.Unplanned = first.Bounds, kept[equal[0]], first.Unplanned
			} else {
				j.Bounds, kept[i] = s.Bounds(i, j.Plan)
				j.Unplanned = s.UnplannedTime(i)
			}
			if j.Latencies = scheduler.ColdStart; s.Request.Jobs[i].Measured {
				j.Latencies = scheduler.Updated
			}
		}
	}
	if best.ZeroStall = zeroStall(best.Jobs, kept, s.Request.In); s.Request.Together {
		best.ZeroStall = 0
		for i := range best.Jobs {
			best.ZeroStall += best.Jobs[i].Bounds.ZeroStall
		}
	}
	return best, nil
}

// planLessLost is balanced without the figures beside the plans.
func planLessLost(s *draft.Session, policy Policy) (scheduler.Result, error) {
	best, err := policy(s)
	if err != nil {
		return scheduler.Result{}, err
	}
	lost := settleShares(s, &best)
	if s.Request.Together {
		return best, nil // one at a time: each has the whole link
	}
	shares := divide(nil, demandsOf(s, &best))
	if s.Spent() || !movesAny(&best) || !sharesDiffer(s.Shares(), shares) {
		return best, nil
	}
	s.Divide(shares)
	next, err := policy(s)
	if err == nil {
		s.Stage(scheduler.Planning)
		if settleShares(s, &next) < lost {
			best = next
		}
	}
	best.Rounds = s.Rounds()
	return best, nil
}

// settleShares gives the jobs their shares by weight and demand, or those planned with if these lose less time, and
// returns what is lost. A single job has the whole link.
func settleShares(s *draft.Session, result *scheduler.Result) (lost int64) {
	assign(s, result, s.Shares())
	if len(s.Request.Jobs) < 2 || s.Request.Together {
		return 0
	}
	programs := programsOf(s, result)
	planned := slowdown(s, result, programs)
	assign(s, result, divide(weights(s), demandsOf(s, result)))
	if lost = slowdown(s, result, programs); lost > planned {
		assign(s, result, s.Shares())
	}
	return min(lost, planned)
}

// demand is how much a job copies in each direction in a second of its time.
type demand struct{ out, in int64 }

// demandsOf returns what the jobs' plans copy, over the sum of their steps' latencies: stalls left out, since they are
// what a share is to avoid. Equal jobs have the mean of theirs, so that shares do not make them unequal.
func demandsOf(s *draft.Session, result *scheduler.Result) []demand {
	demands := make([]demand, len(result.Jobs))
	for i, j := range result.Jobs {
		took := sumOf(j.Plan.Made)
		out, in := j.Plan.Copied(s.Request.Jobs[i].Graph)
		demands[i] = demand{perSecond(out, took), perSecond(in, took)}
	}
	for _, equal := range s.Groups() {
		var mean demand
		n := int64(len(equal))
		for _, i := range equal {
			mean.out, mean.in = mean.out+demands[i].out/n, mean.in+demands[i].in/n
		}
		for _, i := range equal {
			demands[i] = mean
		}
	}
	return demands
}

func perSecond(b graph.Bytes, d time.Duration) int64 {
	const limit = 1 << 50 // times a weight, it fits
	return int64(min(limit, float64(b)/max(1, float64(d))*1e9))
}

// divide returns the shares for what jobs copy. Time spent on copies is demand/share, so its weighed sum over jobs is
// smallest when shares go by the square root of weight times demand. Jobs that copy nothing leave the link to the
// others, but for an eighth of an even share, which everyone has. If nobody copies, shares are even. Without weights,
// all are 1.
func divide(weights []int64, demands []demand) []scheduler.Share {
	outs, ins := make([]int64, len(demands)), make([]int64, len(demands))
	for i, d := range demands {
		if weights != nil {
			d.out, d.in = d.out*weights[i], d.in*weights[i]
		}
		outs[i], ins[i] = squareRoot(d.out), squareRoot(d.in)
	}
	outs, ins = portions(outs), portions(ins)
	shares := make([]scheduler.Share, len(demands))
	for i := range shares {
		shares[i] = scheduler.Share{Out: outs[i], In: ins[i]}
	}
	return shares
}

// weights returns the jobs' weights in lowest terms, so that roots are rounded alike for equal proportions.
func weights(s *draft.Session) []int64 {
	weights := make([]int64, len(s.Request.Jobs))
	var common int64
	for i := range weights {
		weights[i] = int64(s.Request.Jobs[i].Worth())
		for rest := weights[i]; rest > 0; {
			common, rest = rest, common%rest
		}
	}
	for i := range weights {
		weights[i] /= common
	}
	return weights
}

func squareRoot(n int64) int64 { return int64(math.Sqrt(float64(n))) }

// portions divides scheduler.Whole in proportion to parts, or evenly if there are none, above a floor.
func portions(parts []int64) []int64 {
	n := int64(len(parts))
	var sum int64
	for _, p := range parts {
		sum += p
	}
	if sum == 0 {
		parts, sum = slices.Repeat([]int64{1}, len(parts)), n
	}
	floor := max(1, scheduler.Whole/(8*max(1, n)))
	all := make([]int64, n)
	for i, p := range parts {
		all[i] = floor + (scheduler.Whole-n*floor)*p/sum
	}
	return all
}

// sharesDiffer reports whether a share is so far from what was planned with, by a sixteenth, that planning again may
// help.
func sharesDiffer(planned, shares []scheduler.Share) bool {
	far := func(a, b int64) bool { return max(a-b, b-a) > a/16 }
	for i, s := range shares {
		if far(planned[i].Out, s.Out) || far(planned[i].In, s.In) {
			return true
		}
	}
	return false
}

// sharesOf returns the jobs' shares.
func sharesOf(result *scheduler.Result) []scheduler.Share {
	shares := make([]scheduler.Share, len(result.Jobs))
	for i, j := range result.Jobs {
		shares[i] = j.Share
	}
	return shares
}

// assign tells each job its share.
func assign(s *draft.Session, result *scheduler.Result, shares []scheduler.Share) {
	for i, share := range shares {
		j := &result.Jobs[i]
		j.Share = share
		j.Out, j.In = s.Request.Out.Share(share.Out, scheduler.Whole), s.Request.In.Share(share.In, scheduler.Whole)
	}
}

// movesAny reports whether anything was swapped or recomputed: otherwise the plans do not depend on the link.
func movesAny(result *scheduler.Result) bool {
	return slices.ContainsFunc(result.Jobs, func(j scheduler.Scheduled) bool {
		return slices.ContainsFunc(j.Decisions, func(d scheduler.Decision) bool { return d.Kind != scheduler.Keep })
	})
}

// programsOf compiles the plans of a result; jobs of the same program share it.
func programsOf(s *draft.Session, result *scheduler.Result) []*program.Program {
	programs := make([]*program.Program, len(result.Jobs))
	for i, j := range result.Jobs {
		s.Count(8 * len(j.Plan.Steps))
		same := func(o scheduler.Scheduled) bool { return j.SameProgram(&o) }
		if k := slices.IndexFunc(result.Jobs[:i], same); k >= 0 {
			programs[i] = programs[k]
			continue
		}
		programs[i] = compile.Compile(s.Request.Jobs[i].Graph, j.Plan, j.Layout, compile.Options{Tick: s.Tick})
	}
	return programs
}

// slowdown sums the jobs' predicted iterations over what their ops take, weighed, in parts of ten thousand.
func slowdown(s *draft.Session, result *scheduler.Result, programs []*program.Program) int64 {
	var sum int64
	takes := make([]time.Duration, len(result.Jobs))
	for i, j := range result.Jobs {
		s.Count(8 * len(j.Plan.Steps))
		k := slices.IndexFunc(result.Jobs[:i], func(o scheduler.Scheduled) bool {
			return j.Out == o.Out && j.In == o.In && j.SameProgram(&o)
		})
		if k >= 0 {
			takes[i] = takes[k]
		} else {
			d := program.Durations{Steps: j.Plan.Made, Out: j.Out, In: j.In}
			takes[i] = program.Time(programs[i], d).Iteration
		}
		job := &s.Request.Jobs[i]
		sum += int64(job.Worth()) * int64(takes[i]*10000/max(1, sumOf(job.Latency)))
	}
	return sum
}

func sumOf(latencies []time.Duration) (sum time.Duration) {
	for _, l := range latencies {
		sum += l
	}
	return sum
}
