package metrics

import (
	"maps"
	"slices"
	"time"

	"tensile/controller"
	"tensile/wire"
)

// states are those of jobs, so that a state without jobs is 0 and not missing.
var states = []wire.JobState{wire.Queued, wire.Starting, wire.Training, wire.Unknown, wire.Parking, wire.Parked,
	wire.Ending, wire.Done, wire.Halted, wire.Broken}

func (s series) ofDevice(v *controller.View) {
	d := &s.device
	used, host := controller.Used(&v.Answer)
	s.put(d.used, float64(used))
	s.put(d.contexts, float64(v.Contexts.Sum()))
	s.put(d.hostUsed, float64(host))
	if v.Budget > 0 {
		s.put(d.budget, float64(v.Budget))
	}
	if v.HostMemory > 0 {
		s.put(d.hostBudget, float64(v.HostMemory))
	}
	if v.Link.Out > 0 {
		s.put(d.link, float64(v.Link.Out), "out")
		s.put(d.link, float64(v.Link.In), "in")
	}
	counts := make(map[wire.JobState]int)
	for i := range v.Jobs {
		counts[v.Jobs[i].State]++
	}
	for _, state := range states {
		s.put(d.jobs, float64(counts[state]), string(state))
	}
	s.put(d.executors, float64(v.Joined), "joined")
	s.put(d.executors, float64(v.Silent), "silent")
	s.put(d.reports, float64(v.Reports))
	s.put(d.lost, float64(v.LostReports))
}

func (s series) ofOwner(owner string, g *gauges, t controller.Tally) {
	o := &s.owner
	s.put(o.arena, float64(g.arena), owner)
	s.put(o.touched, float64(g.touched), owner)
	s.put(o.swapped, float64(g.swapped), owner)
	s.put(o.iterations, float64(t.Iterations), owner)
	s.put(o.served, t.Served.Seconds(), owner)
	s.put(o.stall, t.Stall.Seconds(), owner)
	s.put(o.gate, t.Gate.Seconds(), owner)
	s.put(o.moved, float64(t.Out), owner, "out")
	s.put(o.moved, float64(t.In), owner, "in")
	s.put(o.queued, t.Queued.Seconds(), owner)
	for _, cause := range controller.Causes() {
		s.put(o.plans, float64(t.Plans[cause]), owner, string(cause))
	}
	for _, state := range slices.DeleteFunc(slices.Clone(states), func(p wire.JobState) bool { return !p.Over() }) {
		s.put(o.ended, float64(t.Ended[state]), owner, string(state))
	}
}

func (s series) ofTenant(t *wire.TenantState) {
	s.put(s.owner.share, float64(t.Share), t.Name)
	s.put(s.owner.speed, t.Speed, t.Name)
	s.put(s.owner.behind, t.Behind.Seconds(), t.Name)
}

func (s series) ofJob(r *wire.Record, l *controller.Live) {
	j, job, owner := &s.job, r.Spec.Name, r.Spec.Owner
	s.put(j.info, 1, job, owner, string(r.State), r.Spec.Model, r.Executor)
	s.put(j.arena, float64(r.Arena), job, owner)
	s.put(j.slotPeak, float64(r.SlotPeak), job, owner)
	s.put(j.touched, float64(l.Touched), job, owner)
	s.put(j.swapped, float64(l.Swapped), job, owner)
	s.put(j.host, float64(r.Host), job, owner)
	s.put(j.target, float64(r.Spec.Iterations-r.Iteration), job, owner)
	s.put(j.waits, float64(r.Need), job, owner)
	s.put(j.iterations, float64(l.Iterations), job, owner)
	s.put(j.stall, l.Stall.Seconds(), job, owner)
	s.put(j.gate, l.Gate.Seconds(), job, owner)
	s.put(j.moved, float64(l.Out), job, owner, "out")
	s.put(j.moved, float64(l.In), job, owner, "in")
	s.put(j.queued, l.Queued.Seconds(), job, owner)
	for _, cause := range slices.Sorted(maps.Keys(l.Plans)) {
		s.put(j.plans, float64(l.Plans[cause]), job, owner, string(cause))
	}
	if r.Pace > 0 && r.State == wire.Training {
		s.put(j.pace, r.Pace.Seconds(), job, owner)
	}
	if r.Measured > 0 {
		s.put(j.slowdown, r.Measured, job, owner)
	}
	if l.PredictionError >= 0 {
		s.put(j.drift, l.PredictionError, job, owner)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// seconds is a duration as Prometheus has it.
func seconds(d time.Duration) float64 { return max(0, d).Seconds() }
