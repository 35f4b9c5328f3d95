package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/wire"
)

// A data-parallel job of N replicas is N jobs, siblings, called NAME@0 to NAME@N-1. Each has its own record, plans,
// claims and incarnations; no iteration ends without all of them. So what is decided of one is decided of all. Which
// jobs are siblings stands in their records (wire.Replica.Group), so that a controller that is started again knows it.
//
//	queued --> starting --> running --> finished     all together
//	  ^  (a)       (b)        |  (c)
//	  |                       |
//	  +-----------------------+  (d)
//
// (a) Placement. Siblings are tried one after the other, as other jobs are, on the devices that have fewest of them.
// One group is on its way in at a time. If a sibling finds no room all go back to the queue.
//
// (b) They begin together: none is granted its first layout unless all can be. So no group holds memory of one device
// while it waits for that of another. Later changes of plans are each sibling's own.
//
// (c) They rest together, to be parked, to leave, or to end: after as many iterations as Record.At says. That is the
// largest number of iterations that any is known to have begun, and a few more. One that has begun more when it hears
// of it goes on, as its status says, and then At rises for all. None is told to end or to leave before all rest: one
// that rests can still go on. A checkpoint by time is taken after At iterations likewise.
//
// (d) Whatever goes wrong: all are taken from their executors and begin again together, in new incarnations, with the
// newest checkpoint that each of them has (Record.From). What an executor that lives may still have of them stays
// reserved until it says that it has it no more (hold).

// sibling is what is known of a replica beyond other jobs, from what its executor says of its present incarnation.
type sibling struct {
	issued  int             // iterations that it has begun, at least
	running bool            // it trains, or is about to
	rests   bool            // it rests after Record.At iterations
	left    bool            // it has left its executor, as it was told
	alone   bool            // it has failed since the connection to others broke
	ended   *wire.JobStatus // that it has finished or was stopped; nil: neither
	meets   *wire.Meeting   // where the next replica finds it; nil: it has not said
	margin  int             // by which At is beyond what was begun; 0: it was not chosen yet
	taken   time.Duration   // of replica 0: when a checkpoint by time was ordered last; 0: never
	kept    []int           // iterations of checkpoints beyond Record.From, of all incarnations
}

func (j *job) replica() bool { return j.record.Spec.Replica.Of > 0 }

// together is how siblings are called together: their names without the numbers.
func together(s *wire.Spec) string {
	if s.Replica.Of == 0 {
		return s.Name
	}
	return strings.TrimSuffix(s.Name, fmt.Sprintf("@%d", s.Replica.Number))
}

// siblings are the replicas that train one network together, j among them, in the order of their numbers; nil: j is no
// replica.
func (m *Machine) siblings(j *job) (list []*job) {
	if !j.replica() {
		return nil
	}
	for _, o := range m.jobs {
		if o.replica() && o.record.Spec.Replica.Group == j.record.Spec.Replica.Group && o.batch == j.batch &&
			(o.batch == nil || together(&o.record.Spec) == together(&j.record.Spec)) {
			list = append(list, o)
		}
	}
	return list
}

// siblingOf reports whether two jobs are siblings.
func (j *job) siblingOf(o *job) bool {
	return j.replica() && j.record.Spec.Replica.Group == o.record.Spec.Replica.Group && o.replica()
}

// all are the siblings of a job, or the job if it is no replica.
func (m *Machine) all(j *job) []*job {
	if list := m.siblings(j); list != nil {
		return list
	}
	return []*job{j}
}

// lookUp returns the job of a name, or the first of the replicas that are called so together; nil: there is none.
func (m *Machine) lookUp(name string) *job {
	if j := m.find(name); j != nil {
		return j
	}
	if j := m.find(name + "@0"); j != nil && j.replica() {
		return j
	}
	return nil
}

// refusesReplicas is why replicas among jobs that are submitted together cannot be taken; nil: they can. Those of a
// group stand one after the other, and differ in their numbers and files alone.
func (m *Machine) refusesReplicas(list []Submission) error {
	for i := 0; i < len(list); i++ {
		first := &list[i]
		of := first.Spec.Replica.Of
		if of == 0 {
			if old := m.find(first.Spec.Name + "@0"); old != nil && old.replica() && !old.record.State.Over() {
				return fmt.Errorf("there is a job %s of %d replicas: give the new one another name, or stop that one "+
					"first", first.Spec.Name, old.record.Spec.Replica.Of)
			}
			continue
		}
		name := together(&first.Spec)
		switch old := m.find(name); {
		case old != nil && !old.record.State.Over():
			return fmt.Errorf("there is a job %s: give the new one another name, or stop that one first", name)
		case first.Spec.Script || first.Graph.Opaque():
			return fmt.Errorf("job %s is recorded from another framework, which reduces no gradients here: leave "+
				"--replicas out", name)
		case first.Graph.Replicas() != of:
			return fmt.Errorf("job %s: its graph is of %d replicas, not of %d: submit it with --replicas %[3]d", name,
				first.Graph.Replicas(), of)
		case m.config.MemorySharing != wire.NoSharing:
			return fmt.Errorf("job %s: a replica that waits for memory keeps the others waiting, which may have it: "+
				"start the controller with --memory-sharing none", name)
		}
		for n := range of {
			want := first.Spec
			want.Name, want.Replica = fmt.Sprintf("%s@%d", name, n), wire.Replica{Number: n, Of: of}
			if i+n < len(list) {
				want.Save, want.From = list[i+n].Spec.Save, list[i+n].Spec.From
			}
			if i+n >= len(list) || list[i+n].Spec != want {
				return fmt.Errorf("job %s: %s of its %d replicas is missing or is another job: submit all together, "+
					"one after the other", name, want.Name, of)
			}
		}
		i += of - 1
	}
	return nil
}

// apart are, of the devices that may take a replica, those that have fewest of its siblings.
func (m *Machine) apart(j *job, list []*domain) []*domain {
	if !j.replica() || j.dense || len(list) < 2 {
		return list
	}
	count := make(map[*domain]int)
	for _, o := range m.siblings(j) {
		if o != j && (o.chosen || o.active() || o.placed()) {
			count[o.domain]++
		}
	}
	fewest := count[list[0]]
	for _, d := range list {
		fewest = min(fewest, count[d])
	}
	return slices.DeleteFunc(list, func(d *domain) bool { return count[d] > fewest })
}

// denser has a replica that fits none of the devices with fewest siblings tried on those with more of them; it reports
// whether there are any.
func (m *Machine) denser(j *job) bool {
	if !j.replica() || j.dense || !j.free() {
		return false
	}
	few := len(m.candidates(j))
	if j.dense = true; len(m.candidates(j)) == few {
		return false
	}
	j.chosen, m.look = false, true
	return true
}

// entering are the siblings of the group that is on its way in: one of them is admitted, and has nothing yet, or was
// tried and is to be.
func (m *Machine) entering() []*job {
	for _, j := range m.jobs {
		if j.replica() && (j.record.State == wire.Starting && j.claim().none() ||
			j.record.State == wire.Queued && j.chosen) {
			return m.siblings(j)
		}
	}
	return nil
}

// mayEnter reports whether a job that waits may be planned for now: of a replica no other group is on its way in, and
// nothing but memory keeps a sibling from beginning.
func (m *Machine) mayEnter(j *job) bool {
	g := m.siblings(j)
	if g == nil {
		return true
	}
	if in := m.entering(); in != nil && in[0] != g[0] {
		return false
	}
	for _, o := range g {
		switch o.record.State {
		case wire.Starting:
		case wire.Queued:
			if o.stuck || o.full || o.ready > m.now || m.away(o) || o.lacking > 0 && !m.another(o) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// unsettled reports whether siblings of a job are still to be tried.
func (m *Machine) unsettled(j *job) bool {
	return slices.ContainsFunc(m.siblings(j), func(o *job) bool {
		return o != j && o.record.State == wire.Queued && !o.full && (o.domain == nil || m.roams(o))
	})
}

// whole drops replicas from jobs that are about to begin on a device if a sibling there does not begin with them.
func (d *domain) whole(begun []*job) (whole, cut []*job) {
	for _, j := range begun {
		alone := func(o *job) bool {
			if o.domain != d || o.record.State != wire.Queued || slices.Contains(begun, o) {
				return false
			}
			may := d.m.candidates(o) // it was here before, and is perhaps to be elsewhere
			return o.chosen || len(may) == 1 && may[0] == d
		}
		if slices.ContainsFunc(d.m.siblings(j), alone) || !d.m.mayEnter(j) {
			cut = append(cut, j)
		} else {
			whole = append(whole, j)
		}
	}
	return whole, cut
}

// neverFit returns why the replicas of a job can not begin together on the one device that there is, even alone; "":
// they may.
func (d *domain) neverFit(e *errand, p *Planned) (j *job, why string) {
	if len(d.m.domains) > 1 || e.admitted > 0 || len(e.jobs) == 0 || p.Why == nil || p.Why.Need == 0 ||
		d.reserved() > 0 || e.budget != d.config.Budget {
		return nil, ""
	}
	j = e.jobs[0]
	if j.record.Spec.Replica.Of <= len(p.Jobs) {
		return nil, ""
	}
	of := ""
	if p.Why.OnHost {
		of = " of host memory"
	}
	return j, fmt.Sprintf("job %s cannot run here, even alone: %d of its %d replicas need %s%s and the budget is "+
		"%s%s; try fewer --replicas, or a smaller --batch or --image", together(&j.record.Spec), len(p.Jobs)+1,
		j.record.Spec.Replica.Of, p.Why.Need, of, p.Why.Budget, with(p.Why.Contexts))
}

// stick has the replicas of a job wait for a larger budget, where they hold nobody up.
func (d *domain) stick(j *job, why string) {
	for _, o := range d.m.siblings(j) {
		o.stuck, o.fresh, o.record.Need, o.record.Why = true, false, 0, "waits for a larger budget: "+why
	}
	d.m.event(Event{Kind: Queued, Job: j.record.Spec.Name, Reason: j.record.Why})
	d.want.admission, d.m.changed = true, true
}

// pending reports whether plans with a job that waits are being made, or are to be.
func (m *Machine) pending(j *job) bool {
	d := j.domain
	switch {
	case m.underway(j):
		return true
	case m.roams(j):
		return m.look && !j.full
	}
	return d != nil && d.want.admission && slices.Contains(d.waiting(), j)
}

// retreat has the group that is on its way in wait again if a sibling has found no room.
func (m *Machine) retreat() {
	g := m.entering()
	admitted := slices.ContainsFunc(g, func(j *job) bool { return j.record.State == wire.Starting })
	at := slices.IndexFunc(g, func(j *job) bool {
		return j.record.State == wire.Queued && !m.pending(j) && (admitted || !j.chosen)
	})
	if at < 0 {
		return
	}
	m.withdraw(g, g[at].record.Spec.Name, g[at].record.Why)
}

// withdraw has the siblings of a group that has nothing yet wait again, with one of them.
func (m *Machine) withdraw(g []*job, first, why string) {
	m.changed, m.look = true, true
	for _, j := range g {
		if j.record.State == wire.Starting {
			j.domain.back(j)
			if j.record.Spec.Name != first {
				j.record.Why = fmt.Sprintf("waits with replica %s, which %s", first, why)
			}
			if !m.config.NoReplan && j.domain.want.better.none() {
				j.domain.want.better = because(Departure, "job %s waits again", j.record.Spec.Name)
			}
		}
		j.chosen, j.full = false, len(m.domains) > 1
	}
	for _, d := range m.domains {
		d.want.admission = true // others were kept from coming in
	}
}

// enter grants the siblings of the group that is on its way in their first layouts, if all can be granted at once.
func (m *Machine) enter() {
	g := m.entering()
	if g == nil {
		return
	}
	for i, j := range g {
		l := j.newest()
		if j.record.State != wire.Starting || l == nil || l.granted || !j.domain.room(j, l) {
			for _, o := range g[:i] {
				o.newest().granted = false
			}
			return
		}
		if d := j.domain; j.record.Executor == "" && d.brought != nil && (d.brought.Drained || d.vacant(j, nil) == "") {
			for _, o := range g[:i] {
				o.newest().granted = false
			}
			why := fmt.Sprintf("no executor of device %s takes it", d.on())
			m.withdraw(g, j.record.Spec.Name, why)
			for _, o := range g {
				o.full = false // another device may
			}
			j.record.Why = why
			return
		}
		l.granted = true // so that the others are counted beside it
	}
	for _, j := range g {
		l := j.newest()
		j.record.Granted, j.record.Park, j.record.At = l.epoch(), "", 0
		j.sibling.rests, j.sibling.margin, j.sibling.issued, j.sibling.running = false, 0, 0, true
		m.event(Event{Kind: Granted, Job: j.record.Spec.Name, Epoch: l.epoch(), Bytes: l.Wire.Arena})
	}
	g[0].sibling.taken = m.now
	for _, d := range m.domains { // other groups may come in now
		m.admit(d)
	}
}

// home reports whether all siblings of a replica rest, or have nothing to do any more.
func (m *Machine) home(j *job) bool {
	return !slices.ContainsFunc(m.siblings(j), func(o *job) bool {
		s := &o.sibling
		return !s.rests && !s.left && s.ended == nil && !o.record.State.Over()
	})
}

// chooseAt has siblings rest, or take a checkpoint, after more iterations than any has begun: by so many that they hear
// of it in time, and by twice as many with each try.
func (m *Machine) chooseAt(g []*job) {
	begun, margin := 0, 2
	for _, j := range g {
		begun = max(begun, j.sibling.issued, j.record.Iteration, j.record.At)
		if margin = max(margin, 2*j.sibling.margin); j.pace > 0 {
			margin = max(margin, 2+int(time.Second/j.pace))
		}
	}
	for _, j := range g {
		j.record.At, j.sibling.margin, j.sibling.rests = min(begun+margin, j.record.Spec.Iterations), margin, false
	}
	m.changed = true
}

// ordersRest says how a replica is ordered to rest: none ends or leaves before all rest.
func (m *Machine) ordersRest(j *job, a *wire.Assignment) {
	if a.At = j.record.At; (a.Stop || a.Park == wire.OnDisk) && !m.home(j) {
		a.Stop, a.Park = false, wire.InMemory
	}
	r := j.record.Spec.Replica
	for _, o := range m.siblings(j) {
		if o.record.Spec.Replica.Number == r.Number-1 {
			a.Neighbour = o.sibling.meets
		}
	}
}

// takeByTime has siblings take a checkpoint when it is time for one.
func (m *Machine) takeByTime() {
	for _, j := range m.jobs {
		every := j.record.Spec.Checkpoint.Every
		if every == 0 || !j.replica() || j.record.Spec.Replica.Number > 0 || m.now-j.sibling.taken < every {
			continue
		}
		g := m.siblings(j)
		idle := func(o *job) bool { return o.record.State != wire.Training || o.sibling.ended != nil }
		if j.sibling.taken == 0 || slices.ContainsFunc(g, idle) {
			if j.record.State == wire.Training && j.sibling.taken == 0 {
				j.sibling.taken = m.now
			}
			continue
		}
		j.sibling.taken = m.now
		m.chooseAt(g)
	}
}

// has reports whether a replica has the checkpoint after so many iterations, as far as it was heard.
func (j *job) has(iteration int) bool {
	every := j.record.Spec.Checkpoint.Iterations
	kept := j.sibling.kept
	return slices.Contains(kept, iteration) || // they are taken at all multiples
		every > 0 && iteration%every == 0 && len(kept) > 0 && iteration <= slices.Max(kept)
}

// commonOf is after how many iterations the newest checkpoint was taken that all siblings have; 0: there is none.
func commonOf(g []*job) int {
	common := g[0].record.From
	var all []int
	for _, j := range g {
		common = max(common, j.record.From)
		all = append(all, j.sibling.kept...)
	}
	for _, iteration := range all {
		lacks := func(j *job) bool { return !j.has(iteration) }
		if iteration > common && !slices.ContainsFunc(g, lacks) {
			common = iteration
		}
	}
	return common
}

// keeps takes down that a replica has a checkpoint. One that all have is a progress, and older ones are of no use.
func (m *Machine) keeps(j *job, c *wire.Checkpoint) {
	if c == nil || c.Iteration <= j.record.From || c.Iteration > j.record.Spec.Iterations ||
		slices.Contains(j.sibling.kept, c.Iteration) {
		return
	}
	j.sibling.kept = append(j.sibling.kept, c.Iteration)
	g := m.siblings(j)
	common := commonOf(g)
	if common == j.record.From {
		return
	}
	for _, o := range g {
		o.record.From, o.record.Restarts = common, 0
		o.sibling.kept = slices.DeleteFunc(o.sibling.kept, func(i int) bool { return i <= common })
		if o.goesOn() && o.record.At > 0 && common >= o.record.At {
			o.record.At, o.sibling.margin = 0, 0 // it was to be taken
		}
	}
	m.changed = true
}

// sibling takes over what an executor says of a replica, and reports whether that was all that there is to do.
func (m *Machine) siblingStatus(j *job, s *wire.JobStatus, answers bool) (done bool) {
	k := &j.sibling
	k.issued = max(k.issued, min(s.Begun, j.record.Spec.Iterations), s.Iteration)
	if s.Meets != nil && (k.meets == nil || *k.meets != *s.Meets) {
		k.meets, m.changed = s.Meets, true
	}
	k.running = s.State == wire.Running || s.State == wire.Waiting && j.record.Park == ""
	switch s.State {
	case wire.Finished, wire.Stopped:
		told := *s
		k.ended = &told
		m.endTogether(j)
		return true
	case wire.Suspended:
		written := s.Checkpoint != nil && s.Checkpoint.Iteration == j.record.At
		if j.record.State == wire.Parking && j.record.Park == wire.OnDisk && (written || m.home(j)) {
			k.left = true
			m.leaveTogether(j)
		} else {
			m.scatter(j, cmp.Or(s.Error, "its executor has left"), s.Error != "")
		}
		return true
	case wire.Failed:
		if s.Alone {
			k.alone = true
			if j.record.Why != s.Error {
				j.record.Why, m.changed = s.Error, true
			}
			m.alone(j, s.Error)
		}
		return s.Alone
	}
	m.rested(j, s, answers)
	m.alone(j, "the connection to another replica broke")
	return s.State == wire.Resting
}

// rested takes down whether a replica rests as it was told. When all do they are parked, or told to leave or to end. At
// rises for one that has begun too many iterations.
func (m *Machine) rested(j *job, s *wire.JobStatus, answers bool) {
	resting := j.record.State == wire.Parking || j.record.State == wire.Ending
	rests := j.rests() || resting
	if !rests || !answers {
		return
	}
	was := j.sibling.rests
	j.sibling.rests = s.State == wire.Resting && s.Arena == 0 && s.Iteration == j.record.At
	late := !j.sibling.rests && max(min(s.Begun, j.record.Spec.Iterations), s.Iteration) > j.record.At
	g := m.siblings(j)
	switch {
	case resting && late:
		m.chooseAt(g)
	case !resting || was == j.sibling.rests || !m.home(j):
	case j.record.State == wire.Parking && j.record.Park == wire.InMemory:
		for _, o := range g {
			m.parked(o)
		}
	default:
		m.changed = true // they are told to leave, or to end
	}
}

// endTogether ends siblings when all have finished, or were stopped.
func (m *Machine) endTogether(j *job) {
	g := m.siblings(j)
	stopped := j
	for _, o := range g {
		switch {
		case o.record.State.Over():
		case o.sibling.ended == nil:
			m.alone(j, "the connection to another replica broke")
			return
		case o.sibling.ended.State == wire.Stopped:
			stopped = o
		}
	}
	if stopped.sibling.ended.State == wire.Stopped {
		m.over(stopped, wire.Halted, "", stopped.sibling.ended.Result) // and with it the others
		return
	}
	for _, o := range g {
		if !o.record.State.Over() {
			m.over(o, wire.Done, "", o.sibling.ended.Result)
		}
	}
}

// leaveTogether has siblings be parked on disk when all have left their executors.
func (m *Machine) leaveTogether(j *job) {
	g := m.siblings(j)
	if !slices.ContainsFunc(g, func(o *job) bool { return !o.sibling.left }) {
		m.begone(g)
		for _, o := range g {
			o.record.Park = wire.OnDisk
			m.parked(o)
		}
	}
}

// alone has siblings begin again when one of them has failed only since a connection broke, and none trains any more:
// one that does may yet say what the trouble was.
func (m *Machine) alone(j *job, why string) {
	g := m.siblings(j)
	trains := func(o *job) bool {
		return o.record.State == wire.Unknown || o.sibling.running && !o.sibling.alone && o.sibling.ended == nil
	}
	if slices.ContainsFunc(g, func(o *job) bool { return o.sibling.alone }) && !slices.ContainsFunc(g, trains) {
		m.scatter(j, why, true)
	}
}

// endToo ends the siblings of a replica that is over and has not finished.
func (m *Machine) endToo(j *job) {
	for _, o := range m.siblings(j) {
		if o.record.State.Over() {
			continue
		}
		if o.sibling.ended == nil {
			m.hold(o)
		}
		why := j.record.Why
		if why != "" && !strings.HasPrefix(why, "replica ") {
			why = fmt.Sprintf("replica %s: %s", j.record.Spec.Name, why)
		}
		var result *wire.Result
		if o.sibling.ended != nil {
			result = o.sibling.ended.Result
		}
		m.over(o, j.record.State, why, result)
	}
}

// hold reserves what an executor may have of a job that is taken from it, until the executor is known to have it no
// more.
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
// if they were to rest, or end if they were to end. counts: it is one of the restarts that they have.
func (m *Machine) scatter(j *job, why string, counts bool) {
	g := m.siblings(j)
	state := j.record.State
	begun, tries := 0, 0
	for _, o := range g {
		begun, tries = max(begun, o.record.Iteration, int(o.record.Applied)), max(tries, o.record.Restarts)
		if o.record.State == wire.Ending {
			state = wire.Ending
		}
	}
	limit := j.record.Spec.Restarts
	if begun == 0 { // they lose nothing
		limit = max(maxMoves, limit)
	}
	switch {
	case state.Over():
		return
	case state == wire.Ending:
		m.hold(j) // its executor may live, and be out of reach
		m.over(j, wire.Halted, why, nil)
		return
	case counts && tries >= limit:
		m.hold(j)
		m.over(j, wire.Broken, why, nil)
		return
	case begun > 0 && commonOf(g) == 0 && j.record.Spec.Checkpoint == wire.Interval{} && j.record.Spec.Restarts == 0:
		m.hold(j)
		m.over(j, wire.Broken, why, nil) // they would begin again
		return
	}
	m.begone(g)
	if state == wire.Parking || state == wire.Parked {
		for _, o := range g {
			o.record.Park = wire.OnDisk
			if o.record.State == wire.Parking {
				m.parked(o)
			}
		}
		return
	}
	line := fmt.Sprintf("goes on with all replicas from iteration %d: %s", j.record.From, why)
	if counts && state != wire.Queued {
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
		m.enqueue(o, line)
		m.event(Event{Kind: Restarted, Job: o.record.Spec.Name, Iterations: o.record.From, Why: why})
	}
}

// lacksTogether has siblings begin at other executors if one of them has not found the checkpoint with which they
// begin, or wait for one that has it.
func (m *Machine) lacksTogether(j *job, x *executor, why string) {
	until := j.lacking
	j.tried = append(j.tried, x.name)
	if m.scatter(j, why, false); j.record.State != wire.Queued || m.another(j) {
		return
	}
	if until == 0 {
		until = m.now + m.config.GiveUp
	}
	j.lacking = until
	j.record.Why = why
	if c := j.record.Checkpoint; c != nil {
		j.record.Why = fmt.Sprintf("waits for an executor that has its checkpoint after %d iterations, as on %s",
			j.record.From, c.Host)
	}
}

// another reports whether an executor may take a job that has found no checkpoint at others.
func (m *Machine) another(j *job) bool {
	return j.domain != nil && j.domain.vacant(j, nil) != "" || len(m.domains) > 1 && len(m.candidates(j)) > 0
}

// heal has siblings agree that a controller has left in different states which was killed while it wrote them down.
func (m *Machine) heal() {
	for _, j := range slices.Clone(m.jobs) {
		if !j.replica() || j.record.Spec.Replica.Number > 0 {
			continue
		}
		g := m.siblings(j)
		stage := func(o *job) wire.JobState {
			switch s := o.record.State; {
			case s.Over() || s == wire.Ending || s == wire.Parking || s == wire.Parked:
				return s
			case o.claim().none():
				return wire.Queued
			}
			return wire.Training
		}
		var odd *job
		for _, o := range g {
			o.sibling.running = o.goesOn()
			if c := o.record.Checkpoint; c != nil && c.Iteration > o.record.From {
				o.sibling.kept = []int{c.Iteration}
			}
			if stage(o) != stage(j) {
				odd = o
			}
		}
		done := func(o *job) bool { return o.record.State == wire.Done }
		if odd == nil || slices.ContainsFunc(g, done) { // the others will say that they have finished
			continue
		}
		const why = "the controller was started again before all replicas had heard"
		for _, s := range [...]wire.JobState{wire.Broken, wire.Halted, wire.Ending, wire.Parking, wire.Parked,
			wire.Training} {
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
