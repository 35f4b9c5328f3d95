package replay_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/proof"

	_ "tensile/internal/long"
	"tensile/peak"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/jobtest"
	"tensile/scheduler/policies"
	"tensile/scheduler/rivals/replay"

	_ "tensile/scheduler/rivals"
)

// the flag -long

// lru has what was not used for longest leave.
type lru struct{ order []graph.StorageID } // the least recently used first

func (l *lru) Used(s graph.StorageID) {
	l.Left(s)
	l.order = append(l.order, s)
}

func (l *lru) Victim(candidates []replay.Candidate) graph.StorageID {
	for _, s := range l.order {
		if slices.ContainsFunc(candidates, func(c replay.Candidate) bool { return c.Storage == s }) {
			return s
		}
	}
	panic("replay: a candidate was never used")
}

func (l *lru) Left(s graph.StorageID) {
	l.order = slices.DeleteFunc(l.order, func(x graph.StorageID) bool { return x == s })
}

// fickle chooses at random, so that iterations do not repeat.
type fickle struct{ rng *rand.Rand }

func (f fickle) Used(graph.StorageID) {}
func (f fickle) Left(graph.StorageID) {}
func (f fickle) Victim(candidates []replay.Candidate) graph.StorageID {
	return candidates[f.rng.IntN(len(candidates))].Storage
}

// proven proves a plan, and that no slot holds more than the capacity.
func proven(t *testing.T, what string, g *graph.Graph, p *plan.Plan, capacity graph.Bytes) {
	t.Helper()
	if err := proof.Validate(g, p); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, p.Text(g))
	}
	if f := peak.Of(g, p); f.Peak > capacity {
		t.Fatalf("%s: a peak of %v with a capacity of %v\n%s", what, f.Peak, capacity, p.Text(g))
	}
	l, err := compile.Place(g, p, jobtest.Align)
	if err != nil {
		t.Fatal(what, err)
	}
	if _, err := compile.Prove(g, p, l, compile.Options{}); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, p.Text(g))
	}
}

// TestPlans replays two methods on random graphs, from the capacity of the largest step to one where nothing has to
// leave.
func TestPlans(t *testing.T) {
	var swapped [5]graph.Bytes
	resident, emptied := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 91))
		r := jobtest.New(rng, 1)
		j := &r.Jobs[0]
		g := j.Graph
		workingSet, all := scheduler.WorkingSetOf(*j, r.Align).Bytes, graph.Bytes(0)
		for s := range g.Storages {
			all += scheduler.RoundUp(g.Storages[s].Bytes, r.Align)
		}
		all += workingSet // for scratch
		for k := range swapped {
			capacity := workingSet + (all-workingSet)*graph.Bytes(k)/graph.Bytes(len(swapped)-1)
			for name, m := range map[string]replay.Method{"lru": &lru{}, "fickle": fickle{rng}} {
				what := fmt.Sprintf("seed %d, %s in %v", seed, name, capacity)
				p, err := replay.Plan(j, name, capacity, r.Align, m)
				if err != nil {
					t.Fatal(what, err)
				}
				proven(t, what, g, p, capacity)
				if name == "fickle" && len(p.Entry) == 0 {
					emptied++
				}
				if name == "lru" {
					swapped[k] += p.Swapped(g)
				}
				if k == len(swapped)-1 {
					resident += len(p.Entry)
				}
			}
		}
		_, err := replay.Plan(j, "lru", workingSet-1, r.Align, &lru{})
		if over, ok := errors.AsType[*scheduler.OverBudgetError](err); !ok || over.Need != workingSet {
			t.Fatalf("seed %d: %v in one byte less than %v", seed, err, workingSet)
		}
	}
	t.Logf("swapped by lru: %v; %d storages stay with room for all; %d fickle iterations begin empty", swapped,
		resident,
		emptied)
	if !slices.IsSortedFunc(swapped[:], func(a, b graph.Bytes) int { return int(b - a) }) || swapped[0] == 0 ||
		swapped[4] != 0 ||
		resident < 100 || emptied < 20 {
		t.Errorf("swapped by lru: %v; %d storages stay with room for all; %d fickle iterations begin empty", swapped,
			resident, emptied)
	}
}

// lruPolicy is an LRU swapper as a policy: the capacities are lowered until the packed plans fit the budget.
func lruPolicy(s *draft.Session) (scheduler.Result, error) {
	r := &s.Request
	workingSet, err := r.CheckWorkingSets()
	if err != nil {
		return scheduler.Result{}, err
	}
	s.Stage(scheduler.Planning)
	for target := r.Budget; ; {
		var plans []*plan.Plan
		for i := range r.Jobs {
			alone := scheduler.WorkingSetOf(r.Jobs[i], r.Align).Bytes
			capacity := alone + (target-workingSet)/graph.Bytes(len(r.Jobs))
			p, err := replay.Plan(&r.Jobs[i], r.Policy, capacity, r.Align, &lru{})
			if err != nil {
				return scheduler.Result{}, err
			}
			plans = append(plans, p)
		}
		result, err := s.Place(plans)
		if err != nil || result.Arena <= r.Budget {
			return result, err
		}
		if target == workingSet {
			return scheduler.Result{}, &scheduler.OverBudgetError{Need: result.Arena, Budget: r.Budget,
				Reason: "LRU packs into that"}
		}
		target = max(workingSet, target-(result.Arena-r.Budget))
	}
}

// TestPolicy runs the LRU swapper as a policy of its own, beside policy tensile: it is proven like any other.
func TestPolicy(t *testing.T) {
	table := append(policies.All(), policies.Row{Name: "own-lru", Policy: lruPolicy})
	planned, refused := 0, 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 92))
		r := jobtest.New(rng, 1+rng.IntN(2))
		r.Policy = "none-live"
		live, err := table.Schedule(r, scheduler.Watch{})
		if err != nil {
			t.Fatal(err)
		}
		r.Policy, r.Budget = "own-lru", live.Arena*graph.Bytes(80+rng.IntN(20))/100
		result, err := table.Schedule(r, scheduler.Watch{})
		if errors.Is(err, scheduler.ErrNoPlan) {
			refused++
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		planned++
		if result.Arena > r.Budget {
			t.Fatalf("seed %d: %v with a budget of %v", seed, result.Arena, r.Budget)
		}
		for i, s := range result.Jobs {
			if _, err := compile.Prove(r.Jobs[i].Graph, s.Plan, s.Layout, compile.Options{}); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	if t.Logf("%d planned, %d refused", planned, refused); planned < 3*refused {
		t.Errorf("%d planned, %d refused", planned, refused)
	}
}

// A victim that was not offered is a mistake of the method.
func TestWrongVictim(t *testing.T) {
	r := jobtest.New(rand.New(rand.NewPCG(3, 93)), 1)
	defer func() {
		if recover() == nil {
			t.Error("a wrong victim is taken")
		}
	}()
	workingSet := scheduler.WorkingSetOf(r.Jobs[0], r.Align).Bytes
	replay.Plan(&r.Jobs[0], "wrong", workingSet, r.Align, wrong{})
}

type wrong struct{ fickle }

func (wrong) Victim([]replay.Candidate) graph.StorageID { return -1 }
