package policies_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/plan/compile"
	"tensile/scheduler"
	"tensile/scheduler/jobtest"
	"tensile/scheduler/policies"
	"tensile/scheduler/rivals/autoswap"

	_ "tensile/scheduler/rivals"
)

// suited returns a request for a policy: without max swap rates if it refuses them, and with options by which it swaps
// small storages too.
func suited(t *testing.T, r scheduler.Request, policy string) scheduler.Request {
	t.Helper()
	r.Policy = policy
	if policy == "autoswap" {
		r.Options.Own = autoswap.Options{Smallest: -1, Score: autoswap.SWDOA} // the mixture takes long
	}
	probe := jobtest.New(rand.New(rand.NewPCG(1, 24)), 1)
	probe.Policy, probe.Jobs[0].MaxSwapRate = policy, 1
	if _, err := policies.Schedule(probe, nil); err == nil || !strings.Contains(err.Error(), "max swap rate out") {
		return r
	}
	r.Jobs = slices.Clone(r.Jobs)
	for i := range r.Jobs {
		r.Jobs[i].MaxSwapRate = 0
	}
	return r
}

// vary gives some ops of a request a second variant, of any latency and scratch.
func vary(rng *rand.Rand, r scheduler.Request) {
	for i := range r.Jobs {
		j := &r.Jobs[i]
		for op := range j.Variants {
			if first := j.Variants[op][0]; rng.IntN(3) == 0 {
				other := scheduler.Variant{Name: "other", Scratch: 4 * graph.Bytes(rng.IntN(64)),
					Latency: time.Duration(1 + rng.IntN(10000))}
				j.Variants[op] = []scheduler.Variant{first, other}
			}
		}
	}
}

// outcomes counts what came of requests.
type outcomes struct{ planned, refused, moved, stopped, hosted, gates int }

// TestEveryPolicy schedules random jobs, one to three, by each policy of the table: without a budget and within some,
// also of host memory, and where they share memory by gates. Plans hold, a refusal carries its numbers, equal requests
// have equal results, and planning can be stopped.
func TestEveryPolicy(t *testing.T) {
	for _, policy := range policies.Names() {
		t.Run(policy, func(t *testing.T) {
			var all outcomes
			for seed := range seeds(50) {
				rng := rand.New(rand.NewPCG(seed, 24))
				r := jobtest.New(rng, 1+int(seed%3))
				if seed%2 == 1 {
					vary(rng, r)
				}
				r = suited(t, r, policy)
				what := fmt.Sprintf("seed %d", seed)
				free := schedule(t, what, r)
				mustHold(t, what, r, free)
				everyBudget(t, what, r, free, &all)
				stops(t, what, r, free.Work, &all)
				byGates(t, what, r, &all)
			}
			t.Logf("%+v", all)
			if all.planned == 0 || all.gates == 0 || all.stopped < int(seeds(50)) {
				t.Errorf("%+v: too few of a kind", all)
			}
		})
	}
}

// everyBudget schedules a request within some budgets, and then of what the jobs may have on the host.
func everyBudget(t *testing.T, what string, r scheduler.Request, free scheduler.Result, all *outcomes) {
	t.Helper()
	for _, percent := range []graph.Bytes{100, 88, 60, 40} {
		r.Budget, r.HostBudget = free.Arena*percent/100, 0
		what := fmt.Sprintf("%s within %d %%", what, percent)
		result, err := attempt(t, what, r)
		again, errAgain := attempt(t, what, r)
		if !cmp.Equal(result, again) || fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Fatalf("%s: equal requests, other results: %v, %v\n%s", what, err, errAgain, cmp.Diff(result, again))
		}
		var over *scheduler.OverBudgetError
		if err != nil {
			if !errors.As(err, &over) || over.Budget != r.Budget || over.Need <= r.Budget {
				t.Fatalf("%s: budget %v, got %v", what, r.Budget, err)
			}
			all.refused++
			continue
		}
		all.planned++
		mustHold(t, what, r, result)
		for i, s := range result.Jobs {
			if swappedOf(r.Jobs[i].Graph, s.Plan) > 0 {
				all.moved++
			}
		}
		withinHost(t, what, r, result, all)
	}
}

// withinHost schedules a request again with less on the host than its plans took.
func withinHost(t *testing.T, what string, r scheduler.Request, result scheduler.Result, all *outcomes) {
	t.Helper()
	var home graph.Bytes
	for i := range r.Jobs {
		home += scheduler.HomeOf(r.Jobs[i])
	}
	if result.Host == home {
		return
	}
	r.HostBudget = (home + result.Host) / 2
	less, err := attempt(t, what, r)
	var over *scheduler.OverHostError
	switch {
	case err == nil:
		mustHold(t, what, r, less)
		if less.Host > r.HostBudget || less.Host != hostOf(r, less) {
			t.Fatalf("%s: %v on the host, of %v", what, less.Host, r.HostBudget)
		}
		all.hosted++
	case !errors.As(err, &over) || over.Budget != r.HostBudget || over.Need <= r.HostBudget:
		t.Fatalf("%s: host memory %v, got %v", what, r.HostBudget, err)
	}
}

// stops stops planning halfway.
func stops(t *testing.T, what string, r scheduler.Request, work int64, all *outcomes) {
	t.Helper()
	if work < 2 {
		t.Fatalf("%s: %d steps of work are counted", what, work)
	}
	result, err := policies.All().Schedule(r, scheduler.Watch{Every: 1,
		Stop: func(steps int64) bool { return steps >= work/2 }})
	if !errors.Is(err, scheduler.ErrStopped) || result.Jobs != nil {
		t.Fatalf("%s: %v when it was stopped halfway", what, err)
	}
	all.stopped++
}

// byGates schedules a request whose jobs share memory, within what they need then without a budget and within less.
func byGates(t *testing.T, what string, r scheduler.Request, all *outcomes) {
	t.Helper()
	r.Together = true
	free := schedule(t, what+" by gates", r)
	for _, percent := range []graph.Bytes{100, 70} {
		r.Budget = free.Least * percent / 100
		what := fmt.Sprintf("%s by gates within %d %%", what, percent)
		result, err := attempt(t, what, r)
		if over, ok := errors.AsType[*scheduler.OverBudgetError](err); ok && over.Budget == r.Budget &&
			over.Need > r.Budget {
			continue
		} else if err != nil {
			t.Fatalf("%s: budget %v, got %v", what, r.Budget, err)
		}
		if all.gates++; result.Least > r.Budget {
			t.Fatalf("%s: %v are needed within %v", what, result.Least, r.Budget)
		}
		for i, s := range result.Jobs {
			if _, err := compile.Prove(r.Jobs[i].Graph, s.Plan, s.Layout, compile.Options{}); err != nil {
				t.Fatalf("%s: %v\n%s", what, err, s.Plan.Text(r.Jobs[i].Graph))
			}
		}
	}
}
