package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/wire"
)

// waiting are the jobs that are queued and may begin: by what their priority has become, then in the order in which
// they came; none behind one that returns.
func (d *domain) waiting() []*job {
	waiting := slices.DeleteFunc(slices.Clone(d.m.jobs), func(j *job) bool {
		if j.hurt != "" {
			return true
		}
		if d.m.returns(j) {
			return j.domain != d && !(j.free() && d.takes(j))
		}
		return j.domain != d || j.record.State != wire.JobQueued || j.stuck || j.passed || j.ready > d.m.now ||
			d.m.away(j) || j.lacking > 0 && d.vacant(j, nil) == "" || !d.takesFree(j) || !d.m.mayEnter(j)
	})
	d.m.inOrder(waiting)
	if first := slices.IndexFunc(waiting, d.m.returns); first >= 0 {
		waiting = waiting[:first]
	}
	unheld := d.unheld(slices.Clone(waiting))
	passed := func(j *job) bool { return j.passed }
	if len(unheld) == 0 && len(d.active()) == 0 && slices.ContainsFunc(slices.Collect(d.jobs()), passed) {
		return waiting // those for which they are held cannot begin
	}
	return unheld
}

// returns reports whether a job goes on in a moment that has lost its executor for the first time in a row: until then
// nothing that comes behind it gets the memory that it had.
func (m *Machine) returns(j *job) bool {
	return j.hurt == "" && j.record.State == wire.JobQueued && j.ready > m.now && j.record.Restarts <= 1
}

// takesFree reports whether the device takes a job that has a choice of devices.
func (d *domain) takesFree(j *job) bool {
	return !j.free() || d.takes(j)
}

// unstick has the jobs looked at again that wait for a larger budget, or for what executors out of reach may have.
func (m *Machine) unstick() {
	for _, j := range m.jobs {
		if j.stuck {
			j.stuck, j.fresh = false, true
			m.admit(j.domain)
		}
	}
}

// rank is the priority of a job that waits: it rises by one with each Config.Aging. So only jobs of higher priority
// that came soon after it are ever before it, and nobody starves.
func (m *Machine) rank(j *job) int64 {
	return int64(j.priority()) + int64(max(0, m.now-j.record.Waiting)/m.config.Aging)
}

// enqueue has a job wait in the queue.
func (m *Machine) enqueue(j *job, why string) {
	j.record.State, j.record.Reason, j.record.Need, j.record.Waiting = wire.JobQueued, why, 0, m.now
	j.fresh, j.stuck, j.lacking, j.wants = true, false, 0, 0 // the budget may have become smaller since it was admitted
	_, j.held = m.heldFor(j)                                 // what holds it may be gone when that is looked at next
	m.changed = true
	m.admit(j.domain)
}

// enqueueAgain has a job wait that did not leave its device for those that wait: it keeps its place before jobs that
// came later.
func (m *Machine) enqueueAgain(j *job, why string) {
	m.enqueue(j, why)
	j.record.Waiting = cmp.Or(j.record.Submitted, m.now)
}

// maxBackOff is the longest time that a job waits after its executor was lost. The first wait is a second, and each is
// twice the one before.
const maxBackOff = time.Minute

// restart has a job of an executor that was lost go on from its newest checkpoint, and reports whether it may.
func (m *Machine) restart(j *job, why string) bool {
	if j.record.Restarts >= j.record.Spec.Restarts {
		return false
	}
	j.record.Restarts++
	wait := min(maxBackOff, time.Second<<min(10, j.record.Restarts-1))
	j.ready = m.now + wait
	m.displace(j)
	m.enqueueAgain(j, fmt.Sprintf("goes on from iteration %d in %v (attempt %d of %d): %s", j.record.Iteration, wait,
		j.record.Restarts, j.record.Spec.Restarts, why))
	m.event(Event{Kind: Restarted, Job: j.record.Spec.Name, Iterations: j.record.Iteration, Why: why})
	return true
}

// lacks has a job that has found no checkpoint of its own at an executor begin at another, or, as long as no other can
// take it, wait for one that has it: the host where that is may come back. It reports whether it does.
func (m *Machine) lacks(j *job, x *executor, why string) bool {
	c := j.record.Checkpoint
	switch {
	case j.replica() && j.record.From > 0:
		m.lacksTogether(j, x, why)
		return true
	case c == nil || j.replica():
		return false
	case j.record.State != wire.JobStarting: // it was told to rest or to stop before it had begun
		m.lost(j, why)
		return true
	}
	if j.tried = append(j.tried, x.name); j.domain.vacant(j, nil) != "" {
		m.move(j, why)
		return true
	}
	if len(m.domains) > 1 && len(m.candidates(j)) > 0 { // another device may have it
		m.displace(j)
		m.enqueueAgain(j, why)
		m.event(Event{Kind: Moved, Job: j.record.Spec.Name, Why: why})
		return true
	}
	until := cmp.Or(j.lacking, m.now+m.config.GiveUp)
	m.displace(j)
	m.enqueueAgain(j, fmt.Sprintf("waits for an executor that has its checkpoint %s, on %s", c.File, c.Host))
	j.lacking = until
	m.event(Event{Kind: Queued, Job: j.record.Spec.Name, Reason: j.record.Reason})
	return true
}

// crowded has all jobs planned for again within what is really free, when the device has no room for the arena of one:
// programs that are not ours have the rest. That job goes on from its newest checkpoint. It reports whether it does.
func (m *Machine) crowded(j *job, free graph.Bytes, why string) bool {
	if s := j.record.State; j.record.Spec.Script || s != wire.JobStarting && s != wire.JobRunning ||
		j.record.Restarts >= max(maxMoves, j.record.Spec.Restarts) {
		return false
	}
	j.record.Restarts++
	if !j.replica() {
		m.displace(j)
	}
	d := j.domain
	room := max(1, d.taken()+free)
	if j.replica() { // which has its arena no more
		room = max(1, d.claims().Without(j.claim()).Bytes()+d.contexts().Sum()+free)
	}
	if d.config.Budget == 0 || room < d.config.Budget {
		d.config.Budget = room
		d.rebudget()
	}
	if j.replica() {
		m.scatter(j, why, false)
		return true
	}
	m.enqueueAgain(j, fmt.Sprintf("goes on from iteration %d: %s", j.record.Iteration, why))
	m.event(Event{Kind: Restarted, Job: j.record.Spec.Name, Iterations: j.record.Iteration, Why: why})
	return true
}

// missLong has jobs fail for whose checkpoints nobody has come.
func (m *Machine) missLong() {
	for _, j := range m.jobs {
		if j.record.State == wire.JobQueued && j.lacking > 0 && j.lacking <= m.now && !m.underway(j) && !m.there(j) {
			c := j.record.Checkpoint
			if j.replica() {
				m.over(j, wire.JobFailed, fmt.Sprintf("no executor has its checkpoint after %d iterations: "+
					"start one on %s with that folder (--checkpoints)", j.record.From, c.Host), nil)
				continue
			}
			m.over(j, wire.JobFailed, fmt.Sprintf("no executor has its checkpoint after %d iterations, %s on %s: "+
				"start one there with that folder (--checkpoints), or copy the file, and submit the job again "+
				"with --from FILE", c.Iteration, c.File, c.Host), nil)
		}
	}
}

// there reports whether an executor is heard that finds a job's newest checkpoint, and only may not take it now: its
// device is drained, or another than the one that the job asks for.
func (m *Machine) there(j *job) bool {
	for _, x := range m.executors {
		if len(m.domains) > 1 && x.joined && !x.gone && !x.silent && x.finds(j.record.Checkpoint) &&
			!x.domain.takes(j) && !slices.Contains(j.tried, x.name) {
			return true
		}
	}
	return false
}

// displace takes a job from its executor. What is left of it is its newest checkpoint.
func (m *Machine) displace(j *job) {
	if j.record.Granted == 0 && j.record.Checkpoint == nil {
		j.record.Device = "" // it has not begun
	}
	m.clear(j, true)
	j.record.Executor, j.record.Applied, j.record.Arena, j.record.SlotPeak, j.record.Park = "", 0, 0, 0, ""
	j.record.Iteration, j.progress = 0, progress{}
	if c := j.record.Checkpoint; c != nil {
		j.record.Iteration = c.Iteration
	}
	if j.replica() {
		j.record.Iteration, j.record.At, j.sibling = j.record.From, 0, sibling{}
	}
	m.changed = true
}

// clear takes from a job all that was planned for it: it has nothing of the device. leaves: nor does its executor keep
// it.
func (m *Machine) clear(j *job, leaves bool) {
	m.discard(j, j.given(), leaves)
	j.layouts, j.former, j.last, j.follow = nil, nil, nil, false
	j.record.Granted, j.record.Cleared, j.record.Link = 0, j.record.Epoch, wire.Rates{}
}

// park has a job rest, with nothing of the device, until it is resumed.
func (m *Machine) park(j *job, to wire.Place) error {
	switch {
	case j.record.State == wire.JobParked && (to == wire.InMemory || !j.placed()):
		return fmt.Errorf("job %s is parked already", j.record.Spec.Name)
	case j.record.State == wire.JobStopping:
		return fmt.Errorf("job %s is stopping", j.record.Spec.Name)
	case to == wire.OnDisk && j.record.Spec.Checkpoint == (wire.Interval{}):
		return fmt.Errorf("job %s takes no checkpoints: park it in memory, without --disk", j.record.Spec.Name)
	}
	j.record.Preempted = false
	m.goHome(j, to)
	return nil
}

// goHome has a job leave the device, and its siblings.
func (m *Machine) goHome(j *job, to wire.Place) {
	g := m.all(j)
	trains := func(o *job) bool { return !o.claim().none() }
	if j.replica() && j.record.State != wire.JobParking && slices.ContainsFunc(g, trains) {
		m.chooseAt(g, false)
	}
	for _, o := range g {
		o.record.Preempted = j.record.Preempted
		m.leave(o, to)
	}
}

// leave has a job leave the device: one that no executor has, or that was granted nothing where it is, at once, another
// when it has come Home.
func (m *Machine) leave(j *job, to wire.Place) {
	if j.placed() && !j.record.Spec.Script && j.claim().none() && j.hostClaim() == 0 {
		m.displace(j)
	}
	if !j.placed() {
		to = wire.OnDisk // nothing of it is in memory
	}
	j.record.Park, j.record.Reason, j.record.Need, j.record.Target = to, "", 0, ""
	if j.record.State = wire.JobParking; !j.placed() {
		m.parked(j)
	}
}

// parked takes down that a job rests.
func (m *Machine) parked(j *job) {
	m.clear(j, false)
	j.record.Arena, j.record.SlotPeak = 0, 0
	m.changed = true
	m.admit(j.domain)
	from := j.domain
	switch {
	case j.record.Preempted && j.record.Target != "":
		m.arrives(j)
	case j.record.Preempted && from != nil && from.drained():
		m.enqueueAgain(j, fmt.Sprintf("has left device %s, which is drained", from.on()))
	case j.record.Preempted && m.tenanted():
		m.enqueue(j, "gave way to another tenant")
	case j.record.Preempted:
		m.enqueue(j, "gave way to a job of higher priority")
	default:
		j.record.State, j.record.Reason = wire.JobParked, ""
	}
	if !m.config.NoReplan && from != nil {
		from.want.better = because(Departure, "job %s is parked", j.record.Spec.Name)
	}
	m.event(Event{Kind: Rested, Job: j.record.Spec.Name, Iterations: j.record.Iteration})
}

// resume has a parked job wait for its turn.
func (m *Machine) resume(j *job) error {
	if j.record.State == wire.JobParking && j.claim().none() { // it rests in memory already, and was to leave
		j.record.State, j.record.Park, j.record.Preempted = wire.JobParked, wire.InMemory, false
	}
	j.record.Target = ""
	if j.record.State == wire.JobParking {
		j.record.At, j.sibling.rests, j.sibling.margin = 0, false, 0
	}
	switch j.record.State {
	case wire.JobParked:
		m.enqueue(j, "is being planned for")
		if m.away(j) {
			j.record.Reason = fmt.Sprintf("rests at executor %s, which cannot be reached", j.record.Executor)
		}
	case wire.JobParking:
		j.record.Park, j.record.Preempted = "", false
		if j.known(); m.executors[j.record.Executor].silent {
			j.unknown(m.executors[j.record.Executor])
		}
	default:
		return fmt.Errorf("job %s is %s, not parked", j.record.Spec.Name, j.record.State)
	}
	return nil
}

// preempt parks the job of the lowest priority for the first one that waits for memory, if that has a higher one. It
// does so once at a time: plans show whether that was enough. For device memory it rests in host memory; for that it
// leaves with a checkpoint.
func (d *domain) preempt() {
	if !d.config.Preempt || d.errand != nil || d.want.admission {
		return
	}
	waiting := d.waiting()
	if len(waiting) == 0 {
		return
	}
	first, rank := waiting[0], d.m.rank(waiting[0])
	need, gives, place := first.record.Need, d.gives, wire.InMemory
	if need == 0 {
		need, gives, place = first.wants, hostGives, wire.OnDisk
	}
	if need == 0 {
		return
	}
	var victim *job
	var lower []*job
	for _, j := range d.active() {
		below := j.record.State == wire.JobRunning && int64(j.priority()) < rank &&
			(!d.m.tenanted() || j.tenant() == first.tenant()) // tenants have shares of each other
		if below {
			lower = append(lower, j)
		}
		switch {
		case j.record.State == wire.JobParking || j.record.State == wire.JobStopping:
			return // which gives bytes back
		case !below || gives(j) == 0 || d.m.now-j.begun < d.config.Turn:
		case victim == nil || j.priority() <= victim.priority():
			victim = j
		}
	}
	if victim == nil || gives(lower...) < need {
		return
	}
	victim.record.Preempted, d.m.changed = true, true
	d.m.goHome(victim, place)
	d.m.event(Event{Kind: Preempted, Job: victim.record.Spec.Name, Reason: first.record.Spec.Name})
}

// unload has a job leave its executor, for disk, that gave way and rests in memory, when the first one that waits lacks
// no more than such jobs have: host memory, and the contexts of their executors. It does so once at a time, as preempt
// does. If that does not help either, and nothing trains on the device, that one lets the others pass, and its siblings
// with it.
func (d *domain) unload() {
	if d.errand != nil || d.want.admission {
		return
	}
	waiting := d.waiting()
	if len(waiting) == 0 {
		return
	}
	first := waiting[0]
	need, gives := first.record.Need, d.context
	if need == 0 {
		need, gives = first.wants, func(j *job) graph.Bytes { return hostGives(j) }
	}
	var last *job
	var sum graph.Bytes
	others := false
	for j := range d.jobs() {
		others = others || j != first && !j.siblingOf(first) && j.record.State == wire.JobQueued && !j.stuck &&
			!j.passed
		switch {
		case j.record.State == wire.JobParking || j.record.State == wire.JobStopping:
			return // which gives bytes back
		case j == first || j.record.State != wire.JobQueued || !j.record.Preempted || d.m.away(j) || gives(j) == 0:
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
		if others && len(d.active()) == 0 {
			for _, o := range d.m.all(first) {
				o.passed = true
			}
			d.want.admission, d.m.changed = true, true
		}
		return
	}
	d.m.changed = true
	d.m.goHome(last, wire.OnDisk)
	d.m.event(Event{Kind: Preempted, Job: last.record.Spec.Name, Reason: first.record.Spec.Name, Why: AtRest})
}

// AtRest is why a job gives way that did so before.
const AtRest = "it rests in memory"

// context is what would be free of the device if a job that rests left its executor.
func (d *domain) context(j *job) graph.Bytes {
	x := d.m.executors[j.record.Executor]
	if d.config.Share || x == nil || !x.own || j.record.Spec.Checkpoint == (wire.Interval{}) {
		return 0
	}
	return d.config.Context
}

// gives is what would be free of the device without some jobs.
func (d *domain) gives(jobs ...*job) graph.Bytes {
	var left Together
	for j := range d.jobs() {
		if !slices.Contains(jobs, j) {
			left = left.With(j.claim())
		}
	}
	held, _ := d.held()
	left = left.With(whole(held))
	return d.claims().Bytes() - left.Bytes()
}

// hostGives is what jobs have on the host that they can give back: those without checkpoints keep all of it.
func hostGives(jobs ...*job) (sum graph.Bytes) {
	for _, j := range jobs {
		if j.record.Spec.Checkpoint != (wire.Interval{}) {
			sum += j.hostClaim()
		}
	}
	return sum
}
