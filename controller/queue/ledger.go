package queue

import (
	"maps"
	"math"
	"slices"
	"time"
)

// What a tenant gets of a device is counted as service: the time that the iterations of its jobs take alone.
//
// A tenant wants a device while jobs of its train there or could begin. Of each second it is due its share among all
// tenants that want the device: of that second, or of what the device did in it if that is less. What the tenant is due
// and did not get is its debt, which the device owes to the tenant. A debt below zero is what it got beyond its share.
// It is never below minus a turn, so that nobody pays for idle time, and it is forgotten when the tenant wants nothing
// more.
//
// A debt of more than a turn is repaid: jobs of tenants that are above their shares do not begin (Throttles), and those
// that train are parked one after the other (Repay), until the debt is gone. So over any time in which a tenant wants a
// device it gets what it is due but for the largest debt, a turn, and the time that parking takes.

const (
	// maxDebt is the largest debt, in turns. A debt grows when no job can be parked to repay it.
	maxDebt = 10
	// smoothing is the number of turns over which the device's service is averaged.
	smoothing = 2
	// debtGap: of two tenants whose debts are being repaid, one precedes the other only if it is owed at least this
	// many turns more.
	debtGap = 2
	// Patience is the divisor of a turn that gives the time after which another job is parked for a debt that does
	// not fall.
	Patience = 4
	// idleRate is the service per second below which a device counts as idle.
	idleRate = 0.2
)

// Account is what a tenant got of a device.
type Account struct {
	// Debt is the time that the tenant was due and did not get. Below zero it is what it got beyond its share.
	Debt time.Duration
	// Served is what it got since the last tick.
	Served time.Duration
	// InRepayment says that the debt is being paid: other tenants' jobs give way.
	InRepayment bool
}

// Ledger is what the tenants of a device got. Times are since the Unix epoch.
type Ledger struct {
	// Turn is the time for which a job trains at least before it gives way.
	Turn time.Duration
	// Accounts are those of tenants that want the device or were served since the last tick, by tenant. It is empty
	// while there are no shares.
	Accounts map[string]*Account
	// LastTick is when the accounts were last settled. 0: they were not.
	LastTick time.Duration
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

// Account is the account of a tenant, which is made if there is none.
func (l *Ledger) Account(tenant string) *Account {
	a := l.Accounts[tenant]
	if a == nil {
		if l.Accounts == nil {
			l.Accounts = make(map[string]*Account)
		}
		a = new(Account)
		l.Accounts[tenant] = a
	}
	return a
}

// limit is a debt within the limits of all debts.
func (l *Ledger) limit(debt time.Duration) time.Duration {
	return min(max(debt, -l.Turn), maxDebt*l.Turn)
}

// Restore takes up a debt that a controller before this one has stored.
func (l *Ledger) Restore(tenant string, debt time.Duration) { l.Account(tenant).Debt = l.limit(debt) }

// Use is how a job uses a device, or would.
type Use struct {
	Tenant string
	// Wants says that the job trains on the device or could begin there.
	Wants bool
	// Away says that the job is at an executor that cannot be reached.
	Away bool
	// Active says that the job is planned for.
	Active bool
	// Trains says that the job trains.
	Trains bool
	// Counted says that reports tell what the job gets. It is false for a script without a plan.
	Counted bool
}

// Settle computes, at a tick, what tenants were due and got since the last one. Nobody is due anything of a device that
// is not reachable. A tenant all of whose jobs there are out of reach is not either: what it is owed stays as it is.
func (l *Ledger) Settle(now time.Duration, s Shares, jobs []Use, reachable bool) {
	passed := now - l.LastTick
	// At the first tick passed is the time since the Unix epoch.
	if l.LastTick = now; passed <= 0 || passed == now || !reachable {
		return
	}
	shares := 0
	wants, away := make(map[string]bool), make(map[string]bool)
	for _, j := range jobs {
		away[j.Tenant] = away[j.Tenant] || j.Away
		if j.Wants && !wants[j.Tenant] {
			wants[j.Tenant] = true
			shares += s.ShareOf(j.Tenant)
			l.Account(j.Tenant)
		}
	}
	only, isOnly := l.creditUncounted(jobs, passed)
	rate := l.averageRate(passed)
	due := float64(passed) * min(1, rate)
	for t, a := range l.Accounts {
		if !wants[t] {
			if !away[t] {
				delete(l.Accounts, t)
			}
			a.InRepayment, a.Served = false, 0 // it wants nothing that could be repaid now
			continue
		}
		if isOnly && t == only && rate < idleRate {
			a.Served = max(a.Served, passed) // the tenant has the device for itself and leaves it idle
		}
		part := time.Duration(due * float64(s.ShareOf(t)) / float64(shares))
		a.Debt = l.limit(a.Debt + part - a.Served)
		a.Served = 0
		a.InRepayment = len(wants) > 1 && a.Debt > 0 && (a.InRepayment || a.Debt > l.Turn)
	}
}

// creditUncounted counts its part of the time that has passed to each job that trains and of which no reports tell what
// it gets. It returns the tenant whose jobs alone are active, if there is one.
func (l *Ledger) creditUncounted(jobs []Use, passed time.Duration) (only string, isOnly bool) {
	training := time.Duration(0)
	tenants := make(map[string]bool)
	for _, j := range jobs {
		if j.Active {
			only, tenants[j.Tenant] = j.Tenant, true
		}
		if j.Trains {
			training++
		}
	}
	for _, j := range jobs {
		if j.Trains && !j.Counted {
			l.Account(j.Tenant).Served += passed / training
		}
	}
	return only, len(tenants) == 1
}

// averageRate is the service of all tenants per second, averaged over the last turns.
func (l *Ledger) averageRate(passed time.Duration) float64 {
	var served time.Duration
	for _, a := range l.Accounts {
		served += a.Served
	}
	weight := float64(passed) / float64(passed+smoothing*l.Turn)
	l.rate += float64(weight * (float64(served)/float64(passed) - l.rate))
	l.weight += float64(weight * (1 - l.weight))
	return l.rate / l.weight
}

// Precedes reports whether a tenant comes before another: its debt is being repaid, and the other's is not and is
// smaller, or is smaller by debtGap turns.
func (l *Ledger) Precedes(t, other string) bool {
	a, b := l.Accounts[t], l.Accounts[other]
	switch {
	case a == nil || !a.InRepayment || t == other:
		return false
	case b == nil:
		return true
	case b.InRepayment:
		return a.Debt > b.Debt+debtGap*l.Turn
	}
	return a.Debt > b.Debt
}

// Throttles reports whether a job is not to begin on the device because another tenant is owed, and its own is not. A
// job that gave way comes back when nobody is owed anything, and a turn after the job of its own tenant before it,
// which is owed then: follows says that this turn is not over. owed is the tenant for which the job waits.
func (l *Ledger) Throttles(j Job, follows bool) (owed string, held bool) {
	own := l.Accounts[j.Tenant]
	others := false
	for _, t := range slices.Sorted(maps.Keys(l.Accounts)) {
		if t != j.Tenant {
			others = true
			debt := l.Accounts[t].Debt
			back := j.GaveWay && debt > 0 && (own == nil || !own.InRepayment && debt > own.Debt)
			if back || l.Precedes(t, j.Tenant) {
				return t, true
			}
		}
	}
	if others && j.GaveWay && follows {
		return j.Tenant, true
	}
	return "", false
}

// Repayment is a debt for which a job gives way.
type Repayment struct {
	// Owed is the tenant that is owed most, and Debt what it is owed.
	Owed string
	Debt time.Duration
	// Above is the tenant that has got most beyond its share, of which a job gives way.
	Above string
}

// Repay returns the debt for which a job is to give way now. false: there is none, the debt falls, or it may still fall
// as a job gave way a moment ago (Record).
func (l *Ledger) Repay(now time.Duration) (r Repayment, due bool) {
	for _, t := range slices.Sorted(maps.Keys(l.Accounts)) {
		if a := l.Accounts[t]; a.InRepayment && a.Debt > r.Debt {
			r.Owed, r.Debt = t, a.Debt
		}
	}
	pause := l.Turn / Patience
	switch {
	case r.Debt == 0:
		l.checkedAt = 0
		return r, false
	case l.checkedAt > 0 && now-l.checkedAt < pause:
		return r, false
	case l.checkedAt > 0 && r.Debt <= l.checkedDebt-pause/8:
		l.Record(now, r)
		return r, false
	}
	least := time.Duration(math.MaxInt64)
	for _, t := range slices.Sorted(maps.Keys(l.Accounts)) {
		if a := l.Accounts[t]; a.Debt < least && l.Precedes(r.Owed, t) {
			r.Above, least, due = t, a.Debt, true
		}
	}
	return r, due
}

// Record records that a job gives way for a debt now, or that the debt falls.
func (l *Ledger) Record(now time.Duration, r Repayment) { l.checkedAt, l.checkedDebt = now, r.Debt }
