package controller

import (
	"fmt"
	"slices"

	"tensile/wire"
)

// How the replicas of a group are placed and begin together: (a) and (b) of replicas.go.

// apart are, of the devices that may take a replica, those that have fewest of its siblings; or all, if it has found no
// room on these.
func (m *Machine) apart(j *job, list []*domain) []*domain {
	if !j.replica() || j.dense || j.stuck || len(list) < 2 {
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
		if j.replica() && (j.record.State == wire.JobStarting && j.claim().none() ||
			j.record.State == wire.JobQueued && j.chosen) {
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
		case wire.JobStarting:
		case wire.JobQueued:
			elsewhere := func(d *domain) bool { return o.free() && d != o.domain } // which may take it
			held := o.stuck && !slices.ContainsFunc(m.candidates(o), elsewhere)
			if held || o.full || o.ready > m.now || m.away(o) || o.lacking > 0 && !m.another(o) {
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
		return o != j && o.record.State == wire.JobQueued && !o.full && (o.domain == nil || m.roams(o))
	})
}

// whole drops replicas from jobs that are about to begin on a device if a sibling there does not begin with them.
func (d *domain) whole(begun []*job) (whole, cut []*job) {
	for _, j := range begun {
		alone := func(o *job) bool {
			if o.domain != d || o.record.State != wire.JobQueued || slices.Contains(begun, o) {
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

// neverFit returns why the replicas of a job can not begin together on the one device that may take them, even alone,
// but for what executors out of reach may have; "": they may.
func (d *domain) neverFit(e *errand, p *Planned) (j *job, why string) {
	if e.admitted > 0 || len(e.jobs) == 0 || p.Why == nil || p.Why.Need == 0 || !d.unchanged(e) {
		return nil, ""
	}
	j = e.jobs[0]
	if j.record.Spec.Replica.Of <= len(p.Jobs) || slices.ContainsFunc(d.m.siblings(j), d.elsewhere) {
		return nil, ""
	}
	of, on, beside := "", "", ", even alone"
	if d.reserved() > 0 {
		beside = " beside what some may have that cannot be reached"
	}
	if p.Why.OnHost {
		of = " of host memory"
	}
	if len(d.m.domains) > 1 {
		on = " of device " + d.config.Name
	}
	return j, fmt.Sprintf("job %s cannot run here%s: %d of its %d replicas need %s%s and the budget%s is "+
		"%s%s; try fewer --replicas, or a smaller --batch or --image", together(&j.record.Spec), beside, len(p.Jobs)+1,
		j.record.Spec.Replica.Of, p.Why.Need, of, on, p.Why.Budget, with(p.Why.Contexts))
}

// elsewhere reports whether a job may begin on another device than this one.
func (d *domain) elsewhere(j *job) bool {
	if len(d.m.domains) == 1 || j.domain == d && !j.free() {
		return false
	}
	may := d.m.candidates(j)
	return j.domain != d || len(may) != 1 || may[0] != d
}

// stick has the replicas of a job wait for a larger budget, or for executors out of reach, where they hold nobody up.
func (d *domain) stick(j *job, why string) {
	waits := "waits for a larger budget: "
	if d.reserved() > 0 {
		waits = "waits for executors: "
	}
	for _, o := range d.m.siblings(j) {
		o.stuck, o.fresh, o.record.Need, o.record.Reason = true, false, 0, waits+why
	}
	d.m.event(Event{Kind: Queued, Job: j.record.Spec.Name, Reason: j.record.Reason})
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
	admitted := slices.ContainsFunc(g, func(j *job) bool { return j.record.State == wire.JobStarting })
	at := slices.IndexFunc(g, func(j *job) bool {
		return j.record.State == wire.JobQueued && !m.pending(j) && (admitted || !j.chosen)
	})
	if at < 0 {
		return
	}
	m.withdraw(g, g[at].record.Spec.Name, g[at].record.Reason)
}

// withdraw has the siblings of a group that has nothing yet wait again, with one of them.
func (m *Machine) withdraw(g []*job, first, why string) {
	m.changed, m.look = true, true
	for _, j := range g {
		if j.record.State == wire.JobStarting {
			j.domain.back(j)
			if j.record.Spec.Name != first {
				j.record.Reason = fmt.Sprintf("waits with replica %s, which %s", first, why)
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
		if j.record.State != wire.JobStarting || l == nil || l.granted || !j.domain.room(j, l) {
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
			j.record.Reason = why
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
