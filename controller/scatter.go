package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/wire"
)

// What siblings do together when one of them is lost: (d) of replicas.go.

// alone has siblings begin again when one of them has failed only since a connection broke, and none trains any more:
// one that does may yet say what the trouble was, unless its executor cannot be reached.
func (m *Machine) alone(j *job, why string) {
	g := m.siblings(j)
	trains := func(o *job) bool {
		return o.sibling.running && !o.sibling.alone && o.sibling.ended == nil && !m.away(o)
	}
	if slices.ContainsFunc(g, func(o *job) bool { return o.sibling.alone }) && !slices.ContainsFunc(g, trains) {
		m.scatter(j, why, true)
	}
}

// endToo ends the siblings of a replica that is over and has not finished. If that has failed the checkpoints of all
// stay, also of those that have finished, for whoever wants to go on from them.
func (m *Machine) endToo(j *job) {
	for _, o := range m.siblings(j) {
		if o.record.State.Over() {
			continue
		}
		if o.sibling.ended == nil || j.record.State == wire.JobFailed {
			m.hold(o)
		}
		why := j.record.Reason
		if why != "" && !strings.HasPrefix(why, "replica ") {
			why = fmt.Sprintf("replica %s: %s", j.record.Spec.Name, why)
		}
		var result *wire.Result
		if o.sibling.ended != nil {
			result = o.sibling.ended.Result
		}
		o.record.Diverged = j.record.Diverged
		m.over(o, j.record.State, why, result)
	}
}

// hold reserves what an executor may have of a job that is taken from it, until the executor is known to have it no
// more. Its checkpoints stay there (wire.Orders.Elsewhere).
func (m *Machine) hold(j *job) {
	x := m.executors[j.record.Executor]
	if x == nil || x.gone || x.life == "" || !j.placed() {
		return
	}
	claim, host := j.claim().Arena, j.hostClaim()
	c := &x.domain.config
	if claim > 0 || x.silent && c.Context > 0 || host > 0 && c.HostMemory > 0 {
		j.record.Held = append(slices.Clone(j.record.Held), wire.Holding{Executor: x.name, Life: x.life,
			ID: j.record.Spec.ID, Incarnation: j.record.Incarnation, Bytes: claim, Host: host, On: x.domain.on()})
	}
}

// begone takes siblings from their executors. What is left of them is the newest checkpoint that all have.
func (m *Machine) begone(g []*job) {
	common := commonOf(g)
	for _, j := range g {
		if !j.sibling.left {
			m.hold(j)
		}
		j.record.From = common
		m.displace(j)
	}
}

// scatter has the siblings of a replica begin again together, for some trouble with that one; or rest without executors
// if they were to rest, or end if they were to end. counts: it is one of the restarts that they have, if they train.
func (m *Machine) scatter(j *job, why string, counts bool) {
	g := m.siblings(j)
	state := j.record.State
	begun, tries := 0, 0
	for _, o := range g {
		begun, tries = max(begun, o.record.Iteration, int(o.record.Applied)), max(tries, o.record.Restarts)
		if o.record.State == wire.JobStopping {
			state = wire.JobStopping
		}
	}
	limit := j.record.Spec.Restarts
	if begun == 0 { // they lose nothing
		limit = max(maxMoves, limit)
	}
	counts = counts && (state == wire.JobStarting || state == wire.JobRunning || state == wire.JobUnknown)
	finished := func(o *job) bool { return o.record.State.Over() }
	switch {
	case state.Over():
		return
	case state == wire.JobStopping:
		m.hold(j) // its executor may live, and be out of reach
		m.over(j, wire.JobStopped, why, nil)
		return
	case slices.ContainsFunc(g, finished):
		m.hold(j)
		// a controller was killed that had heard of the end of all, and this is lost
		m.over(j, wire.JobFailed, why, nil)
		return
	case counts && tries >= limit:
		m.hold(j)
		m.over(j, wire.JobFailed, why, nil)
		return
	case begun > 0 && commonOf(g) == 0 && j.record.Spec.Checkpoint == wire.Interval{} && j.record.Spec.Restarts == 0:
		m.hold(j)
		m.over(j, wire.JobFailed, why, nil) // they would begin again
		return
	}
	m.begone(g)
	if state == wire.JobParking || state == wire.JobParked {
		for _, o := range g {
			if o.record.Park = wire.OnDisk; o.record.State != wire.JobParked { // a controller may have stored only some
				o.record.Preempted = j.record.Preempted
				m.parked(o)
			}
		}
		return
	}
	line := fmt.Sprintf("goes on with all replicas from iteration %d: %s", j.record.From, why)
	if counts {
		tries++
		wait := min(maxBackOff, time.Second<<min(10, tries-1))
		line = fmt.Sprintf("goes on with all replicas from iteration %d in %v (attempt %d of %d): %s", j.record.From,
			wait, tries, limit, why)
		for _, o := range g {
			o.ready = m.now + wait
		}
	}
	for _, o := range g {
		o.record.Restarts = tries
		m.enqueueAgain(o, line)
		m.event(Event{Kind: Restarted, Job: o.record.Spec.Name, Iterations: o.record.From, Why: why})
	}
}

// beginAgain has siblings begin again, without a checkpoint: that with which they were to begin is damaged, and there
// is no other that all have. It reports whether they do.
func (m *Machine) beginAgain(j *job, why string) bool {
	if !j.replica() || j.record.From == 0 {
		return false
	}
	for _, o := range m.siblings(j) {
		o.record.From, o.record.Checkpoint, o.sibling.kept = 0, nil, nil
	}
	m.scatter(j, why, false)
	return true
}

// lacksTogether has siblings begin at other executors if one of them has not found the checkpoint with which they
// begin, or wait for one that has it.
func (m *Machine) lacksTogether(j *job, x *executor, why string) {
	until := j.lacking
	j.tried = append(j.tried, x.name)
	if m.scatter(j, why, false); j.record.State != wire.JobQueued || m.another(j) {
		return
	}
	if until == 0 {
		until = m.now + m.config.GiveUp
	}
	j.lacking = until
	j.record.Reason = why
	if c := j.record.Checkpoint; c != nil {
		j.record.Reason = fmt.Sprintf("waits for an executor that has its checkpoint after %d iterations, as on %s",
			j.record.From, c.Host)
	}
}

// another reports whether an executor may take a job that has found no checkpoint at others.
func (m *Machine) another(j *job) bool {
	return j.domain != nil && j.domain.vacant(j, nil) != "" || len(m.domains) > 1 && len(m.candidates(j)) > 0
}

// heal has siblings agree that a controller has left in different states which was killed while it wrote them down.
// Where not all of them are stored nobody has heard that they are taken, and they end.
func (m *Machine) heal() {
	for _, j := range slices.Clone(m.jobs) {
		if n := len(m.siblings(j)); j.replica() && !j.record.State.Over() && n < j.record.Spec.Replica.Of {
			m.hold(j)
			m.over(j, wire.JobFailed, fmt.Sprintf("the controller was killed when it had stored %d of its %d "+
				"replicas: submit it again", n, j.record.Spec.Replica.Of), nil)
		}
		if !j.replica() || j.record.Spec.Replica.Number > 0 {
			continue
		}
		g := m.siblings(j)
		stage := func(o *job) wire.JobState {
			switch s := o.record.State; {
			case s.Over() || s == wire.JobStopping || s == wire.JobParking || s == wire.JobParked:
				return s
			case o.claim().none():
				return wire.JobQueued
			}
			return wire.JobRunning
		}
		var odd *job
		for _, o := range g {
			o.sibling.running = o.goesOn()
			if stage(o) != stage(j) {
				odd = o
			}
		}
		done := func(o *job) bool { return o.record.State == wire.JobFinished }
		if odd == nil || slices.ContainsFunc(g, done) { // the others will say that they have finished
			continue
		}
		const why = "the controller was started again before all replicas had heard"
		for _, s := range [...]wire.JobState{wire.JobFailed, wire.JobStopped, wire.JobStopping, wire.JobParking,
			wire.JobParked,
			wire.JobRunning} {
			at := slices.IndexFunc(g, func(o *job) bool { return stage(o) == s })
			if at < 0 {
				continue
			}
			if s.Over() {
				m.endToo(g[at])
			} else {
				m.scatter(g[at], why, false)
			}
			break
		}
	}
}
