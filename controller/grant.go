package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tensile/wire"
)

// grant has jobs train with their newest layouts: those that are no larger than the job's claim at once, the others in
// the order of their submission when there is room.
func (m *Machine) grant() {
	for _, shrink := range [...]bool{true, false} {
		for _, j := range m.active() {
			l := j.newest()
			if l == nil || l.granted || !j.goesOn() {
				continue
			}
			grows, onHost := !j.with(l).within(j.claim()), j.onHost(l)-j.hostClaim()
			if (grows || onHost > 0 && m.config.HostMemory > 0) && shrink || !m.room(j, l) {
				continue
			}
			l.granted = true
			j.record.Granted, j.record.Park = l.epoch(), ""
			m.event(Event{Kind: Granted, Job: j.record.Spec.Name, Epoch: l.epoch(), Bytes: l.Wire.Arena})
		}
	}
	for _, j := range m.active() {
		if l := j.newest(); j.record.State == wire.Starting && l != nil {
			j.record.Why, j.record.Need = m.starting(j), 0
			if !l.granted {
				j.record.Why = m.waitsFor(j, l) + m.then(j)
			}
		}
	}
	m.untie()
}

// room reports whether a job may change to a layout beside what all jobs may have.
func (m *Machine) room(j *job, l *layout) bool {
	host := j.onHost(l) - j.hostClaim()
	return m.fits(j, j.with(l)) &&
		(host <= 0 || m.config.HostMemory == 0 || m.hostClaims()+host <= m.config.HostMemory)
}

// fits reports whether a job may have another claim beside what it has, as it may while it changes.
func (m *Machine) fits(j *job, c Claim) bool {
	has := j.claim()
	return c.within(has) || m.config.Budget == 0 ||
		m.claims().Without(has).With(has.or(c)).Bytes()+m.contexts().Sum()+m.toStart().Sum() <= m.config.Budget
}

// claims is what all jobs count with together, and what executors out of reach may have. It is above the budget only
// after that was made smaller, or an executor with gates fell silent, and then only falls until it is not.
func (m *Machine) claims() (sum Together) {
	for _, j := range m.jobs {
		sum = sum.With(j.claim()).With(whole(j.held()))
	}
	return sum
}

// place gives jobs without an executor one, and has it find what it needs.
func (m *Machine) place() {
	for _, j := range m.active() {
		if j.record.Executor == "" && j.goesOn() {
			if !m.mayStart(j) {
				j.revoke()
				j.record.Why = fmt.Sprintf("its executor waits for %s that others are giving back", m.config.Context)
				continue
			}
			j.record.Executor = m.executorFor(j)
			m.say(Output{Graph: &Delivery{Executor: j.record.Executor, Job: j.record.Spec.Name, ID: j.record.Spec.ID,
				Graph: j.graph}})
		}
		for _, l := range j.layouts {
			if l.granted && !l.delivered {
				l.delivered = true
				m.say(Output{Layout: &Delivery{Executor: j.record.Executor, Job: j.record.Spec.Name,
					ID: j.record.Spec.ID, Layout: l.Wire}})
			}
		}
	}
}

// executorFor is the one of all jobs, an idle one that has joined, or one that is to be started.
func (m *Machine) executorFor(j *job) string {
	j.record.Incarnation++
	if c := j.record.Checkpoint; c != nil {
		j.record.From = c.Iteration
	}
	if name := m.vacant(j, nil); name != "" {
		return name
	}
	name := fmt.Sprintf("x%d", j.record.Seq)
	if j.record.Incarnation > 1 { // a name is never used again: what is late from its owner would count
		name += fmt.Sprintf(".%d", j.record.Incarnation)
	}
	m.executors[name] = &executor{name: name, own: true, launched: true, heard: m.now, orders: m.stored[name]}
	m.say(Output{Launch: name})
	return name
}

// vacant is an executor that can take a job, "" if there is none: one on the host of the job's newest checkpoint before
// others. One that leaves cannot.
func (m *Machine) vacant(j *job, taken map[string]bool) (found string) {
	for _, name := range slices.Sorted(maps.Keys(m.executors)) {
		x := m.executors[name]
		if x.gone || x.silent || x.script || x.leaving || x.orders.Leave || taken[name] ||
			slices.Contains(j.tried, name) || !m.config.Share && (!x.joined || x.own || m.busy(name)) {
			continue
		}
		if host, _, _ := strings.Cut(x.host, ", "); j.record.Checkpoint != nil && j.record.Checkpoint.Host == host {
			return name
		}
		found = cmp.Or(found, name)
	}
	return found
}

func (m *Machine) busy(executor string) bool {
	return slices.ContainsFunc(m.jobs, func(j *job) bool { return j.record.Executor == executor && j.placed() })
}
