package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tensile/controller/memory"
	"tensile/controller/plans"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// sharing is a world without mishaps whose jobs share memory by gates.
func sharing(t *testing.T, seed uint64, budget graph.Bytes) *world {
	w := calmWorld(t, seed, budget)
	w.config.MemorySharing, w.config.Page, w.config.Limited = wire.Gates, 64, false
	w.machine = NewMachine(w.config)
	return w
}

// lent are the capacities that an executor was told, each once.
func lent(w *world, before []wire.Lease) []wire.Lease {
	for _, name := range []string{"x1", "x2", "x3"} {
		if o, ok := w.orders[name]; ok && o.Lease != nil && !slices.Contains(before, *o.Lease) {
			before = append(before, *o.Lease)
		}
	}
	return before
}

// The budget goes from 100 to 70 % and back while jobs train. The lease's capacity follows as fast as plans shrink:
// never below what the plans in force need together, at the end the budget but for contexts; its number rises, also
// over a restart.
func TestCapacityFollowsPlans(t *testing.T) {
	fell, late := 0, 0
	seeds := long.Rounds(8, 40)
	for seed := range seeds {
		w := sharing(t, seed, 0)
		w.config.Context = 100 * graph.Bytes(seed%2)
		w.machine = NewMachine(w.config)
		for _, name := range []string{"a", "b", "c"} {
			w.submit(name, endless)
		}
		w.run(5)
		contexts := 4 * w.config.Context
		all := w.machine.ownDomain.totalClaims().Bytes() + contexts
		if got := w.machine.ownDomain.lease; got.Capacity != 0 || got.Sharing != wire.Gates {
			t.Fatalf("seed %d: without a budget the lease is %+v", seed, got)
		}
		var told []wire.Lease
		for _, percent := range []graph.Bytes{100, 70, 100} {
			budget := all * percent / 100
			w.config.Budget = budget
			w.step(Input{Request: &wire.Request{Verb: wire.SetBudget, Budget: budget}})
			for range 8 {
				if told = lent(w, told); len(told) > 0 {
					now := told[len(told)-1]
					needs := w.machine.ownDomain.grantedBytes()
					if now.Capacity < min(needs, all-contexts) || now.Capacity > max(budget-contexts, needs) {
						t.Fatalf("seed %d: a capacity of %s, plans need %s, the budget is %s", seed, now.Capacity,
							needs, budget)
					}
					if now.Capacity > budget-contexts {
						late++
					}
				}
				w.run(1)
			}
			if w.machine.ownDomain.grantedBytes() > budget-contexts {
				break // they cannot shrink so far
			}
			if told = lent(w, told); told[len(told)-1].Capacity != budget-contexts {
				t.Fatalf("seed %d: a capacity of %s at last, the budget is %s", seed, told[len(told)-1].Capacity,
					budget)
			}
			if percent == 70 {
				fell++
				w.restart()
				w.run(1)
				if told = lent(w, told); told[len(told)-1].Capacity != budget-contexts {
					t.Fatalf("seed %d: a capacity of %s after a restart", seed, told[len(told)-1].Capacity)
				}
			}
		}
		for i := range told[1:] {
			if told[i+1].Number <= told[i].Number {
				t.Errorf("seed %d: capacity %+v after %+v", seed, told[i+1], told[i])
			}
		}
	}
	t.Logf("the capacity fell for %d seeds, later than the budget %d times", fell, late)
	if min(fell, late) < int(seeds)/4 {
		t.Errorf("the capacity fell for %d seeds, later than the budget %d times", fell, late)
	}
}

// What an executor out of reach may hold is promised as well, but gives nobody more than there was: also not to a
// controller after this one.
func TestCapacityOutOfReach(t *testing.T) {
	m := NewMachine(Config{MemorySharing: wire.Gates, Page: 64, Budget: 1000})
	train := func(base, arena graph.Bytes) *job {
		l := &plans.ProvenLayout{Wire: &wire.Layout{Arena: arena}, Claim: &memory.Claim{Base: base, Arena: arena}}
		j := &job{domain: m.ownDomain, record: wire.Record{State: wire.JobRunning}}
		j.layouts = []*layout{{ProvenLayout: *l, granted: true}}
		m.jobs = append(m.jobs, j)
		return j
	}
	a := train(100, 700)
	train(100, 300)
	number := int64(0)
	lends := func(what string, want graph.Bytes) {
		t.Helper()
		if m.ownDomain.updateLease(); m.ownDomain.lease.Capacity != want || m.ownDomain.lease.Number < number {
			t.Errorf("%s: the lease is %+v after number %d, want %s", what, m.ownDomain.lease, number, want)
		}
		number = m.ownDomain.lease.Number
	}
	lends("the budget", 1000)
	m.ownDomain.config.Budget = 600
	lends("a smaller one", 800)
	a.layouts, a.record.State = nil, wire.JobQueued
	a.record.Held = []wire.Holding{{Executor: "x1", Bytes: 700}}
	lends("what a has is out of reach", 800)
	before := Stored{Orders: map[string]wire.Orders{"x2": {Lease: &m.ownDomain.lease}}}
	again := Restore(m.ownDomain.config, before)
	again.jobs, m = m.jobs, again
	for _, j := range m.jobs {
		j.domain = m.ownDomain
	}
	m.ownDomain.config.Budget = 500
	lends("another controller, a smaller budget", 800)
	a.record.Held = nil
	lends("it is back", 500)
}

// An executor that was launched and does not answer counts with its whole arena, and is killed after the time to give
// up; its job goes on elsewhere then. Where each job has its own arena it is waited for.
func TestStandsStill(t *testing.T) {
	for _, shared := range []bool{true, false} {
		w := sharing(t, 1, 0)
		w.config.GiveUp = time.Minute
		if !shared {
			w.config.MemorySharing = wire.NoSharing
		}
		w.machine = NewMachine(w.config)
		w.calm = false
		w.submit("a", endless)
		w.calm = true
		w.machine.findJob("a").record.Spec.Restarts = 3
		w.run(3)
		if r := w.recordOf("a"); r.State != wire.JobRunning {
			t.Fatalf("a is %s", r.State)
		}
		w.executors["x1"].cut = true
		base := w.machine.findJob("a").claim().Base
		for range 6 {
			w.clock += 4 * time.Second
			w.step(Input{Tick: &Tick{}})
		}
		j := w.machine.findJob("a")
		if want := shared; (j.record.State == wire.JobUnknown) != want {
			t.Errorf("shared %v: a is %s", shared, j.record.State)
		}
		if c := j.claim(); shared && (c.Base != c.Arena || base >= c.Base) {
			t.Errorf("a claims %+v, and had a base of %s", c, base)
		}
		killed := func() bool {
			return slices.ContainsFunc(w.events, func(e Event) bool { return e.Kind == Killed && e.Executor == "x1" })
		}
		for range 16 {
			if killed() {
				break
			}
			w.clock += 4 * time.Second
			w.step(Input{Tick: &Tick{}})
		}
		if killed() != shared {
			t.Errorf("shared %v: killed %v", shared, killed())
		}
		if !shared {
			continue
		}
		w.end(w.executors["x1"], "signal: killed")
		w.run(2)
		w.clock += 4 * time.Second
		w.step(Input{Tick: &Tick{}})
		w.run(3)
		if r := w.recordOf("a"); r.State != wire.JobRunning || r.Executor != "x1.2" || len(r.Held) > 0 {
			t.Errorf("a is %s at %s with %v", r.State, r.Executor, r.Held)
		}
	}
}

// A controller for another way of sharing than that of jobs which run does not start, unless it was to take theirs.
func TestOtherSharing(t *testing.T) {
	w := sharing(t, 1, 0)
	w.submit("a", endless)
	w.run(3)
	s := w.stored()
	for _, r := range w.records {
		s.Records = append(s.Records, r)
	}
	c := w.config
	c.MemorySharing = wire.NoSharing
	const want = "is held: it runs with memory sharing gates, and this controller is for none: start it with " +
		"--memory-sharing gates"
	if why := Restore(c, s).jobs[0].damage; !strings.HasPrefix(why, want) {
		t.Errorf("%q, want %s", why, want)
	}
	if got := c.keepSharing(s.Records).MemorySharing; got != wire.Gates {
		t.Errorf("what is in force is %s", got)
	}
}
