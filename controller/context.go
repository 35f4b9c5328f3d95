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
func (m *Machine) contexts() wire.Contexts {
	if m.config.Context == 0 {
		return wire.Contexts{}
	}
	c := m.staying()
	for _, x := range m.executors {
		if m.leaves(x) {
			c.Processes++
		}
	}
	c.Processes += m.outOfReach().Processes
	return c
}

// staying are the contexts of this process and of the executors that can be reached and are not about to leave.
func (m *Machine) staying() wire.Contexts {
	if m.config.Context == 0 {
		return wire.Contexts{}
	}
	c := wire.Contexts{Processes: 1, Each: m.config.Context}
	for _, x := range m.executors {
		if !x.gone && !x.silent && !m.leaves(x) {
			c.Processes++
		}
	}
	return c
}

// leaves reports whether an executor that can be reached ends by itself, or as soon as it hears that it is to.
func (m *Machine) leaves(x *executor) bool {
	return !x.gone && !x.silent && !m.busy(x.name) && (x.leaving || x.own && (!m.config.Share || x.orders.Leave))
}

// outOfReach are the contexts of processes that cannot be reached.
func (m *Machine) outOfReach() wire.Contexts {
	if m.config.Context == 0 {
		return wire.Contexts{}
	}
	type process struct{ executor, life string }
	away := make(map[process]bool)
	for _, x := range m.executors {
		if !x.gone && x.silent {
			away[process{x.name, x.life}] = true
		}
	}
	for _, j := range m.jobs {
		for _, h := range j.record.Held {
			if x := m.executors[h.Executor]; x == nil || x.life != h.Life {
				away[process{h.Executor, h.Life}] = true
			}
		}
	}
	return wire.Contexts{Processes: len(away), Each: m.config.Context}
}

// starts says of each of some jobs whether an executor is to be started for it, which takes a context: where it has
// none and none is vacant.
func (m *Machine) starts(jobs []*job) []bool {
	starts := make([]bool, len(jobs))
	if m.config.Context == 0 {
		return starts
	}
	taken := make(map[string]bool)
	shared := false // an executor is started that takes the others, too
	for i, j := range jobs {
		if j.record.Executor != "" {
			continue
		}
		name := m.vacant(j, taken)
		starts[i] = name == "" && !shared
		taken[name] = !m.config.Share
		shared = shared || starts[i] && m.config.Share
	}
	return starts
}

// toStart are the contexts of executors that are to be started for jobs that are admitted.
func (m *Machine) toStart() wire.Contexts {
	if m.config.Context == 0 {
		return wire.Contexts{}
	}
	c := wire.Contexts{Each: m.config.Context}
	for _, start := range m.starts(m.active()) {
		if start {
			c.Processes++
		}
	}
	return c
}

// mayStart reports whether there is room for what a job's executor takes, if one is to be started for it.
func (m *Machine) mayStart(j *job) bool {
	return m.config.Context == 0 || m.config.Budget == 0 || m.vacant(j, nil) != "" ||
		m.taken()+m.config.Context <= m.config.Budget
}

// taken is what jobs and contexts have of the budget.
func (m *Machine) taken() graph.Bytes { return m.claims().Bytes() + m.contexts().Sum() }

// recount has jobs planned for again when more processes have the device open than before, beside which plans do not
// fit, or when fewer have.
func (m *Machine) recount() {
	if m.config.Context == 0 || m.config.Budget == 0 || m.errand != nil { // whose plans are to come first
		return
	}
	now := m.staying()
	now.Processes += m.toStart().Processes + m.outOfReach().Processes
	before := m.opened
	m.opened = now.Processes
	more := now.Processes > before && m.overfull()
	fewer := now.Processes < before
	if fewer {
		m.want.admission = true
	}
	if m.want.better.none() && (more || fewer && !m.config.NoReplan) {
		m.want.better = because(Processes, "the device has %s now", now)
	}
}

// with is what a message about the budget says of contexts: nothing where there are none.
func with(c wire.Contexts) string {
	if c.Sum() == 0 {
		return ""
	}
	return fmt.Sprintf(", with %s", c)
}
