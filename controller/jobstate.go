package controller

import (
	"fmt"
	"slices"

	"tensile/graph/invariants"
	"tensile/wire"
)

// nextStates are the states that a job may enter from another, beside those in which it is over: any job may fail, or
// be stopped, at any time. The drawing in the package comment leaves out what happens when executors are lost.
var nextStates = map[wire.JobState][]wire.JobState{
	// it is admitted, or parked before that
	wire.JobQueued: {wire.JobStarting, wire.JobParking},
	// its executor has begun; it gives way before that; or its executor ends, is silent, or has it begun and ended
	// between two statuses
	wire.JobStarting: {wire.JobRunning, wire.JobQueued, wire.JobParking, wire.JobStopping, wire.JobUnknown,
		wire.JobFinished},
	wire.JobRunning: {wire.JobQueued, wire.JobParking, wire.JobStopping, wire.JobUnknown, wire.JobFinished},
	// its executor is heard of again, or has ended, or nobody waits for it any more
	wire.JobUnknown: {wire.JobStarting, wire.JobRunning, wire.JobQueued, wire.JobParking, wire.JobParked,
		wire.JobStopping, wire.JobFinished},
	// it has left the device, to rest or to wait for its turn; it is resumed before; or it ends before
	wire.JobParking: {wire.JobParking, wire.JobParked, wire.JobQueued, wire.JobStarting, wire.JobRunning,
		wire.JobStopping, wire.JobFinished},
	// it is resumed, or is to leave the host's memory
	wire.JobParked:   {wire.JobQueued, wire.JobParking, wire.JobStopping},
	wire.JobStopping: {wire.JobStopping, wire.JobFinished},
}

// mayEnter reports whether a job goes from one state to another.
func mayEnter(from, to wire.JobState) bool {
	return !from.Over() && (to == wire.JobFailed || to == wire.JobStopped || slices.Contains(nextStates[from], to))
}

// checkStates has a job panic that enters a state which it may not. Tests set it.
var checkStates = invariants.Enabled

// enter has the job enter a state, for a reason that people may read or "". Nothing else writes the state of a job that
// was submitted to this controller. What it waits for is not known yet.
func (j *job) enter(s wire.JobState, why string) {
	if checkStates && !mayEnter(j.record.State, s) {
		panic(fmt.Sprintf("controller: job %s is %s and enters %s", j.record.Spec.Name, j.record.State, s))
	}
	j.record.State, j.record.Reason, j.record.Wait = s, why, wire.Wait{}
}

// waitFor records what the job waits for, in words that people may read.
func (j *job) waitFor(w wire.Wait, why string) { j.record.Wait, j.record.Reason = w, why }

// announceWait is waitFor with an event, unless the same was said before.
func (m *Machine) announceWait(j *job, w wire.Wait, why string) {
	before := j.record.Reason
	if j.waitFor(w, why); why != before {
		m.changed = true
		m.emitEvent(Event{Kind: Queued, Job: j.record.Spec.Name, Bytes: w.DeviceBytes(), Reason: why})
	}
}

// isBlocked reports whether the job is known not to fit what there is: it waits for a larger budget, or for what
// executors out of reach have. Others may begin before it. It is blocked until there is more memory (unblock).
func (j *job) isBlocked() bool { return j.record.Wait.For == wire.WaitBudget && !j.unchecked }

// isThrottled reports whether the job does not begin because another tenant is owed time of its devices.
func (j *job) isThrottled() bool { return j.record.Wait.For == wire.WaitTenant }

// isPausing reports whether the job was taken from its executor and may not begin again yet.
func (m *Machine) isPausing(j *job) bool { return j.record.Wait.Until > m.now }
