package controller

import (
	"fmt"
	"iter"
	"slices"

	"tensile/controller/fleet"
	"tensile/controller/memory"
	"tensile/controller/queue"
	"tensile/graph"
	"tensile/wire"
)

// waitingJobs are the queued jobs that may begin, in the order of sortQueue. No job is among them that comes behind one
// that is restarting.
func (d *domain) waitingJobs() []*job {
	waiting := slices.DeleteFunc(slices.Clone(d.m.jobs), func(j *job) bool {
		if j.damage != "" {
			return true
		}
		if d.m.isRestarting(j) {
			return j.domain != d && !(j.isFree() && d.mayTake(j))
		}
		return j.domain != d || j.record.State != wire.JobQueued || j.isBlocked() || j.found.overtakable ||
			d.m.isPausing(j) || d.m.isUnreachable(j) ||
			j.checkpointDeadline > 0 && d.vacantExecutor(j, nil) == "" || !d.mayTakeFree(j) ||
			!d.m.mayBePlanned(j)
	})
	d.m.sortQueue(waiting)
	if first := slices.IndexFunc(waiting, d.m.isRestarting); first >= 0 {
		waiting = waiting[:first]
	}
	unheld := slices.DeleteFunc(slices.Clone(waiting), func(j *job) bool {
		_, held := d.throttles(j)
		return held
	})
	if len(d.ledger.Accounts) > 1 {
		unheld = queue.OneBack(unheld, (*job).queued)
	}
	passed := func(j *job) bool { return j.found.overtakable }
	if len(unheld) == 0 && len(d.activeJobs()) == 0 && slices.ContainsFunc(slices.Collect(d.jobs()), passed) {
		return waiting // the jobs that they would wait for cannot begin
	}
	return unheld
}

// isRestarting reports whether a job has lost its executor once and will restart shortly. Until then no job behind it
// gets the memory that it had.
func (m *Machine) isRestarting(j *job) bool {
	return j.damage == "" && j.record.State == wire.JobQueued && m.isPausing(j) && j.record.Restarts <= 1
}

// mayTakeFree reports whether the device may take a job, if that has a choice of devices. It is true for other jobs.
func (d *domain) mayTakeFree(j *job) bool {
	return !j.isFree() || d.mayTake(j)
}

// unblock has the blocked jobs looked at again, because there is more memory.
func (m *Machine) unblock() {
	for _, j := range m.jobs {
		if j.isBlocked() {
			j.unchecked = true
			m.retryAdmission(j.domain)
		}
	}
}

// queued is the job as the queue sees it.
func (j *job) queued() queue.Job {
	return queue.Job{Tenant: j.tenant(), Priority: j.priority(), Since: j.record.Waiting,
		Gang: j.record.Spec.Replica.Group, GaveWay: j.record.Preempted}
}

// queuedAs are jobs as the queue sees them.
func queuedAs(jobs []*job) []queue.Job {
	list := make([]queue.Job, len(jobs))
	for i, j := range jobs {
		list[i] = j.queued()
	}
	return list
}

// line is what the order of queued jobs depends on.
func (m *Machine) line() *queue.Line {
	l := &queue.Line{Now: m.now, Aging: m.config.Aging, Shares: m.shares}
	if m.hasTenants() {
		l.Active = make(map[string]int)
		for _, j := range m.jobs {
			if j.isActive() {
				l.Active[j.tenant()]++
			}
		}
	}
	return l
}

// sortQueue orders queued jobs as they are to begin.
func (m *Machine) sortQueue(waiting []*job) { queue.Sort(m.line(), waiting, (*job).queued) }

// failMissingCheckpoints has jobs fail that have waited too long for an executor with their checkpoint.
func (m *Machine) failMissingCheckpoints() {
	for _, j := range m.jobs {
		if j.record.State == wire.JobQueued && j.checkpointDeadline > 0 && j.checkpointDeadline <= m.now &&
			!m.isBeingPlanned(j) && !m.isCheckpointReachable(j) {
			c := j.record.Checkpoint
			if j.isReplica() {
				m.endJob(j, wire.JobFailed,
					fmt.Sprintf("no executor has its checkpoint after %d iterations: start one on "+
						"%s with that folder (--checkpoints)", j.record.From, c.Host), nil)
				continue
			}
			m.endJob(j, wire.JobFailed, fmt.Sprintf("no executor has its checkpoint after %d iterations, %s on %s: "+
				"start one there with that folder (--checkpoints), or copy the file, and submit the job again "+
				"with --from FILE", c.Iteration, c.File, c.Host), nil)
		}
	}
}

// isCheckpointReachable reports whether an executor can be reached that finds a job's newest checkpoint but may not
// take the job now: its device is drained, or is another than the one that the job asks for.
func (m *Machine) isCheckpointReachable(j *job) bool {
	for _, x := range m.executors {
		if len(m.domains) > 1 && x.IsHere() && x.FindsCheckpoint(j.record.Checkpoint) &&
			!m.domainByRecord(x.Device).mayTake(j) && !slices.Contains(j.failedAt, x.Name) {
			return true
		}
	}
	return false
}

// detachJob takes a job from its executor. What is left of it is its newest checkpoint.
func (m *Machine) detachJob(j *job) {
	if j.record.Granted == 0 && j.record.Checkpoint == nil {
		j.record.Device = "" // the job has not begun
	}
	m.clearPlans(j, true)
	j.record.Executor, j.record.Applied, j.record.Arena, j.record.SlotPeak, j.record.Park = "", 0, 0, 0, ""
	j.record.Iteration, j.progress = 0, progress{}
	if c := j.record.Checkpoint; c != nil {
		j.record.Iteration = c.Iteration
	}
	if j.isReplica() {
		j.record.Iteration, j.record.At, j.replica = j.record.From, 0, replicaState{}
	}
	m.changed = true
}

// clearPlans drops all plans of a job: it has nothing of the device any more. leaves says that its executor does not
// keep it either.
func (m *Machine) clearPlans(j *job, leaves bool) {
	m.dropDelivered(j, j.deliveredLayouts(), leaves)
	j.layouts, j.formerLayout, j.policyReport, j.wantsReport = nil, nil, nil, false
	j.record.Granted, j.record.Cleared, j.record.Link = 0, j.record.Epoch, wire.Rates{}
}

// parkJob has a job rest, with nothing of the device, until it is resumed.
func (m *Machine) parkJob(j *job, to wire.Place) error {
	switch {
	case j.record.State == wire.JobParked && (to == wire.InMemory || !j.hasExecutor()):
		return fmt.Errorf("job %s is parked already", j.record.Spec.Name)
	case j.record.State == wire.JobStopping:
		return fmt.Errorf("job %s is stopping", j.record.Spec.Name)
	case to == wire.OnDisk && j.record.Spec.Checkpoint == (wire.Interval{}):
		return fmt.Errorf("job %s takes no checkpoints: park it in memory, without --disk", j.record.Spec.Name)
	}
	j.record.Preempted = false
	m.sendGangHome(j, to)
	return nil
}

// sendGangHome has a job leave the device, and its peers too.
func (m *Machine) sendGangHome(j *job, to wire.Place) {
	g := m.gangOrSelf(j)
	trains := func(o *job) bool { return !o.claim().IsZero() }
	if j.isReplica() && j.record.State != wire.JobParking && slices.ContainsFunc(g, trains) {
		m.chooseRestPoint(g, false)
	}
	for _, o := range g {
		o.record.Preempted = j.record.Preempted
		m.sendHome(o, to)
	}
}

// sendHome has one job leave the device. A job that no executor has, or that was granted nothing where it is, leaves at
// once; another one when it has come Home.
func (m *Machine) sendHome(j *job, to wire.Place) {
	if j.hasExecutor() && !j.record.Spec.Script && j.claim().IsZero() && j.hostClaim() == 0 {
		m.detachJob(j)
	}
	if !j.hasExecutor() {
		to = wire.OnDisk // no executor has it in memory
	}
	j.record.Park, j.record.Target = to, ""
	if j.enter(wire.JobParking, ""); !j.hasExecutor() {
		m.recordParked(j)
	}
}

// recordParked records that a job is parked.
func (m *Machine) recordParked(j *job) {
	m.clearPlans(j, false)
	j.record.Arena, j.record.SlotPeak = 0, 0
	m.changed = true
	m.retryAdmission(j.domain)
	from := j.domain
	switch {
	case j.record.Preempted && j.record.Target != "":
		m.arriveAtTarget(j)
	case j.record.Preempted && from != nil && from.isDrained():
		m.requeueInPlace(j, fmt.Sprintf("has left device %s, which is drained", from.recordName()))
	case j.record.Preempted && m.hasTenants():
		m.enqueue(j, "gave way to another tenant")
	case j.record.Preempted:
		m.enqueue(j, "gave way to a job of higher priority")
	default:
		j.enter(wire.JobParked, "")
	}
	if !m.config.NoReplan && from != nil {
		from.pending.replan = newReason(Departure, "job %s is parked", j.record.Spec.Name)
	}
	m.tell(j, Event{Kind: Rested, Iterations: j.record.Iteration})
}

// resumeJob has a parked job wait for its turn.
func (m *Machine) resumeJob(j *job) error {
	if j.record.State == wire.JobParking && j.claim().IsZero() { // it already rests in memory, and was to leave
		j.enter(wire.JobParked, "")
		j.record.Park, j.record.Preempted = wire.InMemory, false
	}
	j.record.Target = ""
	if j.record.State == wire.JobParking {
		j.record.At, j.replica.resting, j.replica.margin = 0, false, 0
	}
	switch j.record.State {
	case wire.JobParked:
		m.enqueue(j, "is being planned for")
		if m.isUnreachable(j) {
			j.waitFor(wire.Wait{For: wire.WaitExecutor},
				fmt.Sprintf("rests at executor %s, which cannot be reached", j.record.Executor))
		}
	case wire.JobParking:
		j.record.Park, j.record.Preempted = "", false
		if j.markReachable(); m.executors[j.record.Executor].IsSilent() {
			j.markUnreachable(m.executors[j.record.Executor])
		}
	default:
		return fmt.Errorf("job %s is %s, not parked", j.record.Spec.Name, j.record.State)
	}
	return nil
}

// preempt parks the job of the lowest priority for the first job that waits for memory, if that has a higher one. It
// parks one job at a time: plans show whether that was enough. If device memory is missing the job rests in host
// memory; if host memory is, it leaves with a checkpoint.
func (d *domain) preempt() {
	if !d.config.Preempt {
		return
	}
	first := d.firstInNeed()
	if first == nil {
		return
	}
	need, gives, place := first.record.Wait.DeviceBytes(), d.freedWithout, wire.InMemory
	if need == 0 {
		need, gives, place = first.record.Wait.HostBytes(), hostFreedBy, wire.OnDisk
	}
	rank := d.m.line().Rank(first.queued())
	lower := slices.DeleteFunc(d.activeJobs(), func(j *job) bool {
		return j.record.State != wire.JobRunning || int64(j.priority()) >= rank ||
			d.m.hasTenants() && j.tenant() != first.tenant() // between tenants shares decide
	})
	victim := victimOf(slices.Values(lower), func(j *job) bool {
		return gives(j) > 0 && d.m.now-j.trainingSince >= d.config.Turn
	})
	if victim != nil && gives(lower...) >= need {
		d.giveWay(victim, first, place, "")
	}
}

// firstInNeed is the first job that may begin on the device, if it lacks memory and others may give way for it: no
// plans are made that may show room, and no job is about to give memory back. nil: there is none.
func (d *domain) firstInNeed() *job {
	if d.request != nil || d.pending.admission {
		return nil
	}
	waiting := d.waitingJobs()
	if len(waiting) == 0 || waiting[0].record.Wait.DeviceBytes() == 0 && waiting[0].record.Wait.HostBytes() == 0 ||
		d.isBeingFreed() {
		return nil
	}
	return waiting[0]
}

// isBeingFreed reports whether a job of the device is about to give memory back.
func (d *domain) isBeingFreed() bool {
	return slices.ContainsFunc(d.m.jobs, func(j *job) bool {
		return j.domain == d && (j.record.State == wire.JobParking || j.record.State == wire.JobStopping)
	})
}

// victimOf is the one of some jobs that gives way first, of those that may. nil: none may.
func victimOf(jobs iter.Seq[*job], may func(*job) bool) *job {
	var list []*job
	var priorities []int
	for j := range jobs {
		if may(j) {
			list, priorities = append(list, j), append(priorities, j.priority())
		}
	}
	if at := queue.Victim(priorities); at >= 0 {
		return list[at]
	}
	return nil
}

// giveWay parks a job for another that waits.
func (d *domain) giveWay(j, waits *job, to wire.Place, why string) {
	j.record.Preempted, d.m.changed = true, true
	d.m.sendGangHome(j, to)
	d.m.tell(j, Event{Kind: Preempted, Reason: waits.record.Spec.Name, Detail: why})
}

// unloadParked has a job that gave way, and rests in memory, leave its executor for disk, if the first queued job lacks
// no more than such jobs have: host memory, and the contexts of their executors. It unloads one job at a time, as
// preempt does. If that does not help either, and nothing trains on the device, the first job and its peers let the
// others pass.
func (d *domain) unloadParked() {
	first := d.firstInNeed()
	if first == nil {
		return
	}
	need, gives := first.record.Wait.DeviceBytes(), d.contextFreedBy
	if need == 0 {
		need, gives = first.record.Wait.HostBytes(), func(j *job) graph.Bytes { return hostFreedBy(j) }
	}
	var sum graph.Bytes
	last := victimOf(d.jobs(), func(j *job) bool {
		rests := j != first && j.record.State == wire.JobQueued && j.record.Preempted && !d.m.isUnreachable(j)
		if !rests || gives(j) == 0 {
			return false
		}
		sum += gives(j)
		return true
	})
	if sum >= need {
		d.giveWay(last, first, wire.OnDisk, ReasonParked)
		return
	}
	others := func(j *job) bool {
		return j.domain == d && j != first && !j.isPeerOf(first) && j.record.State == wire.JobQueued &&
			!j.isBlocked() && !j.found.overtakable
	}
	if len(d.activeJobs()) == 0 && slices.ContainsFunc(d.m.jobs, others) {
		for _, o := range d.m.gangOrSelf(first) {
			o.found.overtakable = true
		}
		d.pending.admission, d.m.changed = true, true
	}
}

// ReasonParked is why a job gives way that already did so before.
const ReasonParked = "it rests in memory"

// contextFreedBy is how many bytes of contexts would be free if a job that rests left its executor.
func (d *domain) contextFreedBy(j *job) graph.Bytes {
	x := d.m.executors[j.record.Executor]
	if d.config.OneExecutor || x == nil || x.Kind == fleet.ByHand || j.record.Spec.Checkpoint == (wire.Interval{}) {
		return 0
	}
	return d.config.Context
}

// freedWithout is how many bytes of the device would be free without some jobs.
func (d *domain) freedWithout(jobs ...*job) graph.Bytes {
	var left memory.Sum
	for j := range d.jobs() {
		if !slices.Contains(jobs, j) {
			left = left.Add(j.claim())
		}
	}
	held, _ := d.reservations()
	left = left.Add(memory.Exclusive(held))
	return d.totalClaims().Bytes() - left.Bytes()
}

// hostFreedBy is how many bytes of the host jobs can give back. A job without checkpoints gives back nothing.
func hostFreedBy(jobs ...*job) (sum graph.Bytes) {
	for _, j := range jobs {
		if j.record.Spec.Checkpoint != (wire.Interval{}) {
			sum += j.hostClaim()
		}
	}
	return sum
}
