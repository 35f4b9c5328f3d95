package superneurons_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models"
	"tensile/models/graphtest"
	"tensile/models/nettest"
	"tensile/models/passes"
	"tensile/peak"
	"tensile/plan/compile"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/jobtest"
	"tensile/scheduler/policies"
	"tensile/scheduler/rivals/superneurons"

	_ "tensile/scheduler/rivals"
)

// options are the parts of the method in all combinations that differ.
func options() (all []superneurons.Options) {
	for bits := range 1 << 5 {
		o := superneurons.Options{NoOffload: bits&1 != 0, NoCache: bits&2 != 0, NoRecompute: bits&4 != 0,
			NoWorkspace: bits&8 != 0, Always: bits&16 != 0}
		for _, o.Strategy = range []superneurons.Strategy{superneurons.CostAware, superneurons.SpeedCentric,
			superneurons.MemoryCentric} {
			all = append(all, o)
		}
	}
	return all
}

// prove plans a request and fails unless the plan is valid, its program passes Check, and it keeps to the budget. It
// returns what the job needs, 0 if it is refused.
func prove(t *testing.T, what string, r scheduler.Request) (scheduler.Result, bool) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("%s: %v", what, p)
		}
	}()
	result, err := policies.Schedule(r, nil)
	if err != nil {
		var over *scheduler.OverBudgetError
		if r.Budget > 0 && errors.As(err, &over) && over.Need > r.Budget {
			return result, false
		}
		t.Fatalf("%s: %v", what, err)
	}
	if r.Budget > 0 && result.Least > r.Budget {
		t.Fatalf("%s: %v for a budget of %v", what, result.Least, r.Budget)
	}
	for i, s := range result.Jobs {
		g := r.Jobs[i].Graph
		if err := proof.Validate(g, s.Plan); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, s.Plan.Text(g))
		}
		c := compile.Compile(g, s.Plan, s.Layout, compile.Options{Poison: true})
		if err := proof.Check(c); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, s.Plan.Text(g))
		}
	}
	return result, true
}

// TestRandom plans random graphs with random options, without a budget, as low as it goes, and between.
func TestRandom(t *testing.T) {
	const seeds = 400
	all := options()
	planned, refused, swapped, again := 0, 0, 0, 0
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 18))
		r := jobtest.New(rng, 1)
		r.Policy, r.Jobs[0].MaxSwapRate = "superneurons", 0
		r.Jobs[0].Graph = graphtest.New(rng, graphtest.Options{Passes: seed%2 == 1})
		r.Jobs[0] = vary(rng, r.Jobs[0].Graph)
		o := all[rng.IntN(len(all))]
		r.Options.Own = o
		what := fmt.Sprintf("seed %d, %+v", seed, o)
		free, _ := prove(t, what, r)
		r.Lowest = true
		low, _ := prove(t, what+", lowest", r)
		if low.SlotPeak > free.SlotPeak && !o.Always && !o.NoRecompute {
			t.Errorf("%s: %v as low as it goes, %v without a budget", what, low.SlotPeak, free.SlotPeak)
		}
		r.Lowest = false
		r.Budget = low.Least + graph.Bytes(rng.Int64N(int64(max(1, free.Least-low.Least)+1)))
		for _, result := range []scheduler.Result{free, low} {
			p := result.Jobs[0].Plan
			if p.Swapped(r.Jobs[0].Graph) > 0 {
				swapped++
			}
			if len(p.Steps) > len(r.Jobs[0].Graph.Ops) {
				again++
			}
		}
		j := &r.Jobs[0]
		study, err := superneurons.Of(j, r.Out, r.In, r.Align, r.Budget, o)
		if err == nil {
			study.Plan.Graph = j.Graph.Digest()
			if f := peak.Of(j.Graph, study.Plan); f.Peak > r.Budget || study.Capacity != r.Budget {
				t.Errorf("%s: %v in a slot, a capacity of %v, with %v", what, f.Peak, study.Capacity, r.Budget)
			}
		} else if !errors.Is(err, scheduler.ErrNoPlan) {
			t.Fatalf("%s: %v", what, err)
		}
		if _, ok := prove(t, what+fmt.Sprintf(", %v", r.Budget), r); ok {
			planned++
		} else {
			refused++
		}
	}
	t.Logf("%d planned, %d refused, %d with swaps, %d with recomputation", planned, refused, swapped, again)
	if planned < seeds/2 || swapped < seeds/10 || again < seeds/20 {
		t.Errorf("%d planned, %d refused, %d with swaps, %d with recomputation", planned, refused, swapped, again)
	}
}

// vary returns a job of a graph with random latencies and up to three variants per op.
func vary(rng *rand.Rand, g *graph.Graph) scheduler.Job {
	j := scheduler.Job{Name: "job", Graph: g}
	for range g.Ops {
		j.Latency = append(j.Latency, time.Duration(1+rng.IntN(10000)))
		var variants []scheduler.Variant
		for k := range 1 + rng.IntN(3) {
			variants = append(variants, scheduler.Variant{Name: fmt.Sprint("v", k),
				Scratch: max(0, 4*graph.Bytes(rng.IntN(64)-32)), Latency: time.Duration(1 + rng.IntN(10000))})
		}
		j.Variants = append(j.Variants, variants)
	}
	return j
}

// TestNetworks plans every network, plain and with all passes, by each way to make segments again and without a cache.
func TestNetworks(t *testing.T) {
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	for k, name := range models.Names() {
		if !long.On() && k%6 != 0 {
			continue
		}
		plain, err := nettest.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		rewritten, _, err := passes.Apply(plain, passes.Names())
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range []*graph.Graph{plain, rewritten} {
			j := scheduler.Job{Name: name, Graph: g}
			for op := range g.Ops {
				j.Latency = append(j.Latency, facts.Roofline(g.Cost(graph.OpID(op))))
			}
			r := scheduler.Request{Policy: "superneurons", Jobs: []scheduler.Job{j}, Out: facts.Out, In: facts.In,
				Align: 512, Lowest: true, Options: scheduler.Options{Pack: "size"}}
			for _, o := range []superneurons.Options{{}, {Strategy: superneurons.MemoryCentric}, {NoCache: true}} {
				r.Options.Own = o
				prove(t, fmt.Sprintf("%s, passes %v, %+v", name, i == 1, o), r)
			}
		}
	}
}
