package policies_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/jobtest"
	"tensile/scheduler/policies"
	"tensile/scheduler/policies/tensile"
)

// hostOf is what the jobs of a result have on the host, as their compiled programs say.
func hostOf(r scheduler.Request, result scheduler.Result) (sum graph.Bytes) {
	for i, s := range result.Jobs {
		sum += compile.Compile(r.Jobs[i].Graph, s.Plan, s.Layout, compile.Options{}).Host + r.Jobs[i].OnHost
	}
	return sum
}

// Under any budget of host memory plans hold and keep to it, by what their programs take of the host.
// No limit and one that is never reached give the same plans. Where there is no plan for want of host memory the error
// says with how much there is one.
func TestHostBudget(t *testing.T) {
	tighter, refused, fewer := 0, 0, 0
	for _, policy := range []string{"none-all", "none-live", "tensile", "tensile-paper"} { // TestEveryPolicy has all
		for seed := range seeds(60) {
			rng := rand.New(rand.NewPCG(seed, 31))
			r := jobtest.New(rng, 1+int(seed%3))
			r.Policy, r.Options.Own = policy, tensile.Options{NoRecompute: seed%3 == 0}
			var home graph.Bytes
			for i := range r.Jobs {
				r.Jobs[i].OnHost = graph.Bytes(rng.IntN(3) * 10_000)
				home += scheduler.HomeOf(r.Jobs[i])
			}
			what := fmt.Sprintf("%s, seed %d", policy, seed)
			r.Lowest = seed%4 == 0
			if !r.Lowest {
				r.Budget = schedule(t, what, r).Arena * graph.Bytes(50+rng.IntN(40)) / 100
			}
			free, err := attempt(t, what, r)
			if err != nil {
				continue // the device is too small
			}
			if free.Host != hostOf(r, free) || free.Host < home {
				t.Fatalf("%s: %s on the host, programs take %s, %s live there", what, free.Host, hostOf(r, free), home)
			}
			r.HostBudget = 1 << 40
			if ample := schedule(t, what, r); !cmp.Equal(free, ample) {
				t.Fatalf("%s: a limit that is never reached changes plans:\n%s", what, cmp.Diff(free, ample))
			}
			for _, percent := range []graph.Bytes{-1, 0, 30, 60, 90, 100} {
				r.HostBudget = home + (free.Host-home)*percent/100
				if percent < 0 {
					r.HostBudget = home - 1
				}
				what := fmt.Sprintf("%s, %s of host memory for %s", what, r.HostBudget, free.Host)
				result, err := attempt(t, what, r)
				var over *scheduler.OverHostError
				switch {
				case err == nil && percent >= 0:
					mustHold(t, what, r, result)
					if host := hostOf(r, result); host != result.Host || host > r.HostBudget {
						t.Fatalf("%s: programs take %s, the result says %s", what, host, result.Host)
					}
					if result.Host < free.Host {
						tighter++
					}
					if again := schedule(t, what, r); !cmp.Equal(result, again) {
						t.Fatalf("%s: equal requests, other results:\n%s", what, cmp.Diff(result, again))
					}
				case !errors.As(err, &over) || !errors.Is(err, scheduler.ErrNoPlan) || over.Budget != r.HostBudget ||
					over.Need <= r.HostBudget || percent == 100:
					t.Fatalf("%s: %v", what, err)
				case percent < 0:
					if over.Need != home {
						t.Fatalf("%s: %v, want %s", what, err, home)
					}
					fewer++
				default:
					refused++
					r.HostBudget = over.Need
					mustHold(t, what, r, schedule(t, what, r))
				}
			}
		}
	}
	t.Logf("%d plans that take less of the host, %d times none for want of it, %d times what lives there is too much",
		tighter, refused, fewer)
	if tighter < int(seeds(60)) || refused < int(seeds(60))/10 || fewer == 0 {
		t.Error("too few of a kind")
	}
}

// With less host memory a network is swapped less and recomputed more, within the same budget of the device.
func TestLessHostRecomputesMore(t *testing.T) {
	r := jobtest.Network(t, "resnet50", 16)
	r.Budget = schedule(t, "resnet50", r).Arena * 45 / 100
	home := scheduler.HomeOf(r.Jobs[0])
	free := schedule(t, "resnet50", r)
	swapped, again := graph.Bytes(0), 0
	for i, percent := range []graph.Bytes{100, 60, 30, 10} {
		r.HostBudget = home + (free.Host-home)*percent/100
		result, err := attempt(t, "resnet50", r)
		if err != nil {
			t.Fatal(err)
		}
		steps := 0
		for _, s := range result.Jobs[0].Plan.Steps {
			if s.Want != 0 {
				steps++
			}
		}
		spilled := result.Host - home
		t.Logf("%s of host memory beside what lives there: %s used, %d steps are repeated", r.HostBudget-home,
			spilled, steps)
		if i > 0 && (spilled >= swapped || steps < again) {
			t.Errorf("with %d %% of the host memory %s is swapped and %d steps are repeated, with more %s and %d",
				percent, spilled, steps, swapped, again)
		}
		swapped, again = spilled, steps
	}
}

// A policy that knows nothing of a budget of host memory is held to it all the same.
func TestHostBudgetOfOtherPolicies(t *testing.T) {
	r := jobtest.Network(t, "lenet", 32)
	r.Policy, r.Lowest = "tensile", true
	free := schedule(t, "lenet", r)
	careless := func(s *draft.Session) (scheduler.Result, error) {
		again := *free.Jobs[0].Plan
		again.Policy = s.Request.Policy
		return s.Place([]*plan.Plan{&again})
	}
	table := policies.Table{{Name: "careless", Policy: careless}}
	r.Policy, r.HostBudget = "careless", free.Host-1
	var over *scheduler.OverHostError
	if _, err := table.Schedule(r, scheduler.Watch{}); !errors.As(err, &over) || over.Need != free.Host {
		t.Errorf("%v, want that %s are needed", err, free.Host)
	}
	r.HostBudget = free.Host
	if _, err := table.Schedule(r, scheduler.Watch{}); err != nil {
		t.Error(err)
	}
}
