package plans

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
	// fewJobs is the number of jobs up to which all are planned for anew: that takes a second or two.
	fewJobs = 8
	// staleness is the part of a plan's time by which its latencies may be off before the plan is made anew.
	staleness = 8
	// squeeze is the part by which jobs that make room for another may have less of what they need than all jobs would.
	squeeze = 10
)

// replanIncrementally plans for the jobs of a request after an arrival or a departure. Most jobs keep their present
// plans; a few classes of equal jobs are planned for anew, within what the others leave of the budget and of the link.
// For jobs that share memory by gates see replanByGates. It returns nil where all jobs are to be planned for anew:
// there are few, their plans are out of date, or half of them would change.
func (w *planJob) replanIncrementally(r scheduler.Request) []PlannedJob {
	gates := r.Together && w.MemorySharing == wire.Gates
	if !w.message.Incremental || len(r.Jobs) <= fewJobs || r.Budget == 0 || w.sharesMemory() && !gates {
		return nil
	}
	for i := range r.Jobs {
		if !w.mayKeep(i, &r.Jobs[i]) {
			return nil
		}
	}
	if gates {
		return w.replanByGates(r)
	}
	n := int64(len(r.Jobs))
	out, in := r.Out.Share(1, n), r.In.Share(1, n)
	anew := chooseReplanned(w.jobClasses(&r, out, in), r.Budget)
	if 2*len(anew) > len(r.Jobs) {
		return nil
	}
	some, plan := *w, *w.message
	some.message, some.jobs, plan.Jobs = &plan, nil, nil
	sub := r
	sub.Jobs, sub.Out, sub.In = nil, r.Out.Share(int64(len(anew)), n), r.In.Share(int64(len(anew)), n)
	jobs := make([]PlannedJob, len(r.Jobs))
	for i := range r.Jobs {
		c := &w.message.Jobs[i]
		if slices.Contains(anew, i) {
			plan.Jobs, some.jobs = append(plan.Jobs, *c), append(some.jobs, w.jobs[i])
			sub.Jobs = append(sub.Jobs, r.Jobs[i])
			continue
		}
		sub.Budget -= c.Current.Wire.Arena
		sub.HostBudget -= c.Current.Host + c.HostExtra
		jobs[i] = w.keepPlan(i, &r.Jobs[i], out, in)
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
	planned, err := some.planTogether(sub)
	if err != nil {
		return nil
	}
	for at, i := range anew {
		jobs[i] = planned[at]
	}
	return jobs
}

// mayKeep reports whether a candidate has no plan yet, or one by the same policy for latencies that are not far from
// the present ones.
func (w *planJob) mayKeep(candidate int, j *scheduler.Job) bool {
	c := &w.message.Jobs[candidate]
	switch {
	case c.Spec.Script, c.LastReport != nil, c.DeviceExtra > 0, c.Graph.Replicas() > 1:
		return false
	case c.Current == nil:
		return true
	case c.Profile == nil, c.Current.program == nil, c.Current.Wire.Plan.Policy != w.Policy,
		c.Current.Wire.Plan.Graph != c.Spec.Graph:
		return false
	}
	return isUpToDate(c, c.Current, j.Latency)
}

// isUpToDate reports whether a layout was made for latencies that are not far from these of a candidate.
func isUpToDate(c *Candidate, l *ProvenLayout, latency []time.Duration) bool {
	var made, now time.Duration
	for _, took := range l.Wire.Plan.Made {
		made += took
	}
	for _, took := range stepTimes(c, l, latency) {
		now += took
	}
	return max(made-now, now-made) <= min(made, now)/staleness
}

// keepPlan is a candidate that keeps its plan, with a share of the link.
func (w *planJob) keepPlan(candidate int, j *scheduler.Job, out, in cost.Link) PlannedJob {
	p := PlannedJob{Latencies: scheduler.ColdStart, Out: out, In: in}
	if j.Measured {
		p.Latencies = scheduler.Updated
	}
	if w.message.WantSlowdowns {
		c := &w.message.Jobs[candidate]
		p.Alone = TotalTime(w.jobs[candidate].Latency)
		p.Slowdown = float64(iterationTime(c, c.Current, j.Latency, out, in)) / float64(max(1, p.Alone))
	}
	return p
}

// classKey is what the jobs of an equivalence class have in common, as far as it can be told without their latencies.
type classKey struct {
	graph     graph.Digest
	swapRate  float64
	weight    int
	hostExtra graph.Bytes
}

// classKeyOf is the key of a candidate's equivalence class.
func (w *planJob) classKeyOf(r *scheduler.Request, candidate int) classKey {
	c, j := &w.message.Jobs[candidate], &r.Jobs[candidate]
	return classKey{c.Spec.Graph, j.MaxSwapRate, j.Worth(), c.HostExtra}
}

// jobClass is an equivalence class of candidates.
type jobClass struct {
	// jobs are the indexes of the candidates.
	jobs []int
	// unplanned says that one of them has no plan.
	unplanned bool
	// needs is the memory that all of them need without a plan, in bytes.
	needs graph.Bytes
	// arenas is the memory of those that have a plan, in bytes.
	arenas graph.Bytes
	// lost is the time that those lose per iteration by their plans, weighted.
	lost time.Duration
}

// price is the mean time that the class loses for a byte that it does not have.
func (a *jobClass) price() float64 { return float64(a.lost) / float64(max(1, a.needs-a.arenas)) }

// gain is what so many more bytes are worth to the class, at that price.
func (a *jobClass) gain(free graph.Bytes) float64 {
	return a.price() * float64(min(free, a.needs-a.arenas))
}

// jobClasses returns the equivalence classes of a request's jobs, in the order of their first jobs.
func (w *planJob) jobClasses(r *scheduler.Request, out, in cost.Link) []*jobClass {
	known := make(map[classKey]*jobClass)
	needs := make(map[graph.Digest]graph.Bytes)
	var groups []*jobClass
	for i := range r.Jobs {
		c, j := &w.message.Jobs[i], &r.Jobs[i]
		k := w.classKeyOf(r, i)
		if _, ok := needs[k.graph]; !ok {
			_, needs[k.graph] = peak.Vanilla(c.Graph)
		}
		a := known[k]
		if a == nil {
			a = new(jobClass)
			known[k], groups = a, append(groups, a)
		}
		a.jobs, a.needs = append(a.jobs, i), a.needs+needs[k.graph]
		if c.Current == nil {
			a.unplanned = true
			continue
		}
		a.arenas += c.Current.Wire.Arena
		a.lost += time.Duration(j.Worth()) * max(0, iterationTime(c, c.Current, j.Latency, out,
			in)-TotalTime(j.Latency))
	}
	return groups
}

// chooseReplanned chooses the candidates that are planned for anew, in their order. Candidates without a plan are, and
// their whole classes. For an arrival, the classes to which a byte is worth least make room: as many as it takes for
// the chosen jobs to have about as large a part of what they need as all jobs would have. After a departure, the
// classes to which the free memory is worth most get it, until they need no more.
func chooseReplanned(groups []*jobClass, budget graph.Bytes) []int {
	free, arrival := budget, false
	var needs graph.Bytes
	for _, a := range groups {
		needs, free = needs+a.needs, free-a.arenas
		arrival = arrival || a.unplanned
	}
	slices.SortStableFunc(groups, func(a, b *jobClass) int {
		switch {
		case a.unplanned != b.unplanned && a.unplanned:
			return -1
		case a.unplanned != b.unplanned:
			return 1
		case arrival:
			return cmp.Compare(a.price(), b.price())
		}
		return cmp.Compare(b.gain(free), a.gain(free))
	})
	var anew []int
	var need, has graph.Bytes // of the chosen candidates
	for _, a := range groups {
		enough := need-has >= free
		if arrival {
			enough = float64(has+free)/float64(max(1, need)) >= float64(budget)/float64(max(1, needs))*(1-1./squeeze)
		}
		if !a.unplanned && enough {
			break
		}
		anew = append(anew, a.jobs...)
		need, has = need+a.needs, has+a.arenas
	}
	slices.Sort(anew)
	return anew
}

// stepTimes is what the steps of a candidate's layout take by the latencies of its ops.
func stepTimes(c *Candidate, l *ProvenLayout, latency []time.Duration) []time.Duration {
	all := make([]time.Duration, len(l.Wire.Plan.Steps))
	for i, s := range l.Wire.Plan.Steps {
		all[i] = c.Profile.Variant(s.Op, s.Variant).Takes(latency[s.Op])
	}
	return all
}

// iterationTime is what an iteration of a candidate takes by a layout.
func iterationTime(c *Candidate, l *ProvenLayout, latency []time.Duration, out, in cost.Link) time.Duration {
	return program.Time(l.program, program.Durations{Steps: stepTimes(c, l, latency), Out: out, In: in}).Iteration
}
