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

// Once an administrator has given somebody a share, each user is a tenant. A tenant without a share of its own has the
// share 1. What a tenant gets of a device is counted as service: the time that the iterations of its jobs take alone.
//
// A tenant wants a device while jobs of its train there or could begin. Of each second it is due its share among all
// tenants that want the device: of that second, or of what the device did in it if that is less. What the tenant is due
// and did not get is its debt, which the device owes to the tenant. A debt below zero is what it got beyond its share.
// It is never below minus a turn, so that nobody pays for idle time, and it is forgotten when the tenant wants nothing
// more.
//
// A debt of more than a turn is repaid: jobs of tenants that are above their shares do not begin (throttles), and those
// that train are parked one after the other (repayDebt), until the debt is gone. So over any time in which a tenant
// wants a device it gets what it is due but for the largest debt, a turn, and the time that parking takes.

const (
	// maxDebt is the largest debt, in turns. A debt grows when no job can be parked to repay it.
	maxDebt = 10
	// smoothing is the number of turns over which the device's service is averaged.
	smoothing = 2
	// debtGap: of two tenants whose debts are being repaid, one precedes the other only if it is owed at least this
	// many turns more.
	debtGap = 2
	// patience is the divisor of a turn that gives the time after which another job is parked for a debt that does
	// not fall.
	patience = 4
)

// account is what a tenant got of a device.
type account struct {
	// debt is the time that the tenant was due and did not get. Below zero it is what it got beyond its share.
	debt time.Duration
	// served is what it got since the last tick.
	served time.Duration
	// inRepayment says that the debt is being paid: other tenants' jobs give way.
	inRepayment bool
}

// ledger is what the tenants of a device got. Times are since the Unix epoch.
type ledger struct {
	// accounts are those of tenants that want the device or were served since the last tick, by tenant.
	accounts map[string]*account
	// lastTick is when the accounts were last settled. 0: they were not.
	lastTick time.Duration
	// rate is the service of all tenants per second, averaged over the last turns, times weight.
	rate float64
	// weight is the sum of the weights in rate. It is below 1 in the first turns.
	weight float64
	// checkedAt is when the largest debt in repayment was last compared with the one before. 0: no debt is in
	// repayment.
	checkedAt time.Duration
	// checkedDebt is what that debt was then.
	checkedDebt time.Duration
}

// hasTenants reports whether an administrator has given somebody a share.
func (m *Machine) hasTenants() bool { return len(m.shares) > 0 }

// shareOf is the share of a tenant.
func (m *Machine) shareOf(tenant string) int { return max(1, m.shares[tenant]) }

// tenant is the tenant that the job belongs to.
func (j *job) tenant() string { return j.record.Spec.Owner }

// tenantName names a tenant in words.
func tenantName(tenant string) string { return "tenant " + cmp.Or(tenant, "administrator") }

// timeAlone is how long an iteration of the job takes alone and without a plan, by its latencies. 0: it is not known.
func (j *jobLatencies) timeAlone() (sum time.Duration) {
	for _, took := range j.latency {
		sum += took
	}
	return sum
}

// measuredSlowdown is how many times as long as alone an iteration takes, as measured. 0: none was reported, or the job
// does not train.
func (j *job) measuredSlowdown() float64 {
	alone := j.timeAlone()
	if alone == 0 || j.iterationTime == 0 || j.record.State != wire.JobRunning {
		return 0
	}
	return float64(j.iterationTime) / float64(alone)
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
		if !m.hasTenants() {
			d.ledger = ledger{}
		}
	}
	m.storeTenants(m.tenantsToStore())
	for _, d := range m.domains {
		if m.retryAdmission(d); len(d.activeJobs()) > 0 {
			d.pending.replan = newReason(Reweighed, "the share of tenant %s is %d", q.Tenant, m.shareOf(q.Tenant))
		}
	}
	return nil
}

// tenantsToStore are the shares and debts as they are stored.
func (m *Machine) tenantsToStore() *wire.Tenants {
	t := &wire.Tenants{Shares: maps.Clone(m.shares)}
	for _, d := range m.domains {
		for _, name := range slices.Sorted(maps.Keys(d.ledger.accounts)) {
			t.Debts = append(t.Debts, wire.TenantDebt{Device: d.recordName(), Tenant: name,
				Debt: d.ledger.accounts[name].debt})
		}
	}
	return t
}

// storeTenants has shares and debts stored.
func (m *Machine) storeTenants(t *wire.Tenants) {
	m.storedDebts = t
	m.emit(Output{Tenants: t})
}

// storeDebts has debts stored if one has changed by a quarter of a turn since they were stored last. So a controller
// that is started again and again pays debts as one that goes on.
func (m *Machine) storeDebts() {
	now := m.tenantsToStore()
	changed := make(map[wire.TenantDebt]time.Duration)
	count := func(t *wire.Tenants, sign time.Duration) {
		for _, d := range t.Debts {
			changed[wire.TenantDebt{Device: d.Device, Tenant: d.Tenant}] += sign * d.Debt
		}
	}
	if count(now, 1); m.storedDebts != nil {
		count(m.storedDebts, -1)
	}
	for _, by := range changed {
		if by.Abs() > m.config.Turn/patience {
			m.storeTenants(now)
			return
		}
	}
}

// restoreDebts takes up the debts that a controller before this one has stored.
func (m *Machine) restoreDebts(t *wire.Tenants) {
	if m.storedDebts = t; t == nil {
		return
	}
	for _, o := range t.Debts {
		if d := m.domainByRecord(o.Device); d != nil && m.hasTenants() {
			turn := d.config.Turn
			d.ledger.account(o.Tenant).debt = min(max(o.Debt, -turn), maxDebt*turn)
		}
	}
}

// account is the account of a tenant, which is made if there is none.
func (l *ledger) account(tenant string) *account {
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

// wantsDevice reports whether a job trains on the device or could begin there.
func (d *domain) wantsDevice(j *job) bool {
	switch j.record.State {
	case wire.JobStarting, wire.JobRunning:
		return true
	case wire.JobParking:
		return j.record.Preempted
	case wire.JobQueued:
		return !j.isBlocked() && !d.m.isPausing(j) && j.checkpointDeadline == 0 && !d.m.isUnreachable(j) &&
			d.mayTakeFree(j)
	}
	return false
}

// idleRate is the service per second below which a device counts as idle.
const idleRate = 0.2

// settleAccounts computes, at a tick, what tenants were due and got since the last one. Nobody is due anything of a
// device that cannot be reached. A tenant all of whose jobs there are out of reach is not either: what it is owed stays
// as it is.
func (d *domain) settleAccounts() {
	l, turn := &d.ledger, d.config.Turn
	passed := d.m.now - l.lastTick
	// At the first tick passed is the time since the Unix epoch.
	if l.lastTick = d.m.now; passed <= 0 || passed == d.m.now || !d.canStartJobs() {
		return
	}
	shares := 0
	wants, away := make(map[string]bool), make(map[string]bool)
	for j := range d.jobs() {
		t := j.tenant()
		away[t] = away[t] || j.record.State == wire.JobUnknown || j.hasExecutor() && d.m.isUnreachable(j)
		if !wants[t] && d.wantsDevice(j) {
			wants[t] = true
			shares += d.m.shareOf(t)
			l.account(t)
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
			a.inRepayment, a.served = false, 0 // it wants nothing that could be repaid now
			continue
		}
		if only != nil && t == *only && rate < idleRate {
			a.served = max(a.served, passed) // the tenant has the device for itself and leaves it idle
		}
		part := time.Duration(due * float64(d.m.shareOf(t)) / float64(shares))
		a.debt = min(max(a.debt+part-a.served, -turn), maxDebt*turn)
		a.served = 0
		a.inRepayment = len(wants) > 1 && a.debt > 0 && (a.inRepayment || a.debt > turn)
	}
}

// creditUnknown counts its part of the time that has passed to each job that trains and whose ops' latencies are not
// known: a script without a plan. It returns the tenant whose jobs alone are active. nil: there are several, or none.
func (d *domain) creditUnknown(passed time.Duration) (only *string) {
	training, several := time.Duration(0), false
	for _, j := range d.activeJobs() {
		t := j.tenant()
		several = several || only != nil && *only != t
		if only = &t; j.record.State == wire.JobRunning {
			training++
		}
	}
	for _, j := range d.activeJobs() {
		if j.record.State == wire.JobRunning && j.timeAlone() == 0 {
			d.ledger.account(j.tenant()).served += passed / training
		}
	}
	if several {
		return nil
	}
	return only
}

// settleAccounts settles the accounts of all devices, and says which jobs are throttled for what others are owed.
func (m *Machine) settleAccounts() {
	if !m.hasTenants() {
		return
	}
	for _, d := range m.domains {
		d.settleAccounts()
	}
	m.storeDebts()
	for _, j := range m.jobs {
		if j.record.State != wire.JobQueued || m.isPausing(j) {
			continue
		}
		owed, held := m.throttledFor(j)
		why := "waits, as " + tenantName(owed) + " has had less than its share of the device"
		if owed == j.tenant() {
			why = "gave way to another tenant, and comes back a turn after the job of " + tenantName(owed) +
				" that came back before it"
		}
		switch {
		case j.isThrottled() && !held:
			m.retryAdmission(j.domain)
			j.waitFor(wire.Wait{}, "is being planned for")
			m.changed = true
		case held && j.batch == nil:
			m.announceWait(j, wire.Wait{For: wire.WaitTenant}, why)
		case held:
			j.record.Wait.For = wire.WaitTenant
		}
	}
}

// throttledFor is the tenant for which a job may begin on no device, if there is one.
func (m *Machine) throttledFor(j *job) (owed string, held bool) {
	for _, d := range m.domains {
		if j.domain != nil && j.domain != d && !m.needsSearch(j) {
			continue
		}
		t, h := d.throttles(j)
		if !h {
			return "", false
		}
		owed, held = t, true
	}
	return owed, held
}

// precedes reports whether a tenant comes before another: its debt is being repaid, and the other's is not and is
// smaller, or is smaller by debtGap turns.
func (d *domain) precedes(t, other string) bool {
	a, b := d.ledger.accounts[t], d.ledger.accounts[other]
	switch {
	case a == nil || !a.inRepayment || t == other:
		return false
	case b == nil:
		return true
	case b.inRepayment:
		return a.debt > b.debt+debtGap*d.config.Turn
	}
	return a.debt > b.debt
}

// throttles reports whether a job is not to begin on the device because another tenant is owed, and its own is not. A
// job that gave way comes back when nobody is owed anything, and a turn after the job of its own tenant before it,
// which is owed then. owed is the tenant for which it waits.
func (d *domain) throttles(j *job) (owed string, held bool) {
	if !d.m.hasTenants() {
		return "", false
	}
	own := d.ledger.accounts[j.tenant()]
	others := false
	for _, t := range slices.Sorted(maps.Keys(d.ledger.accounts)) {
		if t != j.tenant() {
			others = true
			debt := d.ledger.accounts[t].debt
			back := j.record.Preempted && debt > 0 && (own == nil || !own.inRepayment && debt > own.debt)
			if back || d.precedes(t, j.tenant()) {
				return t, true
			}
		}
	}
	if !others || !j.record.Preempted {
		return "", false
	}
	for o := range d.jobs() {
		if o.isActive() && o.tenant() == j.tenant() && !o.isPeerOf(j) &&
			(o.record.State == wire.JobStarting || d.m.now-o.trainingSince < d.config.Turn) {
			return j.tenant(), true
		}
	}
	return "", false
}

// sortQueue orders queued jobs by rank, those of equal rank as they came. Where there are tenants they take turns, each
// as often as its share says, and those with fewer jobs come first.
func (m *Machine) sortQueue(waiting []*job) {
	slices.SortStableFunc(waiting, func(a, b *job) int { return cmp.Compare(m.rank(b), m.rank(a)) })
	if !m.hasTenants() {
		return
	}
	count := make(map[string]int)
	for _, j := range m.jobs {
		if j.isActive() {
			count[j.tenant()]++
		}
	}
	place := make(map[*job]float64)
	for _, j := range waiting {
		t := j.tenant()
		count[t]++
		place[j] = float64(count[t]) / float64(m.shareOf(t))
	}
	slices.SortStableFunc(waiting, func(a, b *job) int { return cmp.Compare(place[a], place[b]) })
}

// unthrottled are those of some queued jobs, in their order, that are not throttled. Of the jobs of a tenant that gave
// way one comes back at a time.
func (d *domain) unthrottled(waiting []*job) []*job {
	if !d.m.hasTenants() {
		return waiting
	}
	back := make(map[string]*job)
	return slices.DeleteFunc(waiting, func(j *job) bool {
		if _, held := d.throttles(j); held {
			return true
		}
		if !j.record.Preempted || len(d.ledger.accounts) <= 1 {
			return false
		}
		first := back[j.tenant()]
		if first == nil {
			back[j.tenant()] = j
		}
		return first != nil && !j.isPeerOf(first)
	})
}

// repayDebt parks a job of the tenant that has got most beyond its share, for the tenant that is owed most.
func (d *domain) repayDebt() {
	if !d.m.hasTenants() || d.request != nil || d.pending.admission {
		return
	}
	l := &d.ledger
	var owed, above string
	var debt time.Duration
	least := time.Duration(math.MaxInt64)
	for _, t := range slices.Sorted(maps.Keys(l.accounts)) {
		if a := l.accounts[t]; a.inRepayment && a.debt > debt {
			owed, debt = t, a.debt
		}
	}
	for _, t := range slices.Sorted(maps.Keys(l.accounts)) {
		if a := l.accounts[t]; a.debt < least && d.precedes(owed, t) {
			above, least = t, a.debt
		}
	}
	pause := d.config.Turn / patience
	switch {
	case debt == 0:
		l.checkedAt = 0
		return
	case l.checkedAt > 0 && d.m.now-l.checkedAt < pause:
		return
	case l.checkedAt > 0 && debt <= l.checkedDebt-pause/8:
		l.checkedAt, l.checkedDebt = d.m.now, debt // the debt falls
		return
	case least == math.MaxInt64:
		return
	}
	var victim, first *job
	for j := range d.jobs() {
		switch {
		case j.record.State == wire.JobParking || j.record.State == wire.JobStopping:
			return // a job gives way already
		case j.tenant() == owed && first == nil && d.wantsDevice(j) && !j.found.overtakable:
			first = j
		case j.tenant() != above || j.record.State != wire.JobRunning || d.m.now-j.trainingSince < d.config.Turn:
		case victim == nil || j.priority() <= victim.priority():
			victim = j
		}
	}
	if victim == nil || first == nil {
		return
	}
	place := wire.InMemory
	if first.record.Wait.HostBytes() > 0 && hostFreedBy(victim) > 0 {
		place = wire.OnDisk
	}
	l.checkedAt, l.checkedDebt = d.m.now, debt
	victim.record.Preempted, d.m.changed = true, true
	d.m.sendGangHome(victim, place)
	d.m.emitEvent(Event{Kind: Preempted, Job: victim.record.Spec.Name, Reason: first.record.Spec.Name,
		Detail: fmt.Sprintf("%s lacks %v of its share", tenantName(owed), text.Duration(debt))})
}

// tenantWeights are what jobs that are planned for together are worth against each other: the share of each tenant,
// divided among its jobs by their priorities. They are from 1 to wire.MaxShare.
func (m *Machine) tenantWeights(jobs []*job) map[*job]int {
	priorities, largest := make(map[string]int), 1
	for _, j := range jobs {
		priorities[j.tenant()] += j.priority()
		largest = max(largest, m.shareOf(j.tenant()))
	}
	weights := make(map[*job]int)
	for _, j := range jobs {
		weights[j] = max(1, wire.MaxShare*m.shareOf(j.tenant())*j.priority()/(priorities[j.tenant()]*largest))
	}
	return weights
}

// jobWorth returns what jobs are worth against each other wherever they train: their priorities or, where there are
// tenants, the share of each, divided by priority among all jobs that it has at devices. Queued jobs count among these
// only if they are given. The mean of all these jobs is 1.
func (m *Machine) jobWorth(waits ...*job) func(*job) float64 {
	if !m.hasTenants() {
		return func(j *job) float64 { return float64(j.priority()) }
	}
	priorities, shares, jobs := make(map[string]int), 0, 0
	for _, j := range m.jobs {
		if !j.isActive() && !slices.Contains(waits, j) {
			continue
		}
		if jobs++; priorities[j.tenant()] == 0 {
			shares += m.shareOf(j.tenant())
		}
		priorities[j.tenant()] += j.priority()
	}
	return func(j *job) float64 {
		of := float64(max(j.priority(), priorities[j.tenant()]))
		return float64(m.shareOf(j.tenant())) * float64(j.priority()) / of * float64(jobs) / float64(max(1, shares))
	}
}

// Tenants are the tenants that have a share, or jobs that are not over, by name. nil: nobody was given a share.
func (m *Machine) Tenants() []wire.TenantState {
	if !m.hasTenants() {
		return nil
	}
	states := make(map[string]*wire.TenantState)
	of := func(name string) *wire.TenantState {
		if states[name] == nil {
			states[name] = &wire.TenantState{Name: name, Share: m.shareOf(name)}
			if t := m.counters[name]; t != nil {
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
		case j.isActive():
			of(j.tenant()).Running++
		}
		if s := j.measuredSlowdown(); s > 0 {
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
