package policies_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/peak"
	"tensile/plan/compile"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/policies"
	"tensile/scheduler/policies/tensile"
)

const align = 64

// random returns a request of one to three jobs with random graphs, latencies, links, weights and max swap rates,
// without a budget.
func random(rng *rand.Rand) scheduler.Request {
	link := func() cost.Link {
		return cost.Link{Rate: cost.BytesPerSecond(1e6 * (1 + rng.Float64()*200)),
			Latency: time.Duration(rng.IntN(3000))}
	}
	r := scheduler.Request{Policy: "tensile", Out: link(), In: link(), Align: align}
	for i := range 1 + rng.IntN(3) {
		g := graphtest.New(rng, graphtest.Options{Passes: i == 1})
		j := scheduler.Job{Name: fmt.Sprintf("job%d", i), Epoch: int64(i), Graph: g}
		for range g.Ops {
			j.Latency = append(j.Latency, time.Duration(rng.IntN(10000)))
			scratch := max(0, 4*graph.Bytes(rng.IntN(64)-32))
			j.Variants = append(j.Variants, []scheduler.Variant{{Scratch: scratch}})
		}
		r.Jobs = append(r.Jobs, j)
	}
	r.Options.Own = tensile.Options{KeepOrder: rng.IntN(4) == 0, NoSwap: rng.IntN(4) == 0,
		NoRecompute: rng.IntN(4) == 0,
		NoRelax:     rng.IntN(4) == 0}
	for i := range r.Jobs {
		if rng.IntN(2) == 0 {
			r.Jobs[i].Weight = rng.IntN(scheduler.MaxWeight + 1)
		}
		if rng.IntN(4) == 0 {
			r.Jobs[i].MaxSwapRate = rng.Float64()
		}
	}
	return r
}

// seeds returns how many seeds a test tries that tries n at full length.
func seeds(n uint64) uint64 { return long.Rounds(max(n/12, 4), n) }

// attempt schedules and names the request if Schedule finds a mistake of its own.
func attempt(t testing.TB, what string, r scheduler.Request) (scheduler.Result, error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("%s: %v", what, p)
		}
	}()
	return policies.Schedule(r, nil)
}

func schedule(t testing.TB, what string, r scheduler.Request) scheduler.Result {
	t.Helper()
	result, err := attempt(t, what, r)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return result
}

// mustHold proves a result: every plan is valid, its program passes Check, peaks, arenas and budget are in order, the
// link is divided, and no job swaps more than it may.
func mustHold(t testing.TB, what string, r scheduler.Request, result scheduler.Result) {
	t.Helper()
	var peaks, arenas graph.Bytes
	var whole scheduler.Share
	for i, s := range result.Jobs {
		g := r.Jobs[i].Graph
		if err := proof.Validate(g, s.Plan); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, s.Plan.Text(g))
		}
		c := compile.Compile(g, s.Plan, s.Layout, compile.Options{Poison: true})
		if err := proof.Check(c); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, s.Plan.Text(g))
		}
		f := peak.Of(g, s.Plan)
		if diff := cmp.Diff(f, s.Footprint); diff != "" {
			t.Fatalf("%s: footprint (-peak.Of +result):\n%s", what, diff)
		}
		if f.Peak > s.Layout.Arena || s.Layout.Load > s.Layout.Arena {
			t.Fatalf("%s: peak %v, load %v, arena %v", what, f.Peak, s.Layout.Load, s.Layout.Arena)
		}
		if s.Plan.Job != r.Jobs[i].Name || s.Plan.Epoch != r.Jobs[i].Epoch || s.Plan.Policy != r.Policy {
			t.Fatalf("%s: plan of job %s, epoch %d, policy %s", what, s.Plan.Job, s.Plan.Epoch, s.Plan.Policy)
		}
		if swapped, swappable := swappedOf(g, s.Plan), swappableOf(g, s.Plan); r.Jobs[i].MaxSwapRate > 0 &&
			float64(swapped) > r.Jobs[i].MaxSwapRate*float64(swappable) {
			t.Fatalf("%s: %d of %d storages are swapped at a rate of %v\n%s", what, swapped, swappable,
				r.Jobs[i].MaxSwapRate,
				s.Plan.Text(g))
		}
		if s.Share.Out < 1 || s.Share.In < 1 || s.Out != r.Out.Share(s.Share.Out, scheduler.Whole) ||
			s.In != r.In.Share(s.Share.In, scheduler.Whole) {
			t.Fatalf("%s: share %+v, links %+v and %+v", what, s.Share, s.Out, s.In)
		}
		whole = scheduler.Share{Out: whole.Out + s.Share.Out, In: whole.In + s.Share.In}
		peaks, arenas = peaks+f.Peak, arenas+s.Layout.Arena
	}
	if whole.Out > scheduler.Whole || whole.In > scheduler.Whole {
		t.Fatalf("%s: the shares add up to %+v", what, whole)
	}
	if peaks != result.SlotPeak || arenas != result.Arena || r.Budget > 0 && arenas > r.Budget {
		t.Fatalf("%s: peaks %v, arenas %v, budget %v; result has %v and %v", what, peaks, arenas, r.Budget,
			result.SlotPeak,
			result.Arena)
	}
}

// TestRandomRequests schedules random jobs under budgets from their working sets to what they need without a plan.
func TestRandomRequests(t *testing.T) {
	planned, refused := 0, 0
	for seed := range seeds(300) {
		rng := rand.New(rand.NewPCG(seed, 9))
		r := random(rng)
		var workingSets graph.Bytes
		for _, j := range r.Jobs {
			workingSets += scheduler.WorkingSetOf(j, align).Bytes
		}
		live := r
		live.Policy = "none-live"
		plain := schedule(t, fmt.Sprintf("seed %d", seed), live)
		mustHold(t, fmt.Sprintf("seed %d none-live", seed), live, plain)
		for _, percent := range []graph.Bytes{-10, 0, 20, 40, 60, 80, 100} {
			r.Budget = workingSets + (plain.Arena-workingSets)*percent/100
			if percent < 0 {
				r.Budget = workingSets - 1
			}
			what := fmt.Sprintf("seed %d at %d%%", seed, percent)
			result, err := attempt(t, what, r)
			var over *scheduler.OverBudgetError
			switch {
			case err == nil && percent >= 0:
				planned++
				mustHold(t, what, r, result)
			case !errors.As(err, &over) || !errors.Is(err, scheduler.ErrNoPlan) || over.Budget != r.Budget ||
				over.Need <= r.Budget:
				t.Fatalf("%s: budget %v, got %v", what, r.Budget, err)
			case percent == 100:
				t.Fatalf("%s: the plain plans fit, but: %v", what, err)
			default:
				refused++
			}
		}
	}
	t.Logf("%d plans, %d refusals", planned, refused)
	if planned < 2*refused {
		t.Errorf("%d plans, %d refusals", planned, refused)
	}
}

// TestAmpleBudget shows that a budget which the plain plans fit changes nothing.
func TestAmpleBudget(t *testing.T) {
	for seed := range seeds(200) {
		r := random(rand.New(rand.NewPCG(seed, 10)))
		live := r
		live.Policy = "none-live"
		want := schedule(t, fmt.Sprintf("seed %d", seed), live)
		for _, spare := range []graph.Bytes{0, 1, 1 << 20} {
			r.Budget = want.Arena + spare
			got := schedule(t, fmt.Sprintf("seed %d", seed), r)
			for i := range got.Jobs {
				a, b := want.Jobs[i].Plan, got.Jobs[i].Plan
				if !cmp.Equal(a.Steps, b.Steps) || !cmp.Equal(a.Moves, b.Moves) || !cmp.Equal(a.Entry, b.Entry) ||
					len(got.Jobs[i].Decisions) > 0 {
					t.Fatalf("seed %d: %v to spare, %v decided (-none-live +tensile):\n%s", seed, spare,
						got.Jobs[i].Decisions,
						cmp.Diff(a.Text(r.Jobs[i].Graph), b.Text(r.Jobs[i].Graph)))
				}
			}
		}
	}
}

// TestEqualRequests shows that equal requests give equal results, to the byte.
func TestEqualRequests(t *testing.T) {
	for seed := range seeds(100) {
		var texts [2][]byte
		for i := range texts {
			r := random(rand.New(rand.NewPCG(seed, 11)))
			live := r
			live.Policy = "none-live"
			r.Budget = schedule(t, fmt.Sprintf("seed %d", seed), live).Arena * 3 / 4
			result, err := attempt(t, fmt.Sprintf("seed %d", seed), r)
			text, marshalErr := json.Marshal(result)
			if marshalErr != nil {
				t.Fatal(marshalErr)
			}
			texts[i] = fmt.Appendf(text, "%v", err)
		}
		if !bytes.Equal(texts[0], texts[1]) {
			t.Fatalf("seed %d: two results\n%s\n%s", seed, texts[0], texts[1])
		}
	}
}

// TestNothingTakesTime plans ops that take no time, on a link that takes none.
func TestNothingTakesTime(t *testing.T) {
	swapped := 0
	for seed := range seeds(60) {
		r := random(rand.New(rand.NewPCG(seed, 13)))
		r.Out, r.In, r.Options.Own = cost.Link{}, cost.Link{}, nil
		for i := range r.Jobs {
			clear(r.Jobs[i].Latency)
		}
		live := r
		live.Policy = "none-live"
		r.Budget = schedule(t, fmt.Sprintf("seed %d", seed), live).Arena * 3 / 4
		result, err := attempt(t, fmt.Sprintf("seed %d", seed), r)
		if err != nil {
			continue // refused
		}
		mustHold(t, fmt.Sprintf("seed %d", seed), r, result)
		for i, j := range result.Jobs {
			swapped += swappedOf(r.Jobs[i].Graph, j.Plan)
		}
	}
	if swapped == 0 {
		t.Error("nothing is swapped")
	}
}
