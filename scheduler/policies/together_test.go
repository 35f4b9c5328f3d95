package policies_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler"
)

// sharing returns a request for two to four jobs that share memory, some of them copies, in pages of random size.
func sharing(rng *rand.Rand) scheduler.Request {
	r := random(rng)
	for len(r.Jobs) < 2 {
		r = random(rng)
	}
	if rng.IntN(2) == 0 {
		copied := r.Jobs[0]
		copied.Name = "copy"
		r.Jobs = slices.Insert(r.Jobs, 1, copied)
	}
	r.Together = true
	if rng.IntN(2) == 0 {
		r.Page = align << rng.IntN(5)
	}
	return r
}

// mustHoldTogether proves a result for jobs that share memory: every plan holds, a base is what the program needs over
// the boundary by compile.Divide, and the jobs need the bases and the largest rest, which are within the budget.
func mustHoldTogether(t testing.TB, what string, r scheduler.Request, result scheduler.Result) {
	t.Helper()
	page := max(r.Page, r.Align)
	var bases, rest graph.Bytes
	for i, s := range result.Jobs {
		g := r.Jobs[i].Graph
		if err := proof.Validate(g, s.Plan); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, s.Plan.Text(g))
		}
		c := compile.Compile(g, s.Plan, s.Layout, compile.Options{})
		if err := proof.Check(c); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, s.Plan.Text(g))
		}
		d := compile.Divide(c, page, 16*align)
		if base := graph.Bytes(d.Base.Count()) * page; base != s.Base {
			t.Fatalf("%s: job %d has a base of %v, and its program holds %v between iterations\n%s", what, i, s.Base,
				base, s.Plan.Text(g))
		}
		pages := (s.Layout.Arena + page - 1) / page
		if rests := program.RestsInFlight(c, &c.Body, d.Body); graph.Bytes(max(d.Peak(), rests[0])) > pages {
			t.Fatalf("%s: job %d needs %d pages, and %d with copies in flight, of %d", what, i, d.Peak(), rests[0],
				pages)
		}
		if whole := (scheduler.Share{Out: scheduler.Whole, In: scheduler.Whole}); s.Share != whole {
			t.Fatalf("%s: job %d has the share %+v of the link", what, i, s.Share)
		}
		bases, rest = bases+s.Base, max(rest, pages*page-s.Base)
	}
	if result.Least != bases+rest || r.Budget > 0 && result.Least > r.Budget {
		t.Fatalf("%s: bases of %v and a rest of %v, within %v; the result has %v", what, bases, rest, r.Budget,
			result.Least)
	}
}

// Jobs that share memory get plans that hold within budgets from the largest working set to what they need without a
// plan. Equal requests have equal results, and copies have equal plans.
func TestTogether(t *testing.T) {
	var planned, refused, lower int
	for seed := range seeds(150) {
		rng := rand.New(rand.NewPCG(seed, 171))
		r := sharing(rng)
		live := r
		live.Policy = "none-live"
		plain := schedule(t, fmt.Sprintf("seed %d", seed), live)
		mustHoldTogether(t, fmt.Sprintf("seed %d none-live", seed), live, plain)
		low, _ := r.WorkingSets()
		for _, percent := range []graph.Bytes{10, 40, 70, 100} {
			r.Budget = low + (plain.Least-low)*percent/100
			what := fmt.Sprintf("seed %d at %d%%", seed, percent)
			result, err := attempt(t, what, r)
			var over *scheduler.OverBudgetError
			switch {
			case err == nil:
				planned++
				mustHoldTogether(t, what, r, result)
				if again := schedule(t, what, r); !cmp.Equal(result, again) {
					t.Fatalf("%s: equal requests, other results:\n%s", what, cmp.Diff(result, again))
				}
				if result.Jobs[0].Plan.Job != r.Jobs[0].Name {
					t.Fatalf("%s: the first plan is of job %s", what, result.Jobs[0].Plan.Job)
				}
				if r.Jobs[1].Name == "copy" && !slices.Equal(result.Jobs[0].Plan.Moves, result.Jobs[1].Plan.Moves) {
					t.Fatalf("%s: copies have other plans", what)
				}
				if bases(&result) < bases(&plain) {
					lower++
				}
			case !errors.As(err, &over) || over.Budget != r.Budget || over.Need <= r.Budget:
				t.Fatalf("%s: budget %v, got %v", what, r.Budget, err)
			case percent == 100:
				t.Fatalf("%s: the plain plans fit, but: %v", what, err)
			default:
				refused++
			}
		}
		r.Budget, r.Lowest = 0, true
		mustHoldTogether(t, fmt.Sprintf("seed %d lowest", seed), r, schedule(t, fmt.Sprintf("seed %d lowest", seed), r))
	}
	t.Logf("%d plans, %d with lower bases than without a plan, %d refusals", planned, lower, refused)
	if lower < planned/8 || planned < refused {
		t.Errorf("%d plans, %d with lower bases than without a plan, %d refusals", planned, lower, refused)
	}
}

func bases(result *scheduler.Result) (sum graph.Bytes) {
	for i := range result.Jobs {
		sum += result.Jobs[i].Base
	}
	return sum
}

// Jobs that share memory and host memory keep to both budgets.
func TestTogetherOnHost(t *testing.T) {
	planned := 0
	for seed := range seeds(40) {
		r := sharing(rand.New(rand.NewPCG(seed, 172)))
		what := fmt.Sprintf("seed %d", seed)
		live := r
		live.Policy = "none-live"
		plain := schedule(t, what, live)
		low, _ := r.WorkingSets()
		r.Budget = low + (plain.Least-low)*7/10
		free, err := attempt(t, what, r)
		if err != nil {
			continue
		}
		r.HostBudget = plain.Host + (free.Host-plain.Host)*9/10
		result, err := attempt(t, what, r)
		switch {
		case err == nil && result.Host > r.HostBudget:
			t.Fatalf("%s: %v on the host, of %v", what, result.Host, r.HostBudget)
		case err == nil:
			planned++
			mustHoldTogether(t, what, r, result)
		case !errors.Is(err, scheduler.ErrNoPlan):
			t.Fatal(what, err)
		}
	}
	if planned < int(seeds(40))/4 {
		t.Errorf("%d plans", planned)
	}
}
