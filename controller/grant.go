package controller

import (
	"fmt"
	"slices"

	"tensile/controller/fleet"
	"tensile/controller/memory"
	"tensile/wire"
)

// grant has jobs train with their newest layouts. Layouts no larger than the job's claim are granted at once, the
// others in the order of the jobs' submission when there is room.
func (d *domain) grant() {
	for _, shrink := range [...]bool{true, false} {
		for _, j := range d.activeJobs() {
			l := j.newestLayout()
			if l == nil || l.granted || !j.canChangePlan() || j.isReplica() && j.claim().IsZero() {
				continue // replicas start together: see startGang
			}
			grows, onHost := !j.claimWith(l).FitsIn(j.claim()), j.hostBytes(l)-j.hostClaim()
			if (grows || onHost > 0 && d.config.HostMemory > 0) && shrink || !d.hasRoom(j, l) {
				continue
			}
			l.granted = true
			j.record.Granted, j.record.Park = l.Epoch(), ""
			d.m.tell(j, Event{Kind: Granted, Epoch: l.Epoch(), Amounts: Amounts{Bytes: l.Wire.Arena}})
		}
	}
	for _, j := range d.activeJobs() {
		if l := j.newestLayout(); j.record.State == wire.JobStarting && l != nil {
			switch {
			case l.granted:
				j.waitFor(wire.Wait{For: wire.WaitExecutor}, d.describeStart(j))
			case j.isReplica() && d.hasRoom(j, l):
				j.waitFor(wire.Wait{For: wire.WaitReplicas}, "waits for the other replicas, as all begin together")
			default:
				w, why := d.describeWait(j, l)
				j.waitFor(w, why+d.speedSuffix(j))
			}
		}
	}
	d.breakDeadlock()
}

// hasRoom reports whether a job may change to a layout beside what all jobs may have.
func (d *domain) hasRoom(j *job, l *layout) bool {
	host := j.hostBytes(l) - j.hostClaim()
	return d.fitsClaim(j, j.claimWith(l)) &&
		(host <= 0 || d.config.HostMemory == 0 || d.totalHostClaims()+host <= d.config.HostMemory)
}

// fitsClaim reports whether the job may have another claim beside what it has, as it may have both while it changes.
func (d *domain) fitsClaim(j *job, c memory.Claim) bool {
	has := j.claim()
	contexts := d.contexts().Sum() + d.startingContexts().Sum()
	return c.FitsIn(has) || d.config.Budget == 0 ||
		d.totalClaims().Remove(has).Add(has.Union(c)).Bytes()+contexts <= d.config.Budget
}

// totalClaims is what all jobs claim together, and what executors out of reach may have. It is above the budget only
// after that was made smaller, or after an executor with gates became silent. Then it only falls until it is not.
func (d *domain) totalClaims() (sum memory.Sum) {
	for j := range d.jobs() {
		sum = sum.Add(j.claim())
	}
	held, _ := d.reservations()
	return sum.Add(memory.Exclusive(held))
}

// assignExecutors gives an executor to each job without one, and stores what it needs for it.
func (d *domain) assignExecutors() {
	for _, j := range d.activeJobs() {
		if j.record.Executor == "" && j.canChangePlan() {
			// The executor may have gone since the job was planned for.
			if d.registered != nil && (d.registered.Drained || d.vacantExecutor(j, nil) == "") {
				d.m.clearPlans(j, true)
				d.m.requeueInPlace(j, fmt.Sprintf("no executor of device %s takes it", d.recordName()))
				continue
			}
			if !d.hasRoomForExecutor(j) {
				j.revokeGrant()
				j.waitFor(wire.Wait{For: wire.WaitMemory, Bytes: d.config.Context},
					fmt.Sprintf("its executor waits for %s that others are giving back", d.config.Context))
				continue
			}
			if j.record.SetExecutor(d.executorFor(j)); j.record.Park == wire.OnDisk {
				j.record.Park = "" // the job begins anew there
			}
			d.m.emit(Output{Graph: &Delivery{Executor: j.record.Executor, Job: j.record.Spec.Name, ID: j.record.Spec.ID,
				Graph: j.graph}})
		}
		for _, l := range j.layouts {
			if l.granted && !l.delivered {
				l.delivered = true
				d.m.emit(Output{Layout: &Delivery{Executor: j.record.Executor, Job: j.record.Spec.Name,
					ID: j.record.Spec.ID, Layout: l.Wire}})
			}
		}
	}
}

// executorFor is the executor of a job that has none: the one of all jobs, an idle one that has joined, or one that is
// to be started.
func (d *domain) executorFor(j *job) string {
	j.record.Incarnation++
	if c := j.record.Checkpoint; c != nil && !j.isReplica() {
		j.record.From = c.Iteration
	}
	if name := d.vacantExecutor(j, nil); name != "" {
		return name
	}
	name := fleet.NameFor(j.record.Order, j.record.Incarnation)
	x := fleet.New(name, d.recordName(), fleet.ForJobs, d.m.storedOrders[name], d.m.now)
	x.Launched, d.m.executors[name] = true, x
	d.m.emit(Output{ProcessOutput: ProcessOutput{Launch: name}})
	return name
}

// vacantExecutor is an executor that can take a job; one that finds the job's newest checkpoint comes before others.
// "": there is none. Those in taken, and those that leave, cannot take it.
func (d *domain) vacantExecutor(j *job, taken map[string]bool) (found string) {
	for _, x := range d.m.executors.Sorted() {
		takes := x.Device == d.recordName() && (x.State == fleet.Present || x.State == fleet.Awaited) &&
			x.Kind != fleet.ForScript && !x.Orders.Leave && !taken[x.Name] && !slices.Contains(j.failedAt, x.Name)
		if !takes || !d.config.OneExecutor &&
			(x.State == fleet.Awaited || x.Kind != fleet.ByHand || d.m.hasJobs(x.Name)) {
			continue
		}
		if x.FindsCheckpoint(j.record.Checkpoint) {
			return x.Name
		}
		if found == "" || d.registered != nil && d.m.countJobsAt(x.Name) < d.m.countJobsAt(found) {
			found = x.Name
		}
	}
	return found
}

// countJobsAt is how many jobs an executor has, or is to have.
func (m *Machine) countJobsAt(executor string) (n int) {
	for _, j := range m.jobs {
		if j.record.Executor == executor && j.hasExecutor() {
			n++
		}
	}
	return n
}

// hasJobs reports whether an executor has jobs, or is to have some.
func (m *Machine) hasJobs(executor string) bool {
	return slices.ContainsFunc(m.jobs, func(j *job) bool { return j.record.Executor == executor && j.hasExecutor() })
}
