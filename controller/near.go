package controller

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/peak"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/wire"
)

const (
	// few is the number of jobs up to which all are planned for anew: that takes a second or two.
	few = 8
	// staleness is the part of a plan's time by which its latencies may be off before the plan is made anew.
	staleness = 8
	// squeeze is the part by which jobs that make room for another may have less of what they need than all jobs would.
	squeeze = 10
)

// near plans for the jobs of a request after an arrival or a departure by the plans that there are: most jobs keep
// theirs, and those of a few groups are planned for anew within what the others leave of the budget and of the link.
// For jobs that share memory by gates see nearByGates. It returns nil where all jobs are to be planned for anew: there
// are few, their plans are out of date, or half of them would change.
func (w *work) near(r scheduler.Request) []PlannedJob {
	gates := r.Together && w.MemorySharing == wire.Gates
	if !w.plan.Near || len(r.Jobs) <= few || r.Budget == 0 || w.shares() && !gates {
		return nil
	}
	for i := range r.Jobs {
		if !w.mayKeep(i, &r.Jobs[i]) {
			return nil
		}
	}
	if gates {
		return w.nearByGates(r)
	}
	n := int64(len(r.Jobs))
	out, in := r.Out.Share(1, n), r.In.Share(1, n)
	anew := changing(w.kins(&r, out, in), r.Budget)
	if 2*len(anew) > len(r.Jobs) {
		return nil
	}
	some, plan := *w, *w.plan
	some.plan, some.jobs, plan.Jobs = &plan, nil, nil
	sub := r
	sub.Jobs, sub.Out, sub.In = nil, r.Out.Share(int64(len(anew)), n), r.In.Share(int64(len(anew)), n)
	jobs := make([]PlannedJob, len(r.Jobs))
	for i := range r.Jobs {
		c := &w.plan.Jobs[i]
		if slices.Contains(anew, i) {
			plan.Jobs, some.jobs = append(plan.Jobs, *c), append(some.jobs, w.jobs[i])
			sub.Jobs = append(sub.Jobs, r.Jobs[i])
			continue
		}
		sub.Budget -= c.Has.Wire.Arena
		sub.HostBudget -= c.Has.Host + c.Beside
		jobs[i] = w.kept(i, &r.Jobs[i], out, in)
	}
	if r.HostBudget == 0 {
		sub.HostBudget = 0
	} else if sub.HostBudget <= 0 {
		return nil
	}
	switch {
	case sub.Budget >= 0 && len(anew) == 0:
		return jobs
	case sub.Budget <= 0:
		return nil
	}
	planned, err := some.together(sub)
	if err != nil {
		return nil
	}
	for at, i := range anew {
		jobs[i] = planned[at]
	}
	return jobs
}

// mayKeep reports whether a candidate has no plan yet, or one by the same policy for latencies that are not far from
// those of now.
func (w *work) mayKeep(candidate int, j *scheduler.Job) bool {
	c := &w.plan.Jobs[candidate]
	switch {
	case c.Spec.Script, c.Last != nil, c.Beyond > 0, c.Graph.Replicas() > 1:
		return false
	case c.Has == nil:
		return true
	case c.Profile == nil, c.Has.program == nil, c.Has.Wire.Plan.Policy != w.Policy,
		c.Has.Wire.Plan.Graph != c.Spec.Graph:
		return false
	}
	return fresh(c, c.Has, j.Latency)
}

// fresh reports whether a layout was made for latencies that are not far from these of a candidate.
func fresh(c *Candidate, l *ProvenLayout, latency []time.Duration) bool {
	var made, now time.Duration
	for _, took := range l.Wire.Plan.Made {
		made += took
	}
	for _, took := range takes(c, l, latency) {
		now += took
	}
	return max(made-now, now-made) <= min(made, now)/staleness
}

// kept is a candidate that keeps its plan, with a share of the link.
func (w *work) kept(candidate int, j *scheduler.Job, out, in cost.Link) PlannedJob {
	p := PlannedJob{Latencies: scheduler.ColdStart, Out: out, In: in}
	if j.Measured {
		p.Latencies = scheduler.Updated
	}
	if w.plan.Weigh {
		c := &w.plan.Jobs[candidate]
		p.Alone = total(w.jobs[candidate].Latency)
		p.Slowdown = float64(iteration(c, c.Has, j.Latency, out, in)) / float64(max(1, p.Alone))
	}
	return p
}

// peer is what jobs have in common that are equal as far as one can tell without their latencies.
type peer struct {
	graph    graph.Digest
	swapRate float64
	weight   int
	beside   graph.Bytes
}

func (w *work) peerOf(r *scheduler.Request, candidate int) peer {
	c, j := &w.plan.Jobs[candidate], &r.Jobs[candidate]
	return peer{c.Spec.Graph, j.MaxSwapRate, j.Worth(), c.Beside}
}

// kin is a group of equal candidates.
type kin struct {
	jobs  []int
	fresh bool          // one of them has no plan
	needs graph.Bytes   // of all of them, without a plan
	has   graph.Bytes   // the arenas of those that have a plan
	lost  time.Duration // by those in an iteration each, by weight
}

// price is what the group loses for a byte that it does not have, in the mean.
func (a *kin) price() float64 { return float64(a.lost) / float64(max(1, a.needs-a.has)) }

// gain is what so many more bytes are worth to the group, at that price.
func (a *kin) gain(free graph.Bytes) float64 { return a.price() * float64(min(free, a.needs-a.has)) }

// kins returns the groups of a request's jobs, in the order of their first ones.
func (w *work) kins(r *scheduler.Request, out, in cost.Link) []*kin {
	known := make(map[peer]*kin)
	needs := make(map[graph.Digest]graph.Bytes)
	var groups []*kin
	for i := range r.Jobs {
		c, j := &w.plan.Jobs[i], &r.Jobs[i]
		k := w.peerOf(r, i)
		if _, ok := needs[k.graph]; !ok {
			_, needs[k.graph] = peak.Vanilla(c.Graph)
		}
		a := known[k]
		if a == nil {
			a = new(kin)
			known[k], groups = a, append(groups, a)
		}
		a.jobs, a.needs = append(a.jobs, i), a.needs+needs[k.graph]
		if c.Has == nil {
			a.fresh = true
			continue
		}
		a.has += c.Has.Wire.Arena
		a.lost += time.Duration(j.Worth()) * max(0, iteration(c, c.Has, j.Latency, out, in)-total(j.Latency))
	}
	return groups
}

// changing chooses the candidates that are planned for anew, in their order. Those without a plan are, and all that are
// like them. For an arrival the groups to which a byte is worth least make room, as many as it takes for them to have
// about as much of what they need as all jobs would have. After a departure the groups to which what is free is worth
// most get it, until they need no more.
func changing(groups []*kin, budget graph.Bytes) []int {
	free, arrival := budget, false
	var needs graph.Bytes
	for _, a := range groups {
		needs, free = needs+a.needs, free-a.has
		arrival = arrival || a.fresh
	}
	slices.SortStableFunc(groups, func(a, b *kin) int {
		switch {
		case a.fresh != b.fresh && a.fresh:
			return -1
		case a.fresh != b.fresh:
			return 1
		case arrival:
			return cmp.Compare(a.price(), b.price())
		}
		return cmp.Compare(b.gain(free), a.gain(free))
	})
	var anew []int
	var need, has graph.Bytes // of those chosen
	for _, a := range groups {
		enough := need-has >= free
		if arrival {
			enough = float64(has+free)/float64(max(1, need)) >= float64(budget)/float64(max(1, needs))*(1-1./squeeze)
		}
		if !a.fresh && enough {
			break
		}
		anew = append(anew, a.jobs...)
		need, has = need+a.needs, has+a.has
	}
	slices.Sort(anew)
	return anew
}

// takes is what the steps of a candidate's layout take by the latencies of its ops.
func takes(c *Candidate, l *ProvenLayout, latency []time.Duration) []time.Duration {
	all := make([]time.Duration, len(l.Wire.Plan.Steps))
	for i, s := range l.Wire.Plan.Steps {
		all[i] = c.Profile.Variant(s.Op, s.Variant).Takes(latency[s.Op])
	}
	return all
}

// iteration is what an iteration of a candidate takes by a layout.
func iteration(c *Candidate, l *ProvenLayout, latency []time.Duration, out, in cost.Link) time.Duration {
	return program.Time(l.program, program.Durations{Steps: takes(c, l, latency), Out: out, In: in}).Iteration
}
