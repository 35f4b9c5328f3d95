package controller

import (
	"tensile/controller/fleet"
	"tensile/graph"
	"tensile/wire"
)

// Each process that has the device open takes Config.Context of its memory: this process, and every executor, whether
// it trains or not, until it is known to have ended. These contexts come off the budget. Plans are made for the
// processes that stay and for those that are to be started. Layouts are granted, and executors started, only when there
// is room beside the present processes.

// contexts are those of this process and of all executors that are not known to have ended.
func (d *domain) contexts() wire.Contexts {
	if d.config.Context == 0 {
		return wire.Contexts{}
	}
	c := d.stayingContexts()
	for x := range d.executors() {
		if d.isLeaving(x) {
			c.Processes++
		}
	}
	c.Processes += d.unreachableContexts().Processes
	return c
}

// stayingContexts are those of this process and of the executors that can be reached and are not about to leave.
func (d *domain) stayingContexts() wire.Contexts {
	if d.config.Context == 0 {
		return wire.Contexts{}
	}
	c := wire.Contexts{Each: d.config.Context}
	if d.registered == nil {
		c.Processes = 1
	}
	for x := range d.executors() {
		if !x.IsSilent() && !d.isLeaving(x) {
			c.Processes++
		}
	}
	return c
}

// isLeaving reports whether an executor that can be reached ends by itself, or as soon as its orders arrive.
func (d *domain) isLeaving(x *fleet.Executor) bool {
	return !x.IsSilent() && !d.m.hasJobs(x.Name) && (x.State == fleet.Leaving ||
		x.Kind != fleet.ByHand && (!d.config.OneExecutor || x.Orders.Leave))
}

// unreachableContexts are those of processes that cannot be reached.
func (d *domain) unreachableContexts() wire.Contexts {
	if d.config.Context == 0 {
		return wire.Contexts{}
	}
	type process struct{ executor, life string }
	away := make(map[process]bool)
	for x := range d.executors() {
		if x.IsSilent() {
			away[process{x.Name, x.Life}] = true
		}
	}
	for _, j := range d.m.jobs {
		for _, h := range j.record.Held {
			if h.On != d.recordName() {
				continue
			}
			if x := d.m.executors[h.Executor]; x == nil || x.Life != h.Life {
				away[process{h.Executor, h.Life}] = true
			}
		}
	}
	return wire.Contexts{Processes: len(away), Each: d.config.Context}
}

// needExecutors says, for each of some jobs, whether an executor is to be started for it, which takes a context: the
// job has none and none is vacant.
func (d *domain) needExecutors(jobs []*job) []bool {
	starts := make([]bool, len(jobs))
	if d.config.Context == 0 {
		return starts
	}
	taken := make(map[string]bool)
	shared := false // one executor is started for all jobs
	for i, j := range jobs {
		if j.record.Executor != "" {
			continue
		}
		name := d.vacantExecutor(j, taken)
		starts[i] = name == "" && !shared
		taken[name] = !d.config.OneExecutor
		shared = shared || starts[i] && d.config.OneExecutor
	}
	return starts
}

// startingContexts are those of executors that are to be started for jobs that are admitted.
func (d *domain) startingContexts() wire.Contexts {
	if d.config.Context == 0 {
		return wire.Contexts{}
	}
	c := wire.Contexts{Each: d.config.Context}
	for _, start := range d.needExecutors(d.activeJobs()) {
		if start {
			c.Processes++
		}
	}
	return c
}

// hasRoomForExecutor reports whether the budget has room for the context of a job's executor, if one is to be started
// for it.
func (d *domain) hasRoomForExecutor(j *job) bool {
	return d.config.Context == 0 || d.config.Budget == 0 || d.vacantExecutor(j, nil) != "" ||
		d.takenBytes()+d.config.Context <= d.config.Budget
}

// takenBytes is what jobs and contexts take of the budget.
func (d *domain) takenBytes() graph.Bytes { return d.totalClaims().Bytes() + d.contexts().Sum() }

// replanForContexts has jobs planned for again when more processes than before have the device open, so that plans do
// not fit beside them, or when fewer have.
func (d *domain) replanForContexts() {
	if d.config.Context == 0 || d.config.Budget == 0 || d.request != nil { // the plans of the open request come first
		return
	}
	now := d.stayingContexts()
	now.Processes += d.startingContexts().Processes + d.unreachableContexts().Processes
	before := d.openContexts
	d.openContexts = now.Processes
	more := now.Processes > before && d.isOverfull()
	fewer := now.Processes < before
	if fewer {
		d.pending.admission = true
	}
	if d.pending.replan.isZero() && (more || fewer && !d.config.NoReplan) {
		d.pending.replan = newReason(Processes, "the device has %s now", now)
	}
}
