package queue

import (
	"testing"
	"time"

	_ "tensile/internal/long"
)

const turn = 10 * time.Second

// ledgerOf is that of a device where two tenants are owed something.
func ledgerOf(ada, bob Account) *Ledger {
	return &Ledger{Turn: turn, Accounts: map[string]*Account{"ada": &ada, "bob": &bob}}
}

// A job that gave way to another tenant does not come back while another is owed more than its own, although no debt is
// so large that it is paid; a new job waits for debts that are paid alone.
func TestThoseThatGaveWayComeBackInOrder(t *testing.T) {
	for _, c := range []struct {
		ada, bob          time.Duration
		paid              bool // what ada is owed
		fresh, back, adas bool // who is held: a new job of bob, one of bob's that gave way, one of ada's that did
	}{
		{ada: time.Second, bob: -time.Second, back: true},
		{ada: time.Second, bob: 2 * time.Second, adas: true},
		{ada: -time.Second, bob: -2 * time.Second},
		{ada: 2 * turn, bob: -time.Second, paid: true, fresh: true, back: true},
		{ada: turn / 2, bob: turn / 4, paid: true, fresh: true, back: true},
		{ada: turn / 4, bob: turn / 2, paid: true},
	} {
		l := ledgerOf(Account{Debt: c.ada, InRepayment: c.paid}, Account{Debt: c.bob})
		held := func(tenant string, gaveWay bool) bool {
			_, held := l.Throttles(Job{Tenant: tenant, GaveWay: gaveWay}, false)
			return held
		}
		if fresh, back, adas := held("bob", false), held("bob", true), held("ada", true); fresh != c.fresh ||
			back != c.back || adas != c.adas {
			t.Errorf("%+v: held are a new job of bob: %v, one that gave way: %v, one of ada's that did: %v", c, fresh,
				back, adas)
		}
	}
	l := ledgerOf(Account{}, Account{})
	for _, j := range []Job{{Tenant: "bob"}, {Tenant: "bob", GaveWay: true}} {
		if owed, held := l.Throttles(j, true); held != j.GaveWay || held && owed != "bob" {
			t.Errorf("%+v, which follows another of its tenant, is held: %v, for %q", j, held, owed)
		}
	}
}

// A tenant is before another that is owed nothing or less; where both are owed something it has to be far more.
func TestPrecedes(t *testing.T) {
	for _, c := range []struct {
		ada, bob             time.Duration
		adaIsOwed, bobIsOwed bool
		want                 bool
	}{
		{turn, 0, true, false, true},
		{turn, 0, false, false, false},
		{turn / 4, turn / 2, true, false, false},
		{2 * turn, turn, true, true, false},
		{4 * turn, turn, true, true, true},
	} {
		l := ledgerOf(Account{Debt: c.ada, InRepayment: c.adaIsOwed}, Account{Debt: c.bob, InRepayment: c.bobIsOwed})
		if got := l.Precedes("ada", "bob"); got != c.want {
			t.Errorf("%+v: ada precedes bob: %v", c, got)
		}
	}
}
