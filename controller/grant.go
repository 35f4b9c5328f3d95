package controller

import (
	"fmt"
	"maps"
	"slices"

	"tensile/graph"
	"tensile/wire"
)

// grant has jobs train with their newest layouts: those that shrink at once, the others in the order of their submission
// when there is room.
func (m *Machine) grant() {
	for _, shrink := range [...]bool{true, false} {
		for _, j := range m.active() {
			l := j.newest()
			if l == nil || l.granted || j.record.Phase == wire.Ending {
				continue
			}
			claim := j.claim()
			if shrink && l.wire.Arena > claim || m.config.Budget > 0 && m.claims()-claim+max(claim, l.wire.Arena) > m.config.Budget {
				continue
			}
			l.granted = true
			j.record.Granted = l.epoch()
		}
	}
	for _, j := range m.active() {
		if l := j.newest(); j.record.Phase == wire.Starting && l != nil {
			j.record.Why, j.record.Need = "its executor starts", 0
			if !l.granted {
				j.record.Why = fmt.Sprintf("waits for %s that other jobs are giving back", l.wire.Arena)
			}
		}
	}
}

// claims is what all jobs count with together. It is never above the budget.
func (m *Machine) claims() graph.Bytes {
	var sum graph.Bytes
	for _, j := range m.jobs {
		sum += j.claim()
	}
	return sum
}

// place gives jobs without an executor one, and has it find what it needs.
func (m *Machine) place() {
	for _, j := range m.active() {
		if j.record.Executor == "" {
			j.record.Executor = m.executorFor(j)
			m.say(Output{Graph: &Delivery{Executor: j.record.Executor, Job: j.record.Spec.Name, Graph: j.graph}})
		}
		for _, l := range j.layouts {
			if l.granted && !l.delivered {
				l.delivered = true
				m.say(Output{Layout: &Delivery{Executor: j.record.Executor, Job: j.record.Spec.Name, Layout: l.wire}})
			}
		}
	}
}

// executorFor is the one of all jobs, an idle one that has joined, or one that is to be started.
func (m *Machine) executorFor(j *job) string {
	if name := m.vacant(); name != "" {
		return name
	}
	name := fmt.Sprintf("x%d", j.record.Order)
	if j.record.Starts++; j.record.Starts > 1 { // a name is never used again: what is late from its owner would count
		name += fmt.Sprintf(".%d", j.record.Starts)
	}
	m.executors[name] = &executor{name: name, own: true, orders: m.before(name)}
	m.say(Output{Launch: name})
	return name
}

// vacant is an executor that can take another job, "" if there is none. One that was told to leave can not.
func (m *Machine) vacant() string {
	for _, name := range slices.Sorted(maps.Keys(m.executors)) {
		if x := m.executors[name]; !x.gone && !x.orders.Leave && (m.config.Share || x.joined && !x.own && !m.busy(name)) {
			return name
		}
	}
	return ""
}

func (m *Machine) busy(executor string) bool {
	return slices.ContainsFunc(m.active(), func(j *job) bool { return j.record.Executor == executor })
}
