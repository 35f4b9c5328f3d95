package controller

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"tensile/graph/text"
	"tensile/wire"
)

// Once an administrator has given somebody a share, each user is a tenant, one without a share of its own has 1. What a
// tenant gets of a device is counted in service: what the iterations of its jobs take alone. A tenant wants a device
// while jobs of its train there or could begin. It is due, of each second, its share of all that want the device, of
// the second, or of what the device did if that is less. What it is due and did not get is its debt: the device's to
// the tenant. Debts below zero are what it got beyond its share. They are no more than a turn, so that nobody pays for
// what was idle; and they are forgotten when the tenant wants nothing more.
//
// A debt of more than a turn is paid: jobs of tenants that are above their shares do not begin (holds), and one after
// the other of those that train is parked (repay), until it is gone. So over any time in which a tenant wants a device,
// it gets what it is due but for the largest debt, a turn and what parking takes.

const (
	// maxDebt, in turns, limits what is owed to a tenant that cannot be helped, as nobody can be parked.
	maxDebt = 10
	// smoothing is the time in turns over which the device's service is averaged.
	smoothing = 2
	// far is how many turns more a tenant has to be owed than another that is owed something, to be before it.
	far = 2
	// patience is the part of a turn that passes before another job is parked for a debt that does not fall.
	patience = 4
)

// account is what a tenant got of a device.
type account struct {
	debt   time.Duration
	served time.Duration // since the last tick
	owed   bool          // the debt is being paid
}

// ledger is what the tenants of a device got.
type ledger struct {
	accounts map[string]*account // of those that want the device or were served since the last tick
	since    time.Duration       // the last tick
	rate     float64             // service of all in a second, over the last turns, times weight
	weight   float64             // of what is in rate; below 1 in the first turns
	looked   time.Duration       // when the largest debt that is paid was looked at last; 0: none was
	was      time.Duration       // what it was then
}

// tenanted reports whether there are tenants.
func (m *Machine) tenanted() bool { return len(m.shares) > 0 }

// share is that of a tenant.
func (m *Machine) share(tenant string) int { return max(1, m.shares[tenant]) }

// tenant is whose a job is.
func (j *job) tenant() string { return j.record.Spec.Owner }

// tenantName is a tenant in words.
func tenantName(tenant string) string { return "tenant " + cmp.Or(tenant, "administrator") }

// alone is how long an iteration of a job takes alone and without a plan, by what its ops took; 0: that is not known.
func (j *job) alone() (sum time.Duration) {
	for _, took := range j.latency {
		sum += took
	}
	return sum
}

// slowdown is how many times as long as alone an iteration takes, as measured; 0: none was reported.
func (j *job) slowdown() float64 {
	alone := j.alone()
	if alone == 0 || j.pace == 0 || j.record.State != wire.JobRunning {
		return 0
	}
	return float64(j.pace) / float64(alone)
}

// setShare gives a tenant a share, or takes it back.
func (m *Machine) setShare(q *wire.Request) error {
	switch {
	case q.Share > 0:
		if m.shares == nil {
			m.shares = make(map[string]int)
		}
		m.shares[q.Tenant] = q.Share
	case m.shares[q.Tenant] == 0:
		return fmt.Errorf("there is no tenant %s with a share: tensile tenants lists them", q.Tenant)
	default:
		delete(m.shares, q.Tenant)
	}
	m.changed = true
	for _, d := range m.domains {
		if !m.tenanted() {
			d.ledger = ledger{}
		}
	}
	m.storeTenants(m.tenants())
	for _, d := range m.domains {
		if m.admit(d); len(d.active()) > 0 {
			d.want.better = because(Reweighed, "the share of tenant %s is %d", q.Tenant, m.share(q.Tenant))
		}
	}
	return nil
}

// tenants are the shares and debts as they are stored.
func (m *Machine) tenants() *wire.Tenants {
	t := &wire.Tenants{Shares: maps.Clone(m.shares)}
	for _, d := range m.domains {
		for _, name := range slices.Sorted(maps.Keys(d.ledger.accounts)) {
			t.Debts = append(t.Debts, wire.TenantDebt{Device: d.on(), Tenant: name, Debt: d.ledger.accounts[name].debt})
		}
	}
	return t
}

func (m *Machine) storeTenants(t *wire.Tenants) {
	m.debts = t
	m.say(Output{Tenants: t})
}

// storeDebts has debts stored of which one has changed by a part of a turn since they were: a controller that is
// started again and again pays as one that goes on.
func (m *Machine) storeDebts() {
	now := m.tenants()
	changed := make(map[wire.TenantDebt]time.Duration)
	count := func(t *wire.Tenants, sign time.Duration) {
		for _, d := range t.Debts {
			changed[wire.TenantDebt{Device: d.Device, Tenant: d.Tenant}] += sign * d.Debt
		}
	}
	if count(now, 1); m.debts != nil {
		count(m.debts, -1)
	}
	for _, by := range changed {
		if by.Abs() > m.config.Turn/patience {
			m.storeTenants(now)
			return
		}
	}
}

// restoreDebts takes up what a controller before this one had stored.
func (m *Machine) restoreDebts(t *wire.Tenants) {
	if m.debts = t; t == nil {
		return
	}
	for _, o := range t.Debts {
		if d := m.named(o.Device); d != nil && m.tenanted() {
			turn := d.config.Turn
			d.ledger.of(o.Tenant).debt = min(max(o.Debt, -turn), maxDebt*turn)
		}
	}
}

// of is the account of a tenant.
func (l *ledger) of(tenant string) *account {
	a := l.accounts[tenant]
	if a == nil {
		if l.accounts == nil {
			l.accounts = make(map[string]*account)
		}
		a = new(account)
		l.accounts[tenant] = a
	}
	return a
}

// wants reports whether a job trains on the device or could begin there.
func (d *domain) wants(j *job) bool {
	switch j.record.State {
	case wire.JobStarting, wire.JobRunning:
		return true
	case wire.JobParking:
		return j.record.Preempted
	case wire.JobQueued:
		return !j.stuck && j.ready <= d.m.now && j.lacking == 0 && !d.m.away(j) && d.takesFree(j)
	}
	return false
}

// atRest is the rate of service below which a device does nothing.
const atRest = 0.2

// reckon works out, at a tick, what tenants are due and were served since the last one. Nobody is due anything of a
// device that is not heard of, nor a tenant all of whose jobs there are out of reach: what it is owed stays as it is.
func (d *domain) reckon() {
	l, turn := &d.ledger, d.config.Turn
	passed := d.m.now - l.since
	if l.since = d.m.now; passed <= 0 || passed == d.m.now || !d.alive() { // or it is the first tick
		return
	}
	shares := 0
	wants, away := make(map[string]bool), make(map[string]bool)
	for j := range d.jobs() {
		t := j.tenant()
		away[t] = away[t] || j.record.State == wire.JobUnknown || j.placed() && d.m.away(j)
		if !wants[t] && d.wants(j) {
			wants[t] = true
			shares += d.m.share(t)
			l.of(t)
		}
	}
	only := d.creditUnknown(passed)
	var served time.Duration
	for _, a := range l.accounts {
		served += a.served
	}
	weight := float64(passed) / float64(passed+smoothing*turn)
	l.rate += float64(weight * (float64(served)/float64(passed) - l.rate))
	l.weight += float64(weight * (1 - l.weight))
	rate := l.rate / l.weight
	due := float64(passed) * min(1, rate)
	for t, a := range l.accounts {
		if !wants[t] {
			if !away[t] {
				delete(l.accounts, t)
			}
			a.owed, a.served = false, 0 // it cannot be helped now
			continue
		}
		if only != nil && t == *only && rate < atRest {
			a.served = max(a.served, passed) // it has the device for itself and does nothing there
		}
		part := time.Duration(due * float64(d.m.share(t)) / float64(shares))
		a.debt = min(max(a.debt+part-a.served, -turn), maxDebt*turn)
		a.served = 0
		a.owed = len(wants) > 1 && a.debt > 0 && (a.owed || a.debt > turn)
	}
}

// creditUnknown counts its part of the time that passed to each job that trains and of which it is not known what its
// ops take: a script that follows no plan. It returns the tenant whose jobs alone are active; nil: there is no such.
func (d *domain) creditUnknown(passed time.Duration) (only *string) {
	training, several := time.Duration(0), false
	for _, j := range d.active() {
		t := j.tenant()
		several = several || only != nil && *only != t
		if only = &t; j.record.State == wire.JobRunning {
			training++
		}
	}
	for _, j := range d.active() {
		if j.record.State == wire.JobRunning && j.alone() == 0 {
			d.ledger.of(j.tenant()).served += passed / training
		}
	}
	if several {
		return nil
	}
	return only
}

// reckon works out the accounts of all devices, and says which jobs wait for what others are owed.
func (m *Machine) reckon() {
	if !m.tenanted() {
		return
	}
	for _, d := range m.domains {
		d.reckon()
	}
	m.storeDebts()
	for _, j := range m.jobs {
		if j.record.State != wire.JobQueued {
			j.held = false
			continue
		}
		owed, held := m.heldFor(j)
		if j.held && !held {
			m.admit(j.domain)
			j.record.Reason, m.changed = "is being planned for", true
		}
		if j.held = held; held && j.batch == nil {
			why := "waits, as " + tenantName(owed) + " has had less than its share of the device"
			if owed == j.tenant() {
				why = "gave way to another tenant, and comes back a turn after the job of " + tenantName(owed) +
					" that came back before it"
			}
			if j.record.Reason != why {
				j.record.Reason, j.record.Need, m.changed = why, 0, true
				m.event(Event{Kind: Queued, Job: j.record.Spec.Name, Reason: why})
			}
		}
	}
}

// heldFor is the tenant for which a job does not begin on any device.
func (m *Machine) heldFor(j *job) (owed string, held bool) {
	for _, d := range m.domains {
		if j.domain != nil && j.domain != d && !m.roams(j) {
			continue
		}
		t, h := d.holds(j)
		if !h {
			return "", false
		}
		owed, held = t, true
	}
	return owed, held
}

// before reports whether a tenant is owed something and another is not, or less, or far less if both are owed.
func (d *domain) before(t, other string) bool {
	a, b := d.ledger.accounts[t], d.ledger.accounts[other]
	switch {
	case a == nil || !a.owed || t == other:
		return false
	case b == nil:
		return true
	case b.owed:
		return a.debt > b.debt+far*d.config.Turn
	}
	return a.debt > b.debt
}

// holds reports whether a job is not to begin on the device since another tenant is owed, and its own is not. One that
// gave way comes back when nobody is owed anything, and a turn after the one of its own tenant before it, which is owed
// then.
func (d *domain) holds(j *job) (owed string, held bool) {
	if !d.m.tenanted() {
		return "", false
	}
	own := d.ledger.accounts[j.tenant()]
	others := false
	for _, t := range slices.Sorted(maps.Keys(d.ledger.accounts)) {
		if t != j.tenant() {
			others = true
			debt := d.ledger.accounts[t].debt
			back := j.record.Preempted && debt > 0 && (own == nil || !own.owed && debt > own.debt)
			if back || d.before(t, j.tenant()) {
				return t, true
			}
		}
	}
	if !others || !j.record.Preempted {
		return "", false
	}
	for o := range d.jobs() {
		if o.active() && o.tenant() == j.tenant() && !o.siblingOf(j) &&
			(o.record.State == wire.JobStarting || d.m.now-o.begun < d.config.Turn) {
			return j.tenant(), true
		}
	}
	return "", false
}

// inOrder orders jobs that wait: by what their priority has become, then in the order in which they came. Where there
// are tenants these take turns, each so often as its share says, and those with fewer jobs first.
func (m *Machine) inOrder(waiting []*job) {
	slices.SortStableFunc(waiting, func(a, b *job) int { return cmp.Compare(m.rank(b), m.rank(a)) })
	if !m.tenanted() {
		return
	}
	count := make(map[string]int)
	for _, j := range m.jobs {
		if j.active() {
			count[j.tenant()]++
		}
	}
	place := make(map[*job]float64)
	for _, j := range waiting {
		t := j.tenant()
		count[t]++
		place[j] = float64(count[t]) / float64(m.share(t))
	}
	slices.SortStableFunc(waiting, func(a, b *job) int { return cmp.Compare(place[a], place[b]) })
}

// unheld are those of some jobs that wait, in their order, which are not held. Of those of a tenant that gave way one
// comes back at a time.
func (d *domain) unheld(waiting []*job) []*job {
	if !d.m.tenanted() {
		return waiting
	}
	back := make(map[string]*job)
	return slices.DeleteFunc(waiting, func(j *job) bool {
		if _, held := d.holds(j); held {
			return true
		}
		if !j.record.Preempted || len(d.ledger.accounts) <= 1 {
			return false
		}
		first := back[j.tenant()]
		if first == nil {
			back[j.tenant()] = j
		}
		return first != nil && !j.siblingOf(first)
	})
}

// repay parks a job of the tenant that has got most beyond its share, for the one that is owed most.
func (d *domain) repay() {
	if !d.m.tenanted() || d.errand != nil || d.want.admission {
		return
	}
	l := &d.ledger
	var owed, above string
	var debt time.Duration
	least := time.Duration(math.MaxInt64)
	for _, t := range slices.Sorted(maps.Keys(l.accounts)) {
		if a := l.accounts[t]; a.owed && a.debt > debt {
			owed, debt = t, a.debt
		}
	}
	for _, t := range slices.Sorted(maps.Keys(l.accounts)) {
		if a := l.accounts[t]; a.debt < least && d.before(owed, t) {
			above, least = t, a.debt
		}
	}
	pause := d.config.Turn / patience
	switch {
	case debt == 0:
		l.looked = 0
		return
	case l.looked > 0 && d.m.now-l.looked < pause:
		return
	case l.looked > 0 && debt <= l.was-pause/8:
		l.looked, l.was = d.m.now, debt // it falls
		return
	case least == math.MaxInt64:
		return
	}
	var victim, first *job
	for j := range d.jobs() {
		switch {
		case j.record.State == wire.JobParking || j.record.State == wire.JobStopping:
			return // which gives way already
		case j.tenant() == owed && first == nil && d.wants(j) && !j.passed:
			first = j
		case j.tenant() != above || j.record.State != wire.JobRunning || d.m.now-j.begun < d.config.Turn:
		case victim == nil || j.priority() <= victim.priority():
			victim = j
		}
	}
	if victim == nil || first == nil {
		return
	}
	place := wire.InMemory
	if first.wants > 0 && hostGives(victim) > 0 {
		place = wire.OnDisk
	}
	l.looked, l.was = d.m.now, debt
	victim.record.Preempted, d.m.changed = true, true
	d.m.goHome(victim, place)
	d.m.event(Event{Kind: Preempted, Job: victim.record.Spec.Name, Reason: first.record.Spec.Name,
		Why: fmt.Sprintf("%s lacks %v of its share", tenantName(owed), text.Duration(debt))})
}

// weights are what jobs that are planned for together are worth against each other: the share of each tenant, divided
// among its jobs by their priorities. They are from 1 to wire.MaxShare.
func (m *Machine) weights(jobs []*job) map[*job]int {
	priorities, largest := make(map[string]int), 1
	for _, j := range jobs {
		priorities[j.tenant()] += j.priority()
		largest = max(largest, m.share(j.tenant()))
	}
	weights := make(map[*job]int)
	for _, j := range jobs {
		weights[j] = max(1, wire.MaxShare*m.share(j.tenant())*j.priority()/(priorities[j.tenant()]*largest))
	}
	return weights
}

// worth returns what jobs are worth against each other wherever they train: their priorities or, where there are
// tenants, the share of each, divided among all jobs that it has at devices by their priorities. One that waits counts
// among these if it is named. The mean of tenants' jobs is 1.
func (m *Machine) worth(waits ...*job) func(*job) float64 {
	if !m.tenanted() {
		return func(j *job) float64 { return float64(j.priority()) }
	}
	priorities, shares, jobs := make(map[string]int), 0, 0
	for _, j := range m.jobs {
		if !j.active() && !slices.Contains(waits, j) {
			continue
		}
		if jobs++; priorities[j.tenant()] == 0 {
			shares += m.share(j.tenant())
		}
		priorities[j.tenant()] += j.priority()
	}
	return func(j *job) float64 {
		of := float64(max(j.priority(), priorities[j.tenant()]))
		return float64(m.share(j.tenant())) * float64(j.priority()) / of * float64(jobs) / float64(max(1, shares))
	}
}

// Tenants are how tenants fare, by name: those that have a share, or jobs that are not over. Nil: nobody was given one.
func (m *Machine) Tenants() []wire.TenantState {
	if !m.tenanted() {
		return nil
	}
	states := make(map[string]*wire.TenantState)
	of := func(name string) *wire.TenantState {
		if states[name] == nil {
			states[name] = &wire.TenantState{Name: name, Share: m.share(name)}
			if t := m.tallies[name]; t != nil {
				states[name].Served = t.Served
			}
		}
		return states[name]
	}
	for name := range m.shares {
		of(name)
	}
	for _, j := range m.jobs {
		switch {
		case j.record.State.Over():
			continue
		case j.record.State == wire.JobQueued:
			of(j.tenant()).Waiting++
		case j.active():
			of(j.tenant()).Running++
		}
		if s := j.slowdown(); s > 0 {
			of(j.tenant()).Speed += 1 / s
		}
	}
	for _, d := range m.domains {
		for name, a := range d.ledger.accounts {
			if s := states[name]; s != nil && (s.Behind == 0 || a.debt > s.Behind) {
				s.Behind = a.debt
			}
		}
	}
	var list []wire.TenantState
	for _, name := range slices.Sorted(maps.Keys(states)) {
		list = append(list, *states[name])
	}
	return list
}
