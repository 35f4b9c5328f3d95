package scheduler

import (
	"math/rand/v2"
	"testing"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/program"
)

// proven writes, packs and proves the plan of job i's draft, and returns its prediction.
func (r *Request) proven(t testing.TB, seed uint64, i int, d *draft) (*plan.Plan, program.Timing) {
	t.Helper()
	g := r.Jobs[i].Graph
	p := d.plan(r.Policy)
	p.Graph = r.digests[i]
	if err := plan.Validate(g, p); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, p.Text(g))
	}
	l, err := program.Place(g, p, r.Align)
	if err != nil {
		t.Fatal(err)
	}
	c, err := program.Prove(g, p, l, program.Options{})
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, p.Text(g))
	}
	return p, program.Time(c.Program(), program.Durations{Steps: p.Made, Out: d.out, In: d.in})
}

// TestFreeSwapsCostNothing plans all swaps that fit into free link time and shows that the program, whose lanes and places
// know nothing of what was booked, takes exactly as long as planned: what the inputs make it wait for, and no more. Relaxing
// them changes nothing in that. Outputs are left out of account: where they are dropped is not for swaps to decide.
func TestFreeSwapsCostNothing(t *testing.T) {
	swaps, wraps, early := 0, 0, 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 61))
		r := randomJobs(rng, 1)
		r.Options.OneChannel = false
		d := r.drafts(earlyUpdates)[0]
		for i := range d.g.Storages {
			if d.g.Storages[i].Role == graph.Output {
				d.g.Storages[i].Role = graph.Activation
			}
		}
		r.meter = newMeter(nil)
		r.prepare()
		d = r.drafts(earlyUpdates)[0]
		swapFreely([]*draft{d}, 0)
		for _, relaxed := range []bool{false, true} {
			if relaxed {
				_, peak := d.peak()
				d.relax(peak + graph.Bytes(rng.IntN(200)))
			}
			p, timing := r.proven(t, seed, 0, d)
			if timing.Iteration != d.period {
				t.Fatalf("seed %d, relaxed %v: %d swaps take %v, planned %v\n%s", seed, relaxed, d.swaps, timing.Iteration, d.period, p.Text(r.Jobs[0].Graph))
			}
		}
		for _, x := range d.gaps {
			if x.kind == swap && !x.arrival() {
				swaps++
				if x.to >= len(d.steps) {
					wraps++
				}
				if x.copied && x.send < d.end(x.from) {
					early++
				}
			}
		}
	}
	t.Logf("%d swaps, %d over the boundary, %d begun before their gap", swaps, wraps, early)
	if swaps < 3000 || wraps < 300 || early < 100 {
		t.Errorf("%d swaps, %d over the boundary, %d begun before their gap", swaps, wraps, early)
	}
}

// TestChainsAreValid recomputes random sets of what can be recomputed: every plan is proven, with and without swaps.
func TestChainsAreValid(t *testing.T) {
	again, chained := 0, 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 62))
		r := randomJobs(rng, 1)
		c := newChains(r.drafts(graphOrder)[0], rng.IntN(4) == 0)
		share := rng.IntN(4)
		for _, op := range graphOrder(c.g) {
			for _, s := range c.makes.of(int(op)) {
				if c.longest[s] == nil || rng.IntN(4) < share || c.noChains && c.needed[s] {
					continue
				}
				if _, ok := c.cost(s, c.longest[s].to, 1, time.Hour); ok {
					c.choose(s)
				}
			}
		}
		steps, took := c.insert()
		d := r.draft(0, steps)
		previous := graph.StorageID(-1)
		for _, s := range steps {
			if s.want >= 0 {
				again++
				took -= r.Jobs[0].Latency[s.op]
				if previous >= 0 {
					chained++
				}
			}
			previous = s.want
		}
		if took != 0 {
			t.Fatalf("seed %d: recomputations take %v more than they should", seed, took)
		}
		r.proven(t, seed, 0, d)
		swapFreely([]*draft{d}, 0)
		r.proven(t, seed, 0, d)
	}
	t.Logf("%d recomputations, %d just behind another", again, chained)
	if again < 600 || chained < 100 {
		t.Errorf("%d recomputations, %d just behind another", again, chained)
	}
}
