package controller

import (
	"fmt"

	"tensile/graph"
	"tensile/wire"
)

// Each process that has the device open takes Config.Context of its memory: this one, and every executor, whether it
// trains or not, until it is known to have ended. These contexts come off the budget. Plans are made for the processes
// that stay and those that are to be started; layouts are granted, and executors started, only when there is room
// beside the processes that there are.

// contexts are those of this process and of all executors that are not known to have ended.
func (d *domain) contexts() wire.Contexts {
	if d.config.Context == 0 {
		return wire.Contexts{}
	}
	c := d.staying()
	for x := range d.executors() {
		if d.leaves(x) {
			c.Processes++
		}
	}
	c.Processes += d.outOfReach().Processes
	return c
}

// staying are the contexts of this process and of the executors that can be reached and are not about to leave.
func (d *domain) staying() wire.Contexts {
	if d.config.Context == 0 {
		return wire.Contexts{}
	}
	c := wire.Contexts{Each: d.config.Context}
	if d.brought == nil {
		c.Processes = 1
	}
	for x := range d.executors() {
		if !x.gone && !x.silent && !d.leaves(x) {
			c.Processes++
		}
	}
	return c
}

// leaves reports whether an executor that can be reached ends by itself, or as soon as it hears that it is to.
func (d *domain) leaves(x *executor) bool {
	return !x.gone && !x.silent && !d.m.busy(x.name) && (x.leaving || x.own && (!d.config.Share || x.orders.Leave))
}

// outOfReach are the contexts of processes that cannot be reached.
func (d *domain) outOfReach() wire.Contexts {
	if d.config.Context == 0 {
		return wire.Contexts{}
	}
	type process struct{ executor, life string }
	away := make(map[process]bool)
	for x := range d.executors() {
		if !x.gone && x.silent {
			away[process{x.name, x.life}] = true
		}
	}
	for _, j := range d.m.jobs {
		for _, h := range j.record.Held {
			if h.On != d.on() {
				continue
			}
			if x := d.m.executors[h.Executor]; x == nil || x.life != h.Life {
				away[process{h.Executor, h.Life}] = true
			}
		}
	}
	return wire.Contexts{Processes: len(away), Each: d.config.Context}
}

// starts says of each of some jobs whether an executor is to be started for it, which takes a context: where it has
// none and none is vacant.
func (d *domain) starts(jobs []*job) []bool {
	starts := make([]bool, len(jobs))
	if d.config.Context == 0 {
		return starts
	}
	taken := make(map[string]bool)
	shared := false // an executor is started that takes the others, too
	for i, j := range jobs {
		if j.record.Executor != "" {
			continue
		}
		name := d.vacant(j, taken)
		starts[i] = name == "" && !shared
		taken[name] = !d.config.Share
		shared = shared || starts[i] && d.config.Share
	}
	return starts
}

// toStart are the contexts of executors that are to be started for jobs that are admitted.
func (d *domain) toStart() wire.Contexts {
	if d.config.Context == 0 {
		return wire.Contexts{}
	}
	c := wire.Contexts{Each: d.config.Context}
	for _, start := range d.starts(d.active()) {
		if start {
			c.Processes++
		}
	}
	return c
}

// mayStart reports whether there is room for what a job's executor takes, if one is to be started for it.
func (d *domain) mayStart(j *job) bool {
	return d.config.Context == 0 || d.config.Budget == 0 || d.vacant(j, nil) != "" ||
		d.taken()+d.config.Context <= d.config.Budget
}

// taken is what jobs and contexts have of the budget.
func (d *domain) taken() graph.Bytes { return d.claims().Bytes() + d.contexts().Sum() }

// recount has jobs planned for again when more processes have the device open than before, beside which plans do not
// fit, or when fewer have.
func (d *domain) recount() {
	if d.config.Context == 0 || d.config.Budget == 0 || d.errand != nil { // whose plans are to come first
		return
	}
	now := d.staying()
	now.Processes += d.toStart().Processes + d.outOfReach().Processes
	before := d.opened
	d.opened = now.Processes
	more := now.Processes > before && d.overfull()
	fewer := now.Processes < before
	if fewer {
		d.want.admission = true
	}
	if d.want.better.none() && (more || fewer && !d.config.NoReplan) {
		d.want.better = because(Processes, "the device has %s now", now)
	}
}

// with is what a message about the budget says of contexts: nothing where there are none.
func with(c wire.Contexts) string {
	if c.Sum() == 0 {
		return ""
	}
	return fmt.Sprintf(", with %s", c)
}
