package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tensile/controller/memory"
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
	unheld := d.unthrottled(slices.Clone(waiting))
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

// rank is the priority of a queued job, which rises by one with each Config.Aging. So only jobs of higher priority that
// came soon after it ever overtake it, and nobody starves.
func (m *Machine) rank(j *job) int64 {
	return int64(j.priority()) + int64(max(0, m.now-j.record.Waiting)/m.config.Aging)
}

// enqueue has a job wait in the queue.
func (m *Machine) enqueue(j *job, why string) {
	j.enter(wire.JobQueued, why)
	j.record.Waiting = m.now
	// The budget may have become smaller since the job was admitted.
	j.unchecked, j.checkpointDeadline = true, 0
	if _, held := m.throttledFor(j); held {
		j.record.Wait.For = wire.WaitTenant // until settleAccounts sees that it is no more
	}
	m.changed = true
	m.retryAdmission(j.domain)
}

// requeueInPlace has a job wait again that did not leave its device for a queued job: it keeps its place before jobs
// that came later.
func (m *Machine) requeueInPlace(j *job, why string) {
	m.enqueue(j, why)
	j.record.Waiting = cmp.Or(j.record.Submitted, m.now)
}

// maxBackOff is the longest time that a job waits after its executor was lost. The first wait is a second, and each is
// twice the one before.
const maxBackOff = time.Minute

// restartJob has a job of a lost executor go on from its newest checkpoint, and reports whether it may.
func (m *Machine) restartJob(j *job, why string) bool {
	if j.record.Restarts >= j.record.Spec.Restarts {
		return false
	}
	j.record.Restarts++
	wait := min(maxBackOff, time.Second<<min(10, j.record.Restarts-1))
	m.detachJob(j)
	m.requeueInPlace(j, fmt.Sprintf("goes on from iteration %d in %v (attempt %d of %d): %s", j.record.Iteration, wait,
		j.record.Restarts, j.record.Spec.Restarts, why))
	j.record.Wait = wire.Wait{For: wire.WaitRestart, Until: m.now + wait}
	m.emitEvent(Event{Kind: Restarted, Job: j.record.Spec.Name, Iterations: j.record.Iteration, Detail: why})
	return true
}

// handleMissingCheckpoint has a job begin elsewhere that has not found its checkpoint at an executor. As long as no
// other executor can take it, it waits for one that has the checkpoint, as the host may come back. It reports whether
// it does.
func (m *Machine) handleMissingCheckpoint(j *job, x *executor, why string) bool {
	c := j.record.Checkpoint
	switch {
	case j.isReplica() && j.record.From > 0:
		m.handleMissingGangCheckpoint(j, x, why)
		return true
	case c == nil || j.isReplica():
		return false
	case j.record.State != wire.JobStarting: // the job was told to rest or to stop before it had begun
		m.recoverLost(j, why)
		return true
	}
	if j.failedAt = append(j.failedAt, x.name); j.domain.vacantExecutor(j, nil) != "" {
		m.reassign(j, why)
		return true
	}
	if len(m.domains) > 1 && len(m.candidateDevices(j)) > 0 { // an executor of another device may have the checkpoint
		m.detachJob(j)
		m.requeueInPlace(j, why)
		m.emitEvent(Event{Kind: Reassigned, Job: j.record.Spec.Name, Detail: why})
		return true
	}
	until := cmp.Or(j.checkpointDeadline, m.now+m.config.GiveUp)
	m.detachJob(j)
	m.requeueInPlace(j, fmt.Sprintf("waits for an executor that has its checkpoint %s, on %s", c.File, c.Host))
	j.checkpointDeadline, j.record.Wait = until, wire.Wait{For: wire.WaitCheckpoint}
	m.emitEvent(Event{Kind: Queued, Job: j.record.Spec.Name, Reason: j.record.Reason})
	return true
}

// shrinkToFree has all jobs planned for again within what is really free, after a device had no room for the arena of a
// job: other programs have the rest. The job goes on from its newest checkpoint. It reports whether it does.
func (m *Machine) shrinkToFree(j *job, free graph.Bytes, why string) bool {
	if s := j.record.State; j.record.Spec.Script || s != wire.JobStarting && s != wire.JobRunning ||
		j.record.Restarts >= max(maxMoves, j.record.Spec.Restarts) {
		return false
	}
	j.record.Restarts++
	if !j.isReplica() {
		m.detachJob(j)
	}
	d := j.domain
	room := max(1, d.takenBytes()+free)
	if j.isReplica() { // a replica has no arena any more
		room = max(1, d.totalClaims().Remove(j.claim()).Bytes()+d.contexts().Sum()+free)
	}
	if d.config.Budget == 0 || room < d.config.Budget {
		d.config.Budget = room
		d.replanForBudget()
	}
	if j.isReplica() {
		m.restartGang(j, why, false)
		return true
	}
	m.requeueInPlace(j, fmt.Sprintf("goes on from iteration %d: %s", j.record.Iteration, why))
	m.emitEvent(Event{Kind: Restarted, Job: j.record.Spec.Name, Iterations: j.record.Iteration, Detail: why})
	return true
}

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
		if len(m.domains) > 1 && x.joined && !x.gone && !x.silent && x.findsCheckpoint(j.record.Checkpoint) &&
			!x.domain.mayTake(j) && !slices.Contains(j.failedAt, x.name) {
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
	m.emitEvent(Event{Kind: Rested, Job: j.record.Spec.Name, Iterations: j.record.Iteration})
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
		if j.markReachable(); m.executors[j.record.Executor].silent {
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
	if !d.config.Preempt || d.request != nil || d.pending.admission {
		return
	}
	waiting := d.waitingJobs()
	if len(waiting) == 0 {
		return
	}
	first, rank := waiting[0], d.m.rank(waiting[0])
	need, gives, place := first.record.Wait.DeviceBytes(), d.freedWithout, wire.InMemory
	if need == 0 {
		need, gives, place = first.record.Wait.HostBytes(), hostFreedBy, wire.OnDisk
	}
	if need == 0 {
		return
	}
	var victim *job
	var lower []*job
	for _, j := range d.activeJobs() {
		below := j.record.State == wire.JobRunning && int64(j.priority()) < rank &&
			(!d.m.hasTenants() || j.tenant() == first.tenant()) // between tenants shares decide
		if below {
			lower = append(lower, j)
		}
		switch {
		case j.record.State == wire.JobParking || j.record.State == wire.JobStopping:
			return // the job is about to give memory back
		case !below || gives(j) == 0 || d.m.now-j.trainingSince < d.config.Turn:
		case victim == nil || j.priority() <= victim.priority():
			victim = j
		}
	}
	if victim == nil || gives(lower...) < need {
		return
	}
	victim.record.Preempted, d.m.changed = true, true
	d.m.sendGangHome(victim, place)
	d.m.emitEvent(Event{Kind: Preempted, Job: victim.record.Spec.Name, Reason: first.record.Spec.Name})
}

// unloadParked has a job that gave way, and rests in memory, leave its executor for disk, if the first queued job lacks
// no more than such jobs have: host memory, and the contexts of their executors. It unloads one job at a time, as
// preempt does. If that does not help either, and nothing trains on the device, the first job and its peers let the
// others pass.
func (d *domain) unloadParked() {
	if d.request != nil || d.pending.admission {
		return
	}
	waiting := d.waitingJobs()
	if len(waiting) == 0 {
		return
	}
	first := waiting[0]
	need, gives := first.record.Wait.DeviceBytes(), d.contextFreedBy
	if need == 0 {
		need, gives = first.record.Wait.HostBytes(), func(j *job) graph.Bytes { return hostFreedBy(j) }
	}
	var last *job
	var sum graph.Bytes
	others := false
	for j := range d.jobs() {
		others = others || j != first && !j.isPeerOf(first) && j.record.State == wire.JobQueued && !j.isBlocked() &&
			!j.found.overtakable
		switch {
		case j.record.State == wire.JobParking || j.record.State == wire.JobStopping:
			return // the job is about to give memory back
		case j == first || j.record.State != wire.JobQueued || !j.record.Preempted || d.m.isUnreachable(j) ||
			gives(j) == 0:
		default:
			if sum += gives(j); last == nil || j.priority() <= last.priority() {
				last = j
			}
		}
	}
	switch {
	case need <= 0:
		return
	case sum < need:
		if others && len(d.activeJobs()) == 0 {
			for _, o := range d.m.gangOrSelf(first) {
				o.found.overtakable = true
			}
			d.pending.admission, d.m.changed = true, true
		}
		return
	}
	d.m.changed = true
	d.m.sendGangHome(last, wire.OnDisk)
	d.m.emitEvent(Event{Kind: Preempted, Job: last.record.Spec.Name, Reason: first.record.Spec.Name,
		Detail: ReasonParked})
}

// ReasonParked is why a job gives way that already did so before.
const ReasonParked = "it rests in memory"

// contextFreedBy is how many bytes of contexts would be free if a job that rests left its executor.
func (d *domain) contextFreedBy(j *job) graph.Bytes {
	x := d.m.executors[j.record.Executor]
	if d.config.OneExecutor || x == nil || !x.forJobs || j.record.Spec.Checkpoint == (wire.Interval{}) {
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
