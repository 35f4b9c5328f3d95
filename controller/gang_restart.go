package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/controller/fleet"
	"tensile/wire"
)

// How a gang restarts when one of its replicas is lost: part (d) of replicas.go.

// restartDisconnected restarts a gang when one of its replicas has failed only because a connection broke, and none
// trains any more. One that trains may yet say what the trouble was, unless its executor cannot be reached.
func (m *Machine) restartDisconnected(j *job, why string) {
	g := m.gang(j)
	trains := func(o *job) bool {
		return o.replica.running && !o.replica.disconnected && o.replica.finalStatus == nil && !m.isUnreachable(o)
	}
	if slices.ContainsFunc(g, func(o *job) bool { return o.replica.disconnected }) && !slices.ContainsFunc(g, trains) {
		m.restartGang(j, why, true)
	}
}

// endPeers ends the peers of a replica that is over and has not finished. If it has failed, the checkpoints of all
// stay, also of those that have finished, so that a user can go on from them.
func (m *Machine) endPeers(j *job) {
	for _, o := range m.gang(j) {
		if o.record.State.Over() {
			continue
		}
		if o.replica.finalStatus == nil || j.record.State == wire.JobFailed {
			m.keepReservation(o)
		}
		why := j.record.Reason
		if why != "" && !strings.HasPrefix(why, "replica ") {
			why = fmt.Sprintf("replica %s: %s", j.record.Spec.Name, why)
		}
		var result *wire.Result
		if o.replica.finalStatus != nil {
			result = o.replica.finalStatus.Result
		}
		o.record.Diverged = j.record.Diverged
		m.endJob(o, j.record.State, why, result)
	}
}

// keepReservation reserves what an executor may have of a job that is taken from it, until the executor is known to
// have it no more. The job's checkpoints stay there (wire.Orders.Elsewhere).
func (m *Machine) keepReservation(j *job) {
	x := m.executors[j.record.Executor]
	if x == nil || x.IsGone() || x.Life == "" || !j.hasExecutor() {
		return
	}
	claim, host := j.claim().Arena, j.hostClaim()
	c := &m.domainByRecord(x.Device).config
	if claim > 0 || x.IsSilent() && c.Context > 0 || host > 0 && c.HostMemory > 0 {
		j.record.Held = append(slices.Clone(j.record.Held), wire.Holding{Executor: x.Name, Life: x.Life,
			ID: j.record.Spec.ID, Incarnation: j.record.Incarnation, Bytes: claim, Host: host,
			On: x.Device})
	}
}

// detachGang takes the replicas of a gang from their executors. What is left of them is the newest checkpoint that all
// have.
func (m *Machine) detachGang(g []*job) {
	common := newestCommonCheckpoint(g)
	for _, j := range g {
		if !j.replica.leftExecutor {
			m.keepReservation(j)
		}
		j.record.From = common
		m.detachJob(j)
	}
}

// restartGang restarts all replicas of a gang because of some trouble with one of them. If they were to rest, they rest
// without executors; if they were to end, they end. counts says that this uses up one of their restarts, if they train.
func (m *Machine) restartGang(j *job, why string, counts bool) {
	g := m.gang(j)
	state := j.record.State
	begun, tries := 0, 0
	for _, o := range g {
		begun, tries = max(begun, o.record.Iteration, int(o.record.Applied)), max(tries, o.record.Restarts)
		if o.record.State == wire.JobStopping {
			state = wire.JobStopping
		}
	}
	limit := j.record.Spec.Restarts
	if begun == 0 { // a restart loses nothing
		limit = max(maxMoves, limit)
	}
	counts = counts && (state == wire.JobStarting || state == wire.JobRunning || state == wire.JobUnknown)
	finished := func(o *job) bool { return o.record.State.Over() }
	switch {
	case state.Over():
		return
	case state == wire.JobStopping:
		m.keepReservation(j) // its executor may live although it is out of reach
		m.endJob(j, wire.JobStopped, why, nil)
		return
	case slices.ContainsFunc(g, finished):
		m.keepReservation(j)
		// All had ended when a controller was killed, and the end of this one was lost.
		m.endJob(j, wire.JobFailed, why, nil)
		return
	case counts && tries >= limit:
		m.keepReservation(j)
		m.endJob(j, wire.JobFailed, why, nil)
		return
	case begun > 0 && newestCommonCheckpoint(g) == 0 && j.record.Spec.Checkpoint == wire.Interval{} &&
		j.record.Spec.Restarts == 0:
		m.keepReservation(j)
		m.endJob(j, wire.JobFailed, why, nil) // they would begin from scratch
		return
	}
	m.detachGang(g)
	if state == wire.JobParking || state == wire.JobParked {
		for _, o := range g {
			// A controller that was killed may have stored only some as parked.
			if o.record.Park = wire.OnDisk; o.record.State != wire.JobParked {
				o.record.Preempted = j.record.Preempted
				m.recordParked(o)
			}
		}
		return
	}
	var pause wire.Wait
	line := fmt.Sprintf("goes on with all replicas from iteration %d: %s", j.record.From, why)
	if counts {
		tries++
		wait := min(maxBackOff, time.Second<<min(10, tries-1))
		line = fmt.Sprintf("goes on with all replicas from iteration %d in %v (attempt %d of %d): %s", j.record.From,
			wait, tries, limit, why)
		pause = wire.Wait{For: wire.WaitRestart, Until: m.now + wait}
	}
	for _, o := range g {
		o.record.Restarts = tries
		m.requeueInPlace(o, line)
		o.waitFor(cmp.Or(pause, o.record.Wait), line)
		m.emitEvent(Event{Kind: Restarted, Job: o.record.Spec.Name, Iterations: o.record.From, Detail: why})
	}
}

// restartFromScratch restarts a gang without a checkpoint: the one with which it was to begin is damaged, and there is
// no other that all replicas have. It reports whether it does.
func (m *Machine) restartFromScratch(j *job, why string) bool {
	if !j.isReplica() || j.record.From == 0 {
		return false
	}
	for _, o := range m.gang(j) {
		o.record.From, o.record.Checkpoint, o.replica.checkpoints = 0, nil, nil
	}
	m.restartGang(j, why, false)
	return true
}

// handleMissingGangCheckpoint has a gang begin at other executors if one replica has not found the checkpoint with
// which all begin, or wait for an executor that has it.
func (m *Machine) handleMissingGangCheckpoint(j *job, x *fleet.Executor, why string) {
	until := j.checkpointDeadline
	j.failedAt = append(j.failedAt, x.Name)
	if m.restartGang(j, why, false); j.record.State != wire.JobQueued || m.otherExecutorMayTake(j) {
		return
	}
	if until == 0 {
		until = m.now + m.config.GiveUp
	}
	j.checkpointDeadline = until
	if c := j.record.Checkpoint; c != nil {
		why = fmt.Sprintf("waits for an executor that has its checkpoint after %d iterations, as on %s", j.record.From,
			c.Host)
	}
	j.waitFor(wire.Wait{For: wire.WaitCheckpoint}, why)
}

// otherExecutorMayTake reports whether an executor may take a job that has not found its checkpoint at others.
func (m *Machine) otherExecutorMayTake(j *job) bool {
	return j.domain != nil && j.domain.vacantExecutor(j, nil) != "" || len(m.domains) > 1 &&
		len(m.candidateDevices(j)) > 0
}

// healGangs makes the replicas of each gang agree. A controller that was killed while it stored them may have left them
// in different states. Where not all of them are stored, nobody has heard that they were taken, and they end.
func (m *Machine) healGangs() {
	for _, j := range slices.Clone(m.jobs) {
		if n := len(m.gang(j)); j.isReplica() && !j.record.State.Over() && n < j.record.Spec.Replica.Of {
			m.keepReservation(j)
			m.endJob(j, wire.JobFailed, fmt.Sprintf("the controller was killed when it had stored %d of its %d "+
				"replicas: submit it again", n, j.record.Spec.Replica.Of), nil)
		}
		if !j.isReplica() || j.record.Spec.Replica.Number > 0 {
			continue
		}
		g := m.gang(j)
		stage := func(o *job) wire.JobState {
			switch s := o.record.State; {
			case s.Over() || s == wire.JobStopping || s == wire.JobParking || s == wire.JobParked:
				return s
			case o.claim().IsZero():
				return wire.JobQueued
			}
			return wire.JobRunning
		}
		var odd *job
		for _, o := range g {
			o.replica.running = o.canChangePlan()
			if stage(o) != stage(j) {
				odd = o
			}
		}
		done := func(o *job) bool { return o.record.State == wire.JobFinished }
		if odd == nil || slices.ContainsFunc(g, done) { // the others will report that they have finished
			continue
		}
		const why = "the controller was started again before all replicas had heard"
		for _, s := range [...]wire.JobState{wire.JobFailed, wire.JobStopped, wire.JobStopping, wire.JobParking,
			wire.JobParked, wire.JobRunning} {
			at := slices.IndexFunc(g, func(o *job) bool { return stage(o) == s })
			if at < 0 {
				continue
			}
			if s.Over() {
				m.endPeers(g[at])
			} else {
				m.restartGang(g[at], why, false)
			}
			break
		}
	}
}
