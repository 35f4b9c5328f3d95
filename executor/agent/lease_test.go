package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/wire"
)

// Orders say how memory is lent: what follows comes once, before anything else, and again when that has changed. What a
// job is worth is told when it changes, where jobs share memory alone.
func TestLent(t *testing.T) {
	m := NewMachine(Process{Executor: "x1", Life: "l"})
	online := true
	m.Step(0, Input{Online: &online})
	number := int64(0)
	orders := func(l *wire.Lease, priority int) (lent []wire.Lease, weighs []Weigh) {
		number++
		o := &wire.Orders{Executor: "x1", Number: number, Lease: l,
			Jobs: []wire.Assignment{{Spec: wire.Spec{Name: "a", Priority: priority}}}}
		for i, out := range m.Step(time.Duration(number), Input{Orders: o}) {
			if out.Lend != nil {
				if lent = append(lent, *out.Lend); number > 1 && i > 0 {
					t.Errorf("orders %d: the lease comes as output %d", number, i)
				}
			}
			if out.Weigh != nil {
				weighs = append(weighs, *out.Weigh)
			}
		}
		return lent, weighs
	}
	small, large := wire.Lease{Sharing: wire.Gates, Capacity: 1, Number: 1},
		wire.Lease{Sharing: wire.Gates, Capacity: 2, Number: 2}
	for i, test := range []struct {
		lease    *wire.Lease
		priority int
		hosted   bool
		lent     []wire.Lease
		weighs   []Weigh
	}{
		{nil, 1, false, nil, nil},
		{nil, 2, true, nil, nil},
		{&small, 2, true, []wire.Lease{small}, []Weigh{{"a", 2}}},
		{&small, 2, true, nil, nil},
		{&small, 3, true, nil, []Weigh{{"a", 3}}},
		{&large, 4, false, []wire.Lease{large}, nil},
		{&large, 5, true, nil, []Weigh{{"a", 5}}},
		{nil, 5, true, []wire.Lease{{}}, nil},
	} {
		if j := m.find("a"); j != nil {
			j.hosted = test.hosted
		}
		lent, weighs := orders(test.lease, test.priority)
		if diff := cmp.Diff(test.lent, lent); diff != "" {
			t.Errorf("orders %d: lent (-want +got):\n%s", i, diff)
		}
		if diff := cmp.Diff(test.weighs, weighs); diff != "" {
			t.Errorf("orders %d: weights (-want +got):\n%s", i, diff)
		}
	}
}
