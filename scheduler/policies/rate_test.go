package policies_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/policies"
	"tensile/scheduler/policies/tensile"
)

// swappedOf counts the storages that a plan fetches from the host, once more than they arrive there as inputs.
func swappedOf(g *graph.Graph, p *plan.Plan) int {
	fetched := make([]int, len(g.Storages))
	for _, m := range p.Moves {
		if m.Kind == plan.In {
			fetched[m.Storage]++
		}
	}
	n := 0
	for s, times := range fetched {
		if g.Storages[s].Role == graph.Input {
			times--
		}
		if times > 0 {
			n++
		}
	}
	return n
}

// swappableOf counts the storages that are left alone for a step or more between two accesses, by the first
// executions of the plan, the way round the iteration included for those that persist.
func swappableOf(g *graph.Graph, p *plan.Plan) int {
	accesses := make([][]int, len(g.Storages))
	slot := 0
	for _, step := range p.Steps {
		if step.Want != 0 {
			continue
		}
		for _, s := range g.Touches(step.Op) {
			accesses[s] = append(accesses[s], slot)
		}
		slot++
	}
	n := 0
	for s, slots := range accesses {
		if len(slots) > 0 && g.Storages[s].Role.Persistent() {
			slots = append(slots, slots[0]+slot)
		}
		for i := 1; i < len(slots); i++ {
			if slots[i] > slots[i-1]+1 {
				n++
				break
			}
		}
	}
	return n
}

// TestMaxSwapRate lowers the rate of one job at a time, everything else as it was.
func TestMaxSwapRate(t *testing.T) {
	rates := []float64{0.5, 0.1, 1e-9}
	var sums [3]int
	unlimited, held := 0, 0
	for seed := range seeds(120) {
		rng := rand.New(rand.NewPCG(seed, 13))
		r := equals(rng, 1+rng.IntN(2))
		r.Jobs[0].OnHost = 1 // it is not equal to the other one, with a limit or without
		r.Budget = liveArena(t, r) * 85 / 100
		what := fmt.Sprintf("seed %d", seed)
		free, err := attempt(t, what, r)
		if err != nil {
			continue
		}
		var all [3]scheduler.Result
		for k, rate := range rates {
			r.Jobs[0].MaxSwapRate = rate
			if all[k], err = attempt(t, what, r); err != nil {
				break
			}
			mustHold(t, fmt.Sprintf("%s rate %v", what, rate), r, all[k])
		}
		if err != nil {
			continue
		}
		held++
		g := r.Jobs[0].Graph
		unlimited += swappedOf(g, free.Jobs[0].Plan)
		for k := range all {
			sums[k] += swappedOf(g, all[k].Jobs[0].Plan)
		}
		r.Jobs[0].MaxSwapRate = 1
		if got := schedule(t, what, r); got.Jobs[0].Plan.Text(g) != free.Jobs[0].Plan.Text(g) {
			t.Fatalf("%s: a rate of 1 gives another plan than no limit", what)
		}
	}
	t.Logf("%d requests: %d storages swapped without a limit, %v at %v", held, unlimited, sums, rates)
	if sums[2] != 0 || long.On() && (held < 30 || sums[0] >= unlimited || sums[1] >= sums[0]/2) {
		t.Errorf("%d requests: %d storages swapped without a limit, %v at %v", held, unlimited, sums, rates)
	}
}

// TestMaxSwapRateTooLow shows that an error for lack of swaps names the rate, and an error for lack of memory does not.
func TestMaxSwapRateTooLow(t *testing.T) {
	named := 0
	for seed := range seeds(40) {
		r := equals(rand.New(rand.NewPCG(seed, 14)), 2)
		r.Options.Own = tensile.Options{NoRecompute: true}
		r.Budget = liveArena(t, r) * 80 / 100
		what := fmt.Sprintf("seed %d", seed)
		if _, err := attempt(t, what, r); err != nil {
			continue
		}
		r.Jobs[1].MaxSwapRate = 1e-9
		r.Jobs[0].MaxSwapRate = 1e-9
		_, err := attempt(t, what, r)
		over, ok := errors.AsType[*scheduler.OverBudgetError](err)
		if !ok {
			continue // earlier updates are enough
		}
		if !strings.Contains(over.Reason, "raise the max swap rate (1e-09 of job 0, 1e-09 of job 1)") {
			t.Fatalf("%s: %v", what, err)
		}
		named++
		r.Budget = 1
		if _, err := attempt(t, what, r); err == nil || strings.Contains(err.Error(), "swap rate") {
			t.Fatalf("%s: a byte of memory: %v", what, err)
		}
	}
	if named < int(seeds(40))/4 {
		t.Errorf("only %d errors name the rate", named)
	}
}

func TestJobSettings(t *testing.T) {
	for _, test := range []struct {
		weight int
		rate   float64
		want   string
	}{
		{-1, 0, "job 0: weight -1: give 1 to 1000, or 0 for 1"},
		{1001, 0, "job 0: weight 1001: give 1 to 1000, or 0 for 1"},
		{0, -0.1, "job 0: max swap rate -0.1: give a share of its storages up to 1, or 0 for no limit"},
		{0, 1.5, "job 0: max swap rate 1.5: give a share of its storages up to 1, or 0 for no limit"},
		{0, math.NaN(), "job 0: max swap rate NaN: give a share of its storages up to 1, or 0 for no limit"},
	} {
		for _, policy := range policies.Names() {
			r := equals(rand.New(rand.NewPCG(1, 15)), 1)
			r.Policy, r.Jobs[0].Weight, r.Jobs[0].MaxSwapRate = policy, test.weight, test.rate
			if _, err := policies.Schedule(r, nil); err == nil || err.Error() != test.want {
				t.Errorf("%s: weight %d, rate %v: %v; want %s", policy, test.weight, test.rate, err, test.want)
			}
		}
	}
}
