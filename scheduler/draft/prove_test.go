package draft

import (
	"math/rand/v2"
	"testing"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// proven writes, packs and proves the plan of a draft, and returns its prediction.
func proven(t testing.TB, seed uint64, d *Draft) (*plan.Plan, program.Timing) {
	t.Helper()
	g := d.g
	p := d.Plan("tensile")
	p.Graph = g.Digest()
	if err := proof.Validate(g, p); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, p.Text(g))
	}
	l, err := compile.Place(g, p, d.align)
	if err != nil {
		t.Fatal(err)
	}
	c, err := compile.Prove(g, p, l, compile.Options{})
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, p.Text(g))
	}
	return p, program.Time(c.Program(), program.Durations{Steps: p.Made, Out: d.out, In: d.in})
}

// withoutOutputs is a draft of a random job whose outputs stay on the device, with a lane each way.
func withoutOutputs(rng *rand.Rand) *Draft {
	s, style := randomJobs(rng, 1)
	style.OneChannel = false
	storages := s.Request.Jobs[0].Graph.Storages
	for i := range storages {
		if storages[i].Role == graph.Output {
			storages[i].Role = graph.Activation
		}
	}
	return opened(s.Request).Drafts(EarlyUpdates, style)[0]
}

// TestFreeSwapsCostNothing plans all swaps that fit into free link time and shows that the program, whose lanes and
// places know nothing of what was booked, takes exactly as long as planned: what the inputs make it wait for, and no
// more. Relaxing them changes nothing in that. Outputs are left out of account: where they are dropped is not for
// swaps to decide.
func TestFreeSwapsCostNothing(t *testing.T) {
	swaps, wraps, early := 0, 0, 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 61))
		d := withoutOutputs(rng)
		SwapFreely([]*Draft{d}, 0)
		for _, relaxed := range []bool{false, true} {
			if relaxed {
				_, peak := d.Peak()
				d.relax(peak + graph.Bytes(rng.IntN(200)))
			}
			p, timing := proven(t, seed, d)
			if timing.Iteration != d.period {
				t.Fatalf("seed %d, relaxed %v: %d swaps take %v, planned %v\n%s", seed, relaxed, d.swaps,
					timing.Iteration,
					d.period, p.Text(d.g))
			}
		}
		for _, x := range d.gaps {
			if x.kind == swap && !x.Arrival() {
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
