package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"tensile/graph/text"
	"tensile/predictor/correct"
	"tensile/wire"
)

// status compares what an executor does with what it is to do.
func (m *Machine) status(s *wire.Status) {
	leaves := false // these are its last words
	for _, life := range s.Dead {
		if life == s.Life {
			leaves = true
		} else {
			m.died(s.Executor, life, "its process has ended")
		}
	}
	x := m.executors[s.Executor]
	if x != nil && x.dead && x.life == s.Life {
		return // late
	}
	if leaves && (x == nil || x.gone || x.life != s.Life) {
		m.died(s.Executor, s.Life, "it has left")
		return
	}
	if x == nil || x.gone {
		if x = m.join(s); x == nil {
			return
		}
	}
	switch {
	case x.life != "" && x.life != s.Life:
		m.compete(x, s)
		return
	case x.life != "" && s.Number <= x.seen:
		x.heard = m.now
		return // older than what is known
	case x.life == "":
		m.changed = true // what is ordered from now on is for this process alone
	}
	if why := m.otherLease(x, s); why != "" && (x.seen == 0 || x.silent) {
		m.sendAway(x, s, why)
		return
	}
	begins := x.life == ""
	x.life, x.host, x.folder, x.place, x.since, x.seen = s.Life, s.Host, s.Folder, s.Place, s.Since, s.Number
	x.joined, x.heard = true, m.now
	x.leaving = s.Leaves
	x.domain.budgeted(x, s.Brings, begins)
	if x.rival != nil {
		m.repel(x)
	}
	if x.silent {
		m.back(x)
	}
	for _, js := range s.Jobs {
		if j := m.find(js.Name); j != nil && j.record.Spec.ID == js.ID && j.record.Executor == x.name &&
			js.Incarnation == j.record.Incarnation && !j.record.State.Over() {
			m.jobStatus(j, js, s.Orders >= x.orders.Number)
		}
	}
	if leaves {
		m.bury(x, "it has left")
		return
	}
	m.holds(x, s)
	if s.Orders < x.orders.Number {
		again := x.orders
		m.say(Output{Orders: &again}) // they may have been lost
	}
}

// otherLease is why a process cannot be that executor of its device: another one, which is heard of, has the lease of
// the device's memory elsewhere. Both leases would grant all of it. One that is out of reach counts whole.
func (m *Machine) otherLease(x *executor, s *wire.Status) string {
	if !x.domain.config.shares() {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(m.executors)) {
		other := m.executors[name]
		if other != x && other.domain == x.domain && other.joined && !other.gone && !other.silent &&
			other.place != s.Place {
			return fmt.Sprintf("it cannot share the lease of the device's memory with executor %s%s: start both as "+
				"one user of one machine and network namespace, or give its device another --name", name,
				where(other.host))
		}
	}
	return ""
}

// sendAway refuses the process of an executor, which then ends.
func (m *Machine) sendAway(x *executor, s *wire.Status, why string) {
	if x.refused != nil && x.refused.Life == s.Life {
		again := x.orders
		m.say(Output{Orders: &again}) // they may have been lost
		return
	}
	m.event(Event{Kind: SentAway, Executor: s.Executor, Reason: why})
	x.life, x.refused, m.changed = s.Life, &wire.Refusal{Life: s.Life, Why: why}, true
}

// maxSeen is the largest number of orders that a process is believed to have seen: others come after it.
const maxSeen = 1 << 52

// join takes an executor in that was not started from here, or that was given up too early.
func (m *Machine) join(s *wire.Status) *executor {
	x := &executor{name: s.Executor, own: wire.Owned(s.Executor), orders: m.stored[s.Executor]}
	if old := m.executors[s.Executor]; old != nil {
		x.orders = old.orders
	}
	x.orders.Number = max(x.orders.Number, min(s.Orders, maxSeen))
	var why string
	if x.domain, why = m.domainOf(s); why == "" {
		why = m.otherLease(x, s)
	}
	if why != "" {
		m.event(Event{Kind: SentAway, Executor: s.Executor, Reason: why})
		m.say(Output{Orders: &wire.Orders{Executor: s.Executor, Life: s.Life, Number: x.orders.Number + 1,
			Jobs: []wire.Assignment{}, Refused: &wire.Refusal{Life: s.Life, Why: why}}})
		return nil
	}
	m.executors[s.Executor], m.changed = x, true
	m.unstick()
	for _, j := range m.jobs { // this process may have what the one before of its name lacked
		j.tried = slices.DeleteFunc(j.tried, func(name string) bool { return name == x.name })
		if j.lacking > 0 {
			m.admit(j.domain)
		}
	}
	if m.look = true; x.domain.brought != nil { // jobs that wait may take it
		m.admit(x.domain)
	}
	m.event(Event{Kind: Joined, Executor: s.Executor})
	return x
}

// compete hears of a second process that is called as an executor is, as with the same credentials started twice. It is
// refused when the first is heard again, and taken in when that is given up. Where one of them was launched from here
// it is not known which: silence decides from now on.
func (m *Machine) compete(x *executor, s *wire.Status) {
	x.launched = false
	if x.refused != nil && x.refused.Life == s.Life {
		again := x.orders
		m.say(Output{Orders: &again}) // they may have been lost
		return
	}
	if !slices.Contains(x.rivals, s.Life) {
		x.rivals = append(x.rivals, s.Life)
		m.event(Event{Kind: Doubled, Executor: x.name, Host: s.Host})
	}
	x.rival = s
}

// repel refuses the second process of an executor whose first one lives.
func (m *Machine) repel(x *executor) {
	why := fmt.Sprintf("%s runs already%s", x.name, where(x.host))
	if x.since > 0 {
		form := "15:04"
		if x.rival.Since-x.since > int64(24*time.Hour) {
			form = "2 January 15:04"
		}
		why += " since " + time.Unix(0, x.since).Format(form)
	}
	m.event(Event{Kind: Repelled, Executor: x.name, Host: x.rival.Host, Reason: why})
	x.refused, x.rival, m.changed = &wire.Refusal{Life: x.rival.Life, Why: why}, nil, true
}

// where is where a process runs, in words.
func where(host string) string {
	if host == "" {
		return ""
	}
	return " on " + host
}

// maxError is how many bytes of an error an executor is believed.
const maxError = 1000

// jobStatus takes over what an executor says of a job, in answer to its newest orders or to older ones.
func (m *Machine) jobStatus(j *job, s wire.JobStatus, answers bool) {
	s.Error = text.Line(s.Error, maxError) // others print it in a table
	if !j.record.Spec.Script {
		s.Iteration = min(s.Iteration, j.record.Spec.Iterations)
	}
	m.said(j, s.Script)
	if j.record.Iteration = max(j.record.Iteration, s.Iteration); s.State == wire.Running &&
		j.record.State == wire.Starting {
		j.record.Iteration = s.Iteration // it may have begun at an older checkpoint than was known
	}
	m.checkpointed(j, s.Checkpoint)
	if j.replica() {
		m.keeps(j, &s)
	}
	if s.Epoch > j.record.Applied && j.mayApply(s.Epoch) {
		m.discard(j, j.applied(s.Epoch), false)
		m.changed = true
	}
	there := s.State == wire.Waiting && j.record.State == wire.Starting
	if j.there != there {
		j.there, m.changed = there, true
	}
	if j.replica() && m.siblingStatus(j, &s, answers) {
		return
	}
	switch s.State {
	case wire.Running:
		m.trains(j)
		if (s.Error != "" || j.record.State == wire.Training) && s.Error != j.record.Why {
			if j.record.Why, m.changed = s.Error, true; s.Error != "" {
				m.event(Event{Kind: Troubled, Job: j.record.Spec.Name, Why: s.Error})
			}
		}
	case wire.Resting:
		if j.record.State == wire.Parking && j.record.Target != "" && s.Error != "" && answers {
			m.stays(j, s.Error) // no checkpoint could be written
			return
		}
		if j.record.State == wire.Parking && j.record.Park == wire.InMemory && s.Arena == 0 && answers {
			m.parked(j)
		}
	case wire.Suspended:
		m.suspended(j, s)
	case wire.Finished:
		m.over(j, wire.Done, "", s.Result)
	case wire.Stopped:
		m.over(j, wire.Halted, "", s.Result)
	case wire.Failed:
		x := m.executors[j.record.Executor]
		switch {
		case s.Damaged && m.beginAgain(j, s.Error):
			return
		case s.Lacks && m.lacks(j, x, s.Error):
			return
		case s.Free != nil && m.crowded(j, *s.Free, s.Error):
			return
		case !x.own && m.elsewhere(j, s.Error):
			j.tried = append(j.tried, x.name) // another machine may have what it lacks
			return
		}
		j.record.Diverged = s.Diverged
		m.over(j, wire.Broken, s.Error, s.Result)
	}
}

const (
	maxTick     = 5 * time.Second // between two ticks of a process that does not stand still
	forgetAfter = time.Hour       // that an executor was not heard of and is gone
)

// tick is told every second or so.
func (m *Machine) tick(t *Tick) {
	for _, d := range m.domains {
		if d.learnt.news && m.now-d.learnt.stored >= storeEvery {
			d.keep()
		}
	}
	m.takeLate()
	deaf := t.Deaf || m.now-m.ticked > maxTick // what executors said while this process stood still is still to be read
	m.ticked = m.now
	for _, name := range slices.Sorted(maps.Keys(m.executors)) {
		x := m.executors[name]
		if x.gone && m.now-x.heard > forgetAfter {
			delete(m.executors, name) // nothing that it has said is on its way any more
		}
		ours := x.launched && m.config.Watched // its end is told: it may be silent, unless others wait for its pages
		if x.gone || ours && !(x.domain.config.shares() && x.joined) {
			continue
		}
		if deaf {
			x.heard = m.now
		}
		silent := m.now - x.heard
		if silent > m.config.Silence && !x.silent {
			m.silence(x)
		}
		switch {
		case silent <= m.config.GiveUp:
		case !ours:
			m.giveUp(x)
		case !x.killed:
			x.killed = true
			m.event(Event{Kind: Killed, Executor: x.name, Why: silentFor(silent)})
			m.say(Output{Kill: x.name})
		}
	}
	for _, j := range m.jobs {
		if j.ready > 0 && j.ready <= m.now {
			j.ready = 0
			m.admit(j.domain)
			for _, d := range m.domains {
				d.want.admission = d.want.admission || len(d.waiting()) > 0 // behind it
			}
		}
	}
	m.takeByTime()
	m.reckon()
	m.missLong()
	for _, d := range slices.Clone(m.domains) {
		m.close(d)
	}
}

// checkpointed takes down the newest checkpoint of a job's present incarnation. It is a progress if it is newer than
// the one before.
func (m *Machine) checkpointed(j *job, c *wire.Checkpoint) {
	old := j.record.Checkpoint
	if c == nil || c.Iteration > j.record.Spec.Iterations || old != nil && *old == *c {
		return
	}
	if !j.replica() && (old == nil || c.Iteration > old.Iteration) {
		j.record.Restarts = 0
	}
	if j.stays && (old == nil || c.Iteration > old.Iteration) {
		j.stays = false
		m.stir()
	}
	j.record.Checkpoint, m.changed = c, true
}

// trains takes down that a job trains.
func (m *Machine) trains(j *job) {
	if j.record.State == wire.Starting {
		j.record.State, j.record.Why, j.begun, m.changed = wire.Training, "", m.now, true
		j.lacking = 0
	}
}

// suspended takes down that a job has left its executor, for some trouble or in peace, and can go on from its
// checkpoint.
func (m *Machine) suspended(j *job, s wire.JobStatus) {
	switch {
	case j.record.State == wire.Ending:
		m.over(j, wire.Halted, "", s.Result)
	case j.record.State == wire.Parking || j.record.State == wire.Parked || j.record.State == wire.Queued:
		m.lost(j, cmp.Or(s.Error, "its executor has left"))
	case s.Error != "":
		if !m.restart(j, s.Error) {
			m.over(j, wire.Broken, s.Error, s.Result)
		}
	default:
		const why = "its executor has left"
		m.displace(j)
		m.enqueueAgain(j, fmt.Sprintf("goes on from iteration %d: %s", j.record.Iteration, why))
		m.event(Event{Kind: Restarted, Job: j.record.Spec.Name, Iterations: j.record.Iteration, Why: why})
	}
}

// orphans are the executors that a controller before this one had launched, and those that may have memory although
// they were given up, in the order of their names.
func (m *Machine) orphans() []string {
	names := make(map[string]bool)
	for name, x := range m.executors {
		names[name] = x.own && !x.launched && !x.gone
	}
	for _, j := range m.jobs {
		for _, h := range j.record.Held {
			names[h.Executor] = names[h.Executor] || wire.Owned(h.Executor)
		}
	}
	maps.DeleteFunc(names, func(_ string, orphan bool) bool { return !orphan })
	return slices.Sorted(maps.Keys(names))
}

// ended is told that a process has ended that was called as an executor is. Where two had its name and it is not known
// which one it was, that may have been the one that was refused: then silence decides about the other.
func (m *Machine) ended(g *Gone) {
	for _, life := range g.Lives {
		m.died(g.Executor, life, g.Why)
	}
	x := m.executors[g.Executor]
	switch {
	case x == nil || x.gone:
	case x.life != "" && len(g.Lives) > 0 || x.refused != nil: // it was another process
		x.launched = false
	default:
		m.bury(x, g.Why)
	}
}

// maxMoves is how often in a row a job gets another executor before it has begun.
const maxMoves = 2

// elsewhere has a job that has not begun get another executor, and reports whether it may have one.
func (m *Machine) elsewhere(j *job, why string) bool {
	if j.record.Spec.Script || j.record.State != wire.Starting || j.record.Applied > 0 || j.newest() == nil ||
		j.record.Restarts >= max(maxMoves, j.record.Spec.Restarts) {
		return false
	}
	if j.record.Restarts++; j.replica() {
		m.scatter(j, why, false)
	} else {
		m.move(j, why)
	}
	return true
}

// move has a job that has not begun get another executor.
func (m *Machine) move(j *job, why string) {
	m.discard(j, j.given(), true)
	j.record.Executor, m.changed = "", true
	for _, l := range j.layouts {
		l.delivered = false
	}
	m.event(Event{Kind: Moved, Job: j.record.Spec.Name, Why: why})
}

// trained takes down that a job has trained an iteration.
func (m *Machine) trained(j *job, r *wire.Report) {
	j.pace = correct.Latency(cmp.Or(j.pace, r.Wall), r.Wall, j.domain.config.Alpha, false)
	m.moves.timed(j, r.Wall)
	j.gate = correct.Latency(j.gate, r.Gate, j.domain.config.Alpha, false)
	j.record.Iteration = max(j.record.Iteration, r.Iteration+1)
}

// report corrects a job's latencies by what was measured, and has all jobs planned again when they have changed by more
// than the threshold since they were planned last (TENSILE, section IV-E: |s'-s|/s).
func (m *Machine) report(r *wire.Report) {
	j := m.find(r.Job)
	if j == nil || j.record.Executor != r.Executor || j.record.State.Over() || r.ID != 0 && r.ID != j.record.Spec.ID ||
		r.Incarnation != j.record.Incarnation {
		return
	}
	j.heard.add(r.Iteration, r.Loss)
	if j.record.Spec.Script {
		m.trained(j, r)
	}
	d := j.domain
	at := slices.IndexFunc(j.layouts, func(l *layout) bool { return l.epoch() == r.Epoch && !j.stale(l) })
	if at < 0 || len(r.Steps) != len(j.layouts[at].Wire.Plan.Steps) {
		m.hear(j, r, nil)
		return // of a plan that is over
	}
	m.hear(j, r, j.layouts[at])
	m.trains(j) // its status may still be on its way
	alone := j.first(j.layouts[at], d.alone(j, r.Steps))
	for i, s := range j.layouts[at].Wire.Plan.Steps {
		j.latency[s.Op] = correct.Latency(j.latency[s.Op], alone[i], d.config.Alpha, r.Iteration == 0)
	}
	if !j.record.Spec.Script {
		d.learn(j, j.layouts[at], r.Iteration, alone)
		d.learnt.listen(j, j.layouts[at], alone)
		m.trained(j, r)
	}
	j.learnt, j.told = true, r
	if j.follow && r.Epoch == j.record.Epoch && r.Iteration > 0 {
		j.follow, j.last, m.changed = false, r, true
		waits := func(j *job) bool { return j.follow }
		if !slices.ContainsFunc(d.active(), waits) {
			d.want.must, d.want.better = true, because(Asked, "the policy asked to plan again")
		}
	}
	if j.reports++; d.config.NoReplan || j.reports < d.config.Settle || r.Epoch != j.record.Epoch || m.now < d.rest {
		return
	}
	if rate := correct.Drift(j.latency, j.assumed); rate > d.config.Threshold {
		d.want.better = because(Drifted, "the latencies of job %s have changed by %.0f %%", r.Job, 100*rate)
	}
}
