package autoswap

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/plan/compile"

	compare "github.com/google/go-cmp/cmp"

	"tensile/graph"

	_ "tensile/internal/long"
	"tensile/plan"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/jobtest"
)

// the flag -long

func planned(t *testing.T, what string, r scheduler.Request) (scheduler.Result, error) {
	t.Helper()
	result, err := draft.Open(r, scheduler.Watch{}, Plan)
	if err != nil {
		return result, err
	}
	for i, s := range result.Jobs {
		g := r.Jobs[i].Graph
		if _, err := compile.Prove(g, s.Plan, s.Layout, compile.Options{Poison: true}); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, s.Plan.Text(g))
		}
	}
	if r.Budget > 0 && result.Least > r.Budget {
		t.Fatalf("%s: %v with a budget of %v", what, result.Least, r.Budget)
	}
	return result, nil
}

// TestRandomJobs plans random jobs by every score: at no overhead, as low as it goes, and within budgets. Plans are
// proven, keep the budget, and equal requests have equal plans.
func TestRandomJobs(t *testing.T) {
	within, refused, swapped := 0, 0, graph.Bytes(0)
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 183))
		r := jobtest.New(rng, 1+int(seed%3))
		for i := range r.Jobs {
			r.Jobs[i].MaxSwapRate = 0
		}
		for _, score := range Scores() {
			if score == BO && seed%4 > 0 {
				continue
			}
			r.Budget, r.Lowest = 0, false
			r.Options.Own = Options{Score: score, Smallest: -1}
			what := fmt.Sprintf("seed %d, %s", seed, score)
			free, err := planned(t, what, r)
			if err != nil {
				t.Fatal(what, err)
			}
			r.Lowest = true
			lowest, err := planned(t, what+" lowest", r)
			if err != nil {
				t.Fatal(what, err)
			}
			if lowest.SlotPeak > free.SlotPeak {
				t.Fatalf("%s: %v at the lowest, %v at no overhead", what, lowest.SlotPeak, free.SlotPeak)
			}
			r.Lowest = false
			for _, share := range []graph.Bytes{20, 50, 80} {
				r.Budget = lowest.SlotPeak + (free.Arena-lowest.SlotPeak)*share/100
				if r.Budget <= 0 {
					continue
				}
				result, err := planned(t, what, r)
				if over, ok := errors.AsType[*scheduler.OverBudgetError](err); ok && over.Need > over.Budget &&
					over.Budget == r.Budget {
					refused++
					continue
				} else if err != nil {
					t.Fatalf("%s: budget %v: %v", what, r.Budget, err)
				}
				within++
				for i, s := range result.Jobs {
					swapped += s.Plan.Swapped(r.Jobs[i].Graph)
				}
				if score != BO && seed%4 > 0 {
					continue
				}
				if again, _ := planned(t, what, r); !compare.Equal(result, again) {
					t.Fatalf("%s: equal requests, other results:\n%s", what, compare.Diff(result, again))
				}
			}
		}
	}
	t.Logf("%d plans within budgets, %d refusals, %v swapped", within, refused, swapped)
	if within < 2*refused || swapped == 0 {
		t.Errorf("%d plans within budgets, %d refusals, %v swapped", within, refused, swapped)
	}
}

// TestSchedule holds schedules of random iterations to the rules of section IV-E: the load is what the swaps leave and
// within the limit, copies out are in order, copies in too, and the mixture takes no longer than any score alone.
func TestSchedule(t *testing.T) {
	late, swaps := 0, 0
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 184))
		it := random(rng)
		n := len(it.Took)
		_, high := it.Peak()
		_, least := it.Least(Options{Smallest: -1})
		limit := least + graph.Bytes(rng.Int64N(int64(high-least)+1))
		count := func(int) {}
		var shortest time.Duration
		for _, score := range append(Scores()[1:], BO) {
			if score == BO && seed%8 > 0 {
				continue
			}
			c, ok := it.Within(limit, Options{Score: score, Smallest: -1}, count)
			if !ok {
				t.Fatalf("seed %d: nothing within %d; least is %d", seed, limit, least)
			}
			load := slices.Clone(it.Load)
			for _, x := range c.Swaps {
				p := &it.Pauses[x.Pause]
				if x.Drop < p.From || x.Drop >= x.In || x.In >= p.To {
					t.Fatalf("seed %d: %+v of %+v", seed, x, *p)
				}
				for slot := x.Drop + 1; slot <= x.In; slot++ {
					load[slot%n] -= p.Bytes
				}
				swaps++
			}
			if most := slices.Max(load); most != c.Load || most > limit {
				t.Fatalf("seed %d: a load of %d, the choice says %d; limit %d", seed, most, c.Load, limit)
			}
			if c.Time < it.Length() {
				t.Fatalf("seed %d: %v, without swaps %v", seed, c.Time, it.Length())
			}
			if c.Time > it.Length() {
				late++
			}
			if score == BO && c.Time > shortest {
				t.Fatalf("seed %d: the mixture takes %v, a score alone %v", seed, c.Time, shortest)
			}
			shortest = min(c.Time, cmp.Or(shortest, c.Time))
		}
		if _, ok := it.Within(least-1, Options{Smallest: -1}, count); ok && least > 0 {
			t.Fatalf("seed %d: within less than the least load", seed)
		}
	}
	if t.Logf("%d swaps, %d choices take time", swaps, late); swaps < 1000 || late < 100 {
		t.Errorf("%d swaps, %d choices take time", swaps, late)
	}
}

// TestTime compares the predicted time of a schedule with that of the plan's program, which waits for a copy out only
// where the bytes are used again, and with the draft's.
func TestTime(t *testing.T) {
	equal, near := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 185))
		r := jobtest.New(rng, 1)
		r.Jobs[0].MaxSwapRate = 0
		_, err := draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) {
			d := s.Draft(0, draft.FirstSteps(s.GraphOrder(0)), draft.Style{})
			it, gaps := OfDraft(d)
			_, high := it.Peak()
			_, least := it.Least(Options{Smallest: -1})
			limit := least + graph.Bytes(rng.Int64N(int64(high-least)+1))
			choice, _ := it.Within(limit, Options{Score: WDOA, Smallest: -1}, s.Count)
			for _, x := range choice.Swaps {
				d.Swap(gaps[x.Pause], x.Drop, x.In)
			}
			if _, high := d.Peak(); high != choice.Load {
				t.Fatalf("seed %d: a peak of %v, the choice says %v", seed, high, choice.Load)
			}
			p := d.Plan("autoswap")
			result, err := s.Place([]*plan.Plan{p})
			if err != nil {
				return result, err
			}
			j := result.Jobs[0]
			timing := program.Time(compile.Compile(r.Jobs[0].Graph, j.Plan, j.Layout, compile.Options{}),
				program.Durations{Steps: p.Made, Out: r.Out, In: r.In})
			if drafted := d.Replay(); drafted == choice.Time {
				equal++
			}
			if timing.Iteration <= choice.Time+choice.Time/10 {
				near++
			}
			return result, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("of 300 times %d are the draft's, %d those of the program or above, within 10 %%", equal, near)
	if equal < 150 || near < 200 {
		t.Errorf("of 300 times %d are the draft's, %d those of the program or above, within 10 %%", equal, near)
	}
}
