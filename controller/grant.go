package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tensile/wire"
)

// grant has jobs train with their newest layouts: those that are no larger than the job's claim at once, the others in
// the order of their submission when there is room.
func (d *domain) grant() {
	for _, shrink := range [...]bool{true, false} {
		for _, j := range d.active() {
			l := j.newest()
			if l == nil || l.granted || !j.goesOn() || j.replica() && j.claim().none() {
				continue // replicas begin together: see enter
			}
			grows, onHost := !j.with(l).within(j.claim()), j.onHost(l)-j.hostClaim()
			if (grows || onHost > 0 && d.config.HostMemory > 0) && shrink || !d.room(j, l) {
				continue
			}
			l.granted = true
			j.record.Granted, j.record.Park = l.epoch(), ""
			d.m.event(Event{Kind: Granted, Job: j.record.Spec.Name, Epoch: l.epoch(), Bytes: l.Wire.Arena})
		}
	}
	for _, j := range d.active() {
		if l := j.newest(); j.record.State == wire.JobStarting && l != nil {
			j.record.Reason, j.record.Need = d.starting(j), 0
			if !l.granted {
				j.record.Reason = d.waitsFor(j, l) + d.then(j)
			}
			if !l.granted && j.replica() && d.room(j, l) {
				j.record.Reason = "waits for the other replicas, as all begin together"
			}
		}
	}
	d.untie()
}

// room reports whether a job may change to a layout beside what all jobs may have.
func (d *domain) room(j *job, l *layout) bool {
	host := j.onHost(l) - j.hostClaim()
	return d.fits(j, j.with(l)) &&
		(host <= 0 || d.config.HostMemory == 0 || d.hostClaims()+host <= d.config.HostMemory)
}

// fits reports whether a job may have another claim beside what it has, as it may while it changes.
func (d *domain) fits(j *job, c Claim) bool {
	has := j.claim()
	return c.within(has) || d.config.Budget == 0 ||
		d.claims().Without(has).With(has.or(c)).Bytes()+d.contexts().Sum()+d.toStart().Sum() <= d.config.Budget
}

// claims is what all jobs count with together, and what executors out of reach may have. It is above the budget only
// after that was made smaller, or an executor with gates fell silent, and then only falls until it is not.
func (d *domain) claims() (sum Together) {
	for j := range d.jobs() {
		sum = sum.With(j.claim())
	}
	held, _ := d.held()
	return sum.With(whole(held))
}

// place gives jobs without an executor one, and has it find what it needs.
func (d *domain) place() {
	for _, j := range d.active() {
		if j.record.Executor == "" && j.goesOn() {
			if d.brought != nil && (d.brought.Drained || d.vacant(j, nil) == "") { // since it was planned for
				d.m.clear(j, true)
				d.m.enqueueAgain(j, fmt.Sprintf("no executor of device %s takes it", d.on()))
				continue
			}
			if !d.mayStart(j) {
				j.revoke()
				j.record.Reason = fmt.Sprintf("its executor waits for %s that others are giving back", d.config.Context)
				continue
			}
			if j.record.SetExecutor(d.executorFor(j)); j.record.Park == wire.OnDisk {
				j.record.Park = "" // it begins there
			}
			d.m.say(Output{Graph: &Delivery{Executor: j.record.Executor, Job: j.record.Spec.Name, ID: j.record.Spec.ID,
				Graph: j.graph}})
		}
		for _, l := range j.layouts {
			if l.granted && !l.delivered {
				l.delivered = true
				d.m.say(Output{Layout: &Delivery{Executor: j.record.Executor, Job: j.record.Spec.Name,
					ID: j.record.Spec.ID, Layout: l.Wire}})
			}
		}
	}
}

// executorFor is the one of all jobs, an idle one that has joined, or one that is to be started.
func (d *domain) executorFor(j *job) string {
	j.record.Incarnation++
	if c := j.record.Checkpoint; c != nil && !j.replica() {
		j.record.From = c.Iteration
	}
	if name := d.vacant(j, nil); name != "" {
		return name
	}
	name := fmt.Sprintf("x%d", j.record.Order)
	if j.record.Incarnation > 1 { // a name is never used again: what is late from its owner would count
		name += fmt.Sprintf(".%d", j.record.Incarnation)
	}
	d.m.executors[name] = &executor{name: name, domain: d, own: true, launched: true, heard: d.m.now,
		orders: d.m.stored[name]}
	d.m.say(Output{Launch: name})
	return name
}

// finds reports whether an executor has the folder of a checkpoint or, of one that does not say which it has, is on the
// host of that.
func (x *executor) finds(c *wire.Checkpoint) bool {
	if c == nil {
		return false
	}
	if x.folder != "" && c.Folder != "" {
		return x.folder == c.Folder
	}
	host, _, _ := strings.Cut(x.host, ", ")
	return host == c.Host
}

// vacant is an executor that can take a job, "" if there is none: one that finds the job's newest checkpoint before
// others. One that leaves cannot.
func (d *domain) vacant(j *job, taken map[string]bool) (found string) {
	for _, name := range slices.Sorted(maps.Keys(d.m.executors)) {
		x := d.m.executors[name]
		if x.domain != d || x.gone || x.silent || x.script || x.leaving || x.orders.Leave || taken[name] ||
			slices.Contains(j.tried, name) ||
			!d.config.Share && (!x.joined || x.own || d.m.busy(name)) {
			continue
		}
		if x.finds(j.record.Checkpoint) {
			return name
		}
		if found == "" || d.brought != nil && d.m.jobsAt(name) < d.m.jobsAt(found) {
			found = name
		}
	}
	return found
}

// jobsAt is how many jobs an executor has, or is to have.
func (m *Machine) jobsAt(executor string) (n int) {
	for _, j := range m.jobs {
		if j.record.Executor == executor && j.placed() {
			n++
		}
	}
	return n
}

func (m *Machine) busy(executor string) bool {
	return slices.ContainsFunc(m.jobs, func(j *job) bool { return j.record.Executor == executor && j.placed() })
}
