package policies_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/policies"
	"tensile/scheduler/policies/tensile"
	"tensile/scheduler/rivals/paper"
)

// searched returns requests that have to search, from a seed: within a budget, as low as it goes, and by the paper's
// method.
func searched(t *testing.T, seed uint64) []scheduler.Request {
	t.Helper()
	r := random(rand.New(rand.NewPCG(seed, 12)))
	if seed%2 == 0 { // copies, which share footprints and layouts
		for i := range 3 {
			twin := r.Jobs[0]
			twin.Name = fmt.Sprintf("twin%d", i)
			r.Jobs = append([]scheduler.Job{twin}, r.Jobs...)
		}
	}
	live := r
	live.Policy = "none-live"
	plain := schedule(t, fmt.Sprintf("seed %d", seed), live)
	within, lowest := r, r
	within.Budget, lowest.Lowest, lowest.Explain = plain.Arena*graph.Bytes(60+seed%30)/100, true, true
	paper := within
	paper.Policy = "tensile-paper"
	paper.Options.Own = paperOptions(r)
	return []scheduler.Request{live, within, lowest, paper}
}

// paperOptions are those of the paper's policy that say the same as a request's.
func paperOptions(r scheduler.Request) paper.Options {
	o := scheduler.OptionsOf[tensile.Options](&r)
	return paper.Options{NoSwap: o.NoSwap, NoRecompute: o.NoRecompute}
}

// A stop function that says true at any question ends Schedule then and there: not a step more is counted, nothing
// more is asked, and there is no plan.
func TestStop(t *testing.T) {
	for seed := range seeds(15) {
		for k, r := range searched(t, seed) {
			what := fmt.Sprintf("seed %d, request %d", seed, k)
			questions := 0
			all, _ := policies.All().Schedule(r, scheduler.Watch{Every: 64,
				Stop: func(int64) bool { questions++; return false }})
			steps := all.Work
			if questions < int(steps/64/64) {
				t.Errorf("%s: asked %d times in %d steps", what, questions, steps)
			}
			for at := 1; at <= questions; at += 1 + questions/12 {
				asked, then := 0, int64(0)
				got, err := policies.All().Schedule(r, scheduler.Watch{Every: 64, Stop: func(steps int64) bool {
					asked++
					then = steps
					return asked >= at
				}})
				steps := got.Work
				if !errors.Is(err, scheduler.ErrStopped) || asked != at || steps != then || len(got.Jobs) > 0 {
					t.Fatalf("%s, stopped at question %d of %d: asked %d times, %d steps more, %d jobs, %v", what, at,
						questions,
						asked, steps-then, len(got.Jobs), err)
				}
			}
		}
	}
}

// Within any limit of work there is a plan that holds or a clear refusal, twice the same; and a limit that is not
// reached changes nothing.
func TestWorkLimit(t *testing.T) {
	limited, refused := 0, 0
	for seed := range seeds(15) {
		for k, r := range searched(t, seed) {
			what := fmt.Sprintf("seed %d, request %d", seed, k)
			free, freeErr := attempt(t, what, r)
			work := max(free.Work, 20_000)
			for part := range int64(8) {
				r.Options.Work = 1 + work*part/6
				got, err := attempt(t, what, r)
				again, errAgain := attempt(t, what, r)
				if a, b := text(t, got, err), text(t, again, errAgain); a != b {
					t.Fatalf("%s, limit %d: two results\n%s\n%s", what, r.Options.Work, a, b)
				}
				var limit *scheduler.WorkLimitError
				switch {
				case errors.As(err, &limit):
					refused++
					if r.Budget == 0 || limit.Work != r.Options.Work || !errors.Is(err, scheduler.ErrNoPlan) {
						t.Fatalf("%s, limit %d, budget %d: %v", what, r.Options.Work, r.Budget, err)
					}
					continue
				case err != nil && freeErr == nil:
					t.Fatalf("%s, limit %d: %v", what, r.Options.Work, err)
				case err != nil:
					continue
				}
				mustHold(t, fmt.Sprintf("%s, limit %d", what, r.Options.Work), r, got)
				if got.Limited {
					limited++
				}
				if got.Limited && got.Work < r.Options.Work {
					t.Errorf("%s, limit %d: limited after %d steps", what, r.Options.Work, got.Work)
				}
				if r.Options.Work > free.Work && freeErr == nil && text(t, got, err) != text(t, free, freeErr) {
					t.Errorf("%s: a limit of %d, not reached in %d steps, changes the result", what, r.Options.Work,
						free.Work)
				}
			}
		}
	}
	t.Logf("%d plans of searches that were cut short, %d refusals", limited, refused)
	if limited == 0 || refused == 0 {
		t.Errorf("%d plans of searches that were cut short, %d refusals", limited, refused)
	}
	r := random(rand.New(rand.NewPCG(1, 12)))
	r.Options.Work = -1
	if _, err := policies.Schedule(r, nil); err == nil {
		t.Error("a negative limit is accepted")
	}
}

func text(t *testing.T, r scheduler.Result, err error) string {
	t.Helper()
	text, problem := json.Marshal(r)
	if problem != nil {
		t.Fatal(problem)
	}
	return fmt.Sprintf("%s %v", text, err)
}

// Copies of a job that are planned alike share a layout, and it is the one that the job has alone.
func TestTwins(t *testing.T) {
	for seed := range seeds(20) {
		live := searched(t, 2*seed)[0]
		all := schedule(t, "copies", live)
		alone := live
		alone.Jobs = live.Jobs[:1]
		one := schedule(t, "alone", alone)
		for _, j := range all.Jobs[:4] {
			if j.Layout != all.Jobs[0].Layout {
				t.Errorf("seed %d: a copy was packed again", 2*seed)
			}
			if diff := cmp.Diff(one.Jobs[0].Layout, j.Layout); diff != "" {
				t.Errorf("seed %d: layout (-alone +copy):\n%s", 2*seed, diff)
			}
		}
	}
}
