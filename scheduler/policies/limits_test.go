package policies_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/nettest"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/randtest"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/jobtest"
	"tensile/scheduler/policies"
)

// withinLimits checks that the arena of a plan of a job is not below the bound for the time that it takes, nor its time
// below the bound for its arena. It returns both ratios.
func withinLimits(t *testing.T, what string, r scheduler.Request, p *plan.Plan, l *program.Placement) (memory,
	lost float64) {
	t.Helper()
	g, latency := r.Jobs[0].Graph, r.Jobs[0].Latency
	steps := make([]time.Duration, len(p.Steps))
	for i, step := range p.Steps {
		steps[i] = latency[step.Op]
	}
	timing := program.Time(compile.Compile(g, p, l, compile.Options{}), program.Durations{Steps: steps, Out: r.Out,
		In: r.In})
	limits, err := draft.NewLimits(&r, 0, p, scheduler.Watch{})
	if err != nil {
		t.Fatal(err)
	}
	vanilla := limits.Vanilla()
	eor := float64(timing.Iteration) / float64(max(1, vanilla))
	ns := 1 / float64(max(1, vanilla))
	low, err := limits.Peak(eor - 1 + ns)
	if err != nil {
		t.Fatal(err)
	}
	if l.Arena < low {
		t.Fatalf("%s: an arena of %d at %v times vanilla is below the bound of %d\n%s", what, l.Arena, eor, low,
			p.Text(g))
	}
	least, err := limits.EOR(l.Arena)
	if err != nil {
		t.Fatal(err)
	}
	if eor < least-ns {
		t.Fatalf("%s: %v times vanilla in %d bytes is below the bound of %v", what, eor, l.Arena, least)
	}
	return float64(l.Arena) / float64(max(1, low)), eor
}

// No plan of a policy is below the bound at its own time, on random graphs and on the small forms of networks.
func TestPoliciesWithinLimits(t *testing.T) {
	var requests []scheduler.Request
	for seed := range seeds(100) {
		r := random(rand.New(rand.NewPCG(seed, 72)))
		r.Jobs = r.Jobs[:1]
		requests = append(requests, r)
	}
	for _, name := range []string{"lenet", "vgg16", "bert"} {
		g, err := nettest.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, jobtest.Of(t, g))
	}
	plans, slower := 0, 0
	closest := math.Inf(1)
	for i, r := range requests {
		live := r
		live.Policy = "none-live"
		most := schedule(t, "vanilla", live).SlotPeak
		for _, policy := range policies.Names() {
			for _, percent := range []graph.Bytes{100, 85, 60, 40} {
				r.Policy, r.Budget = policy, most*percent/100
				what := fmt.Sprintf("request %d (%s), %s at %d %%", i, r.Jobs[0].Name, policy, percent)
				result, err := attempt(t, what, r)
				if err != nil {
					continue
				}
				ratio, eor := withinLimits(t, what, r, result.Jobs[0].Plan, result.Jobs[0].Layout)
				plans++
				if closest = min(closest, ratio); eor > 1.01 {
					slower++
				}
			}
		}
	}
	t.Logf("%d plans, %d lose time; the closest is %.3f times its bound", plans, slower, closest)
	if plans < long.Or(20, 200) || slower < long.Or(10, 50) {
		t.Errorf("%d plans, %d of which lose time", plans, slower)
	}
}

// inWhole reports whether a plan executes every op in whole at first.
func inWhole(g *graph.Graph, p *plan.Plan) bool {
	ran := make([]bool, len(g.Ops))
	for _, step := range p.Steps {
		if step.Want != 0 && !ran[step.Op] {
			return false
		}
		ran[step.Op] = true
	}
	return true
}

// No plan at all is below the bound at its own time.
func TestRandomPlansWithinLimits(t *testing.T) {
	again := 0
	for seed := range seeds(1500) {
		rng := rand.New(rand.NewPCG(seed, 73))
		r := random(rng)
		r.Jobs = r.Jobs[:1]
		g := r.Jobs[0].Graph
		scratch := make([]graph.Bytes, len(g.Ops))
		for op := range scratch {
			scratch[op] = r.Jobs[0].Variants[op][0].Scratch
		}
		p := randtest.New(rng, g, scratch)
		if !inWhole(g, p) {
			continue
		}
		l, err := compile.Place(g, p, align)
		if err != nil {
			t.Fatal(err)
		}
		withinLimits(t, fmt.Sprintf("seed %d", seed), r, p, l)
		if slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Want != 0 }) {
			again++
		}
	}
	if t.Logf("%d plans recompute", again); again < int(seeds(100)) {
		t.Errorf("%d plans recompute", again)
	}
}

// TestLimitsOfNetworks compares the bounds of five networks, in bytes, with those that another program worked out. That
// one counts a vanilla iteration without its wait for inputs, up to a hundredth, and no part of an op's time per
// output.
func TestLimitsOfNetworks(t *testing.T) {
	for network, want := range map[string][4]float64{
		"vgg16":       {3013e6, 2290e6, 1685e6, 1644e6},
		"inceptionv3": {1682e6, 1325e6, 830e6, 354e6},
		"inceptionv4": {2906e6, 2233e6, 1279e6, 354e6},
		"resnet50":    {1702e6, 1362e6, 969e6, 390e6},
		"densenet121": {2654e6, 2325e6, 1849e6, 1072e6},
	} {
		r := jobtest.Network(t, network, 16)
		p := &plan.Plan{}
		for _, op := range draft.EarlyUpdates(r.Jobs[0].Graph) {
			p.Steps = append(p.Steps, plan.Step{Op: op})
		}
		l, err := draft.NewLimits(&r, 0, p, scheduler.Watch{})
		if err != nil {
			t.Fatal(err)
		}
		for i, eps := range []float64{0, 0.02, 0.05, 0.1} {
			got, err := l.Peak(eps)
			if err != nil {
				t.Fatal(err)
			}
			if ratio := float64(got) / want[i]; ratio < 0.97 || ratio > 1.005 {
				t.Errorf("%s, %v times longer: %d bytes, %.3f of what was worked out before", network, eps, got, ratio)
			}
		}
	}
}
