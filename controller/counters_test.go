package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/randtest"
	"tensile/wire"
)

// counters are all counts, by name.
func (t *Counters) counters() map[string]int64 {
	c := map[string]int64{"iterations": t.Iterations, "stall": int64(t.Stall), "gate": int64(t.Gate),
		"out": int64(t.Out), "in": int64(t.In), "queued": int64(t.Queued)}
	for cause, n := range t.Plans {
		c["plans by "+string(cause)] = n
	}
	for state, n := range t.Ended {
		c["ended "+string(state)] = n
	}
	return c
}

// Whatever happens to jobs and executors, no count of an owner falls, and what owners have is what their jobs had.
func TestTalliesOnlyGrow(t *testing.T) {
	var sum Counters
	var lost int64
	for seed := range long.Rounds(2, 8) {
		w := newWorld(t, seed, graph.Bytes(1500+100*(seed%60)))
		w.config.Preempt = true
		w.machine = NewMachine(w.config)
		before, of := View{}, w.machine
		names := 0
		for range 400 {
			w.chaos(&names)
			v := w.machine.takeView()
			if of != w.machine {
				before, of = View{}, w.machine
			}
			for owner, old := range before.Owners {
				now := v.Owners[owner]
				counters := now.counters()
				for name, n := range old.counters() {
					if counters[name] < n {
						t.Fatalf("seed %d: %s of owner %q falls from %d to %d", seed, name, owner, n, counters[name])
					}
				}
			}
			var jobs int64
			for _, l := range v.Live {
				jobs += l.Iterations
			}
			if jobs > v.Owners[""].Iterations {
				t.Fatalf("seed %d: jobs have done %d iterations, their owner %d", seed, jobs, v.Owners[""].Iterations)
			}
			before = v
		}
		all := before.Owners[""]
		sum.Iterations, sum.Stall = sum.Iterations+all.Iterations, sum.Stall+all.Stall
		sum.Out, sum.In, sum.Queued = sum.Out+all.Out, sum.In+all.In, sum.Queued+all.Queued
		lost += before.LostReports
	}
	if sum.Iterations == 0 || sum.Out == 0 || sum.In == 0 || sum.Queued == 0 || lost == 0 {
		t.Errorf("this has shown too little: %+v, %d reports lost", sum, lost)
	}
}

// Reports are counted once, those that are missing count as iterations, and another incarnation begins anew.
func TestHear(t *testing.T) {
	m := NewMachine(Config{})
	j := &job{record: wire.Record{Spec: wire.Spec{Name: "a", Owner: "ann"}}}
	for _, r := range []struct {
		incarnation int64
		iteration   int
	}{{1, 0}, {1, 1}, {1, 1}, {1, 0}, {1, 4}, {2, 3}, {2, 4}} {
		m.countReport(j, &wire.Report{Incarnation: r.incarnation, Iteration: r.iteration, Stall: time.Second,
			Gate: time.Millisecond, Steps: []time.Duration{1}}, nil)
	}
	got := m.counters["ann"]
	if got.Iterations != 7 || m.reportCount != 5 || m.lostReports != 2 || got.Stall != 5*time.Second ||
		got.Gate != 5*time.Millisecond || j.counters.Iterations != 7 {
		t.Errorf("counted %+v of the owner, %+v of the job, %d reports, %d lost; want 7 iterations, 5 reports, 2 lost",
			got, j.counters, m.reportCount, m.lostReports)
	}
}

// Users beyond the limit are counted together, so that a controller shows a bounded number of series.
func TestOwnersAreBounded(t *testing.T) {
	m := NewMachine(Config{})
	for i := range 3 * maxOwners {
		j := &job{record: wire.Record{Spec: wire.Spec{Owner: fmt.Sprint("user", i)}}}
		m.addCount(j, func(t *Counters) { t.Iterations++ })
	}
	if err := wire.CheckName(otherOwners); err == nil {
		t.Errorf("a user may be called %s", otherOwners)
	}
	if n := len(m.counters); n != maxOwners+1 || m.counters[otherOwners].Iterations != 2*maxOwners {
		t.Errorf("%d owners are counted apart, and %+v together", n, m.counters[otherOwners])
	}
}

// slowAway looks, for each slot and storage, back for the last move and on for the next.
func slowAway(g *graph.Graph, p *plan.Plan) []graph.Bytes {
	n := len(p.Steps)
	bytes := make([]graph.Bytes, n)
	for slot := range n {
		for _, s := range g.Storages {
			if s.Role == graph.Input {
				continue
			}
			var last, next *plan.Move
			for _, round := range [...]int{-n, 0} { // what came before the step, also in the iteration before
				for i, m := range p.Moves {
					if m.Storage == s.ID && m.After+round < slot {
						last = &p.Moves[i]
					}
				}
			}
			for _, round := range [...]int{0, n} {
				for i, m := range p.Moves {
					if m.Storage == s.ID && m.After+round >= slot && next == nil {
						next = &p.Moves[i]
					}
				}
			}
			if last != nil && last.Kind == plan.Drop && next.Kind == plan.In {
				bytes[slot] += s.Bytes
			}
		}
	}
	return bytes
}

// What a plan has swapped out follows from its moves, here compared with a slow way for random plans.
func TestAway(t *testing.T) {
	some := 0
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 3))
		g := graphtest.New(rng, graphtest.Options{})
		p := randtest.New(rng, g, make([]graph.Bytes, len(g.Ops)))
		got, want := swappedOut(g, p), slowAway(g, p)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: away is\n%d, want\n%d", seed, got, want)
		}
		if slices.Max(got) > 0 {
			some++
		}
	}
	if some < 100 {
		t.Errorf("only %d plans swap", some)
	}
}

// The mean counts each step by how long it took.
func TestSwappedIsAMeanOverTime(t *testing.T) {
	p := progress{steps: []time.Duration{3, 1}, layout: &layout{traffic: &traffic{swappedOut: []graph.Bytes{0, 400}}}}
	if got := p.meanSwapped(); got != 100 {
		t.Errorf("400 bytes in the last quarter are %d in the mean, want 100", got)
	}
}
