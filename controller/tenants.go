package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"tensile/controller/queue"
	"tensile/graph/text"
	"tensile/wire"
)

// tenancy is what is known of the tenants of all devices.
type tenancy struct {
	// shares are those that an administrator has given. It is empty while there are no tenants.
	shares queue.Shares
	// storedDebts is what was stored last of tenants. nil: nothing was.
	storedDebts *wire.Tenants
}

// hasTenants reports whether an administrator has given somebody a share.
func (t *tenancy) hasTenants() bool { return len(t.shares) > 0 }

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
			m.shares = make(queue.Shares)
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
			d.ledger = queue.Ledger{Turn: d.config.Turn}
		}
	}
	m.storeTenants(m.tenantsToStore())
	for _, d := range m.domains {
		if m.retryAdmission(d); len(d.activeJobs()) > 0 {
			d.pending.replan = newReason(Reweighed, "the share of tenant %s is %d", q.Tenant,
				m.shares.ShareOf(q.Tenant))
		}
	}
	return nil
}

// tenantsToStore are the shares and debts as they are stored.
func (m *Machine) tenantsToStore() *wire.Tenants {
	t := &wire.Tenants{Shares: maps.Clone(m.shares)}
	for _, d := range m.domains {
		for _, name := range slices.Sorted(maps.Keys(d.ledger.Accounts)) {
			t.Debts = append(t.Debts, wire.TenantDebt{Device: d.recordName(), Tenant: name,
				Debt: d.ledger.Accounts[name].Debt})
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
		if by.Abs() > m.config.Turn/queue.Patience {
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
			d.ledger.Restore(o.Tenant, o.Debt)
		}
	}
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

// settleAccounts computes, at a tick, what tenants were due of the device and got since the last one.
func (d *domain) settleAccounts() {
	var uses []queue.Use
	for j := range d.jobs() {
		uses = append(uses, queue.Use{Tenant: j.tenant(), Wants: d.wantsDevice(j),
			Away:   j.record.State == wire.JobUnknown || j.hasExecutor() && d.m.isUnreachable(j),
			Active: j.isActive(), Trains: j.record.State == wire.JobRunning, Counted: j.timeAlone() > 0})
	}
	d.ledger.Settle(d.m.now, d.m.shares, uses, d.canStartJobs())
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

// throttles reports whether a job is not to begin on the device because a tenant is owed, which is returned. Of a
// tenant's jobs that gave way, each comes back a turn after the one before.
func (d *domain) throttles(j *job) (owed string, held bool) {
	follows := j.record.Preempted && len(d.ledger.Accounts) > 0 && slices.ContainsFunc(d.m.jobs, func(o *job) bool {
		return o.domain == d && o.isActive() && o.tenant() == j.tenant() && !o.isPeerOf(j) &&
			(o.record.State == wire.JobStarting || d.m.now-o.trainingSince < d.config.Turn)
	})
	return d.ledger.Throttles(j.queued(), follows)
}

// repayDebt parks a job of the tenant that has got most beyond its share, for the tenant that is owed most.
func (d *domain) repayDebt() {
	if d.request != nil || d.pending.admission {
		return
	}
	r, due := d.ledger.Repay(d.m.now)
	if !due || d.isBeingFreed() {
		return
	}
	wants := func(j *job) bool {
		return j.domain == d && j.tenant() == r.Owed && d.wantsDevice(j) && !j.found.overtakable
	}
	first := slices.IndexFunc(d.m.jobs, wants)
	victim := victimOf(d.jobs(), func(j *job) bool {
		return j.tenant() == r.Above && j.record.State == wire.JobRunning &&
			d.m.now-j.trainingSince >= d.config.Turn
	})
	if victim == nil || first < 0 {
		return
	}
	place := wire.InMemory
	if d.m.jobs[first].record.Wait.HostBytes() > 0 && hostFreedBy(victim) > 0 {
		place = wire.OnDisk
	}
	d.ledger.Record(d.m.now, r)
	d.giveWay(victim, d.m.jobs[first], place, fmt.Sprintf("%s lacks %v of its share", tenantName(r.Owed),
		text.Duration(r.Debt)))
}

// tenantWeights are what jobs that are planned for together are worth against each other. It is empty while there are
// no tenants: then their priorities count.
func (m *Machine) tenantWeights(jobs []*job) map[*job]int {
	if !m.hasTenants() {
		return nil
	}
	weights := make(map[*job]int)
	for i, w := range m.shares.Weights(queuedAs(jobs)) {
		weights[jobs[i]] = w
	}
	return weights
}

// jobWorth returns what jobs are worth against each other wherever they train. Queued jobs count only if they are
// given.
func (m *Machine) jobWorth(waits ...*job) func(*job) float64 {
	var jobs []*job
	for _, j := range m.jobs {
		if j.isActive() || slices.Contains(waits, j) {
			jobs = append(jobs, j)
		}
	}
	worth := m.shares.Worth(queuedAs(jobs))
	return func(j *job) float64 { return worth(j.queued()) }
}

// Tenants are the tenants that have a share, or jobs that are not over, by name. nil: nobody was given a share.
func (m *Machine) Tenants() []wire.TenantState {
	if !m.hasTenants() {
		return nil
	}
	states := make(map[string]*wire.TenantState)
	of := func(name string) *wire.TenantState {
		if states[name] == nil {
			states[name] = &wire.TenantState{Name: name, Share: m.shares.ShareOf(name)}
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
		for name, a := range d.ledger.Accounts {
			if s := states[name]; s != nil && (s.Behind == 0 || a.Debt > s.Behind) {
				s.Behind = a.Debt
			}
		}
	}
	var list []wire.TenantState
	for _, name := range slices.Sorted(maps.Keys(states)) {
		list = append(list, *states[name])
	}
	return list
}
