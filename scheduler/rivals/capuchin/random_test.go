package capuchin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/jobtest"
)

// random is a request of some jobs without limits of swaps, within a part of what they need more than their working
// sets; and what they need without a plan.
func random(t *testing.T, seed uint64) scheduler.Request {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 181))
	r := jobtest.New(rng, 1+rng.IntN(3))
	for i := range r.Jobs {
		r.Jobs[i].MaxSwapRate = 0
	}
	r.Policy = "capuchin"
	r.Options.Own = Options{NoRecompute: seed%3 == 0}
	low, _ := r.WorkingSets()
	free, err := draft.Open(r, scheduler.Watch{}, LRU)
	if err != nil {
		t.Fatalf("seed %d without a budget: %v", seed, err)
	}
	r.Budget = low + (free.Arena-low)*graph.Bytes(10+rng.IntN(90))/100
	return r
}

// mustHold proves a result, and returns how many steps repeat ops and how many storages leave before their last use.
func mustHold(t *testing.T, what string, r scheduler.Request, result scheduler.Result) (again, swapped int) {
	t.Helper()
	if result.Arena > r.Budget {
		t.Fatalf("%s: %v within %v", what, result.Arena, r.Budget)
	}
	for i, s := range result.Jobs {
		g := r.Jobs[i].Graph
		if _, err := compile.Prove(g, s.Plan, s.Layout, compile.Options{Poison: true}); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, s.Plan.Text(g))
		}
		again += len(s.Plan.Steps) - len(g.Ops)
		if s.Plan.Swapped(g) > 0 {
			swapped++
		}
	}
	return again, swapped
}

// TestRandom plans random jobs within random budgets, without reports.
func TestRandom(t *testing.T) {
	planned, refused, again, swapped := 0, 0, 0, 0
	for seed := range long.Rounds(40, 200) {
		r, what := random(t, seed), fmt.Sprintf("seed %d", seed)
		result, err := draft.Open(r, scheduler.Watch{}, Plan)
		if errors.Is(err, scheduler.ErrNoPlan) {
			refused++
			continue
		} else if err != nil {
			t.Fatal(what, err)
		}
		planned++
		a, s := mustHold(t, what, r, result)
		if again, swapped = again+a, swapped+s; a > 0 && seed%3 == 0 {
			t.Fatalf("%s: %d steps repeat ops", what, a)
		}
		repeated, err := draft.Open(r, scheduler.Watch{}, Plan)
		if diff := cmp.Diff(result, repeated); err != nil || diff != "" {
			t.Fatalf("%s: equal requests have other plans: %v\n%s", what, err, diff)
		}
	}
	t.Logf("%d planned, %d refused, %d jobs swap, %d steps repeat ops", planned, refused, swapped, again)
	if planned < 4*refused || swapped < planned/2 || again == 0 || long.On() && again < 20 {
		t.Errorf("%d planned, %d refused, %d jobs swap, %d steps repeat ops", planned, refused, swapped, again)
	}
}

// TestMachineWithoutGuide compares passive mode of the machine, which knows times, with that of the replayer, which
// knows none.
func TestMachineWithoutGuide(t *testing.T) {
	same := 0
	for seed := range uint64(200) {
		r := random(t, seed)
		r.Jobs = r.Jobs[:1]
		inSession(r, func(s *draft.Session) {
			low := scheduler.WorkingSetOf(r.Jobs[0], r.Align).Bytes
			capacity := low + graph.Bytes(seed%7)*low/4
			want, err := passivePlan(s, 0, capacity)
			if err != nil {
				t.Fatal(err)
			}
			f := newFacts(s, 0, (*observation)(nil).latencies(&r.Jobs[0]))
			f.capacity = capacity
			got, err := newMachine(f, newGuide(len(f.g.Ops))).run()
			if err != nil {
				t.Fatal(err)
			}
			took(t, r, got)
			if len(want.Entry) == 0 && len(got.Entry) > 0 {
				return // the replayer gives up where the machine does not yet
			}
			same++
			if diff := cmp.Diff(want.Moves, got.Moves); diff != "" || !cmp.Equal(want.Entry, got.Entry) {
				t.Fatalf("seed %d (-replayer +machine):\n%s\n%s", seed, diff, got.Text(f.g))
			}
		})
	}
	if t.Logf("%d of 200 compared", same); same < 150 {
		t.Errorf("%d of 200 compared", same)
	}
}

// reported is the report of an iteration of a plan on a link.
func reported(g *graph.Graph, s scheduler.Scheduled, d program.Durations) *scheduler.Report {
	c := compile.Compile(g, s.Plan, s.Layout, compile.Options{})
	d.Steps = s.Plan.Made
	timing := program.Time(c, d)
	stalls := timing.Stalls(c)
	r := &scheduler.Report{Plan: s.Plan, Steps: s.Plan.Made}
	for i, cmd := range c.Body.Commands {
		one := scheduler.Copy{Kind: plan.Out, Storage: cmd.Storage, After: cmd.Slot, Start: timing.Start[i],
			End: timing.End[i]}
		switch cmd.Kind {
		case program.Out:
		case program.In:
			one.Kind = plan.In
			for slot := cmd.Slot + 1; slot < len(s.Plan.Steps); slot++ {
				if touches(g, s.Plan.Steps[slot].Op, cmd.Storage) {
					one.Stall = stalls[slot]
					break
				}
			}
		default:
			continue
		}
		r.Copies = append(r.Copies, one)
	}
	return r
}

func touches(g *graph.Graph, op graph.OpID, s graph.StorageID) bool {
	for _, x := range g.Touches(op) {
		if x == s {
			return true
		}
	}
	return false
}

// TestFeedbackEnds has random jobs train on a link that is slower than predicted. The first plans are those of passive
// mode, the next ones are guided, and after some iterations the policy asks for no more.
func TestFeedbackEnds(t *testing.T) {
	long.Only(t)
	guided, moved, most := 0, 0, 0
	for seed := range uint64(150) {
		r := random(t, seed)
		r.Reports = true
		slow := program.Durations{Out: r.Out, In: r.In}
		slow.In.Rate, slow.Out.Rate = slow.In.Rate/2, slow.Out.Rate/2
		for call := 0; ; call++ {
			what := fmt.Sprintf("seed %d, call %d", seed, call)
			result, err := draft.Open(r, scheduler.Watch{}, Plan)
			if errors.Is(err, scheduler.ErrNoPlan) {
				break
			} else if err != nil {
				t.Fatal(what, err)
			}
			mustHold(t, what, r, result)
			if call == 0 {
				lru := r
				passive, err := draft.Open(lru, scheduler.Watch{}, LRU)
				if errors.Is(err, scheduler.ErrNoPlan) {
					break // guided from the start
				}
				passive.Again, passive.Work, result.Work = result.Again, 0, 0
				if diff := cmp.Diff(passive, result); err != nil || diff != "" {
					t.Fatalf("%s: not passive: %v\n%s", what, err, diff)
				}
			}
			if call == 1 {
				guided++
			}
			if most = max(most, call); !result.Again {
				break
			}
			if call > 1 {
				moved++
			}
			if call > 200 {
				t.Fatalf("%s: it never has enough", what)
			}
			for i := range r.Jobs {
				r.Jobs[i].Last = reported(r.Jobs[i].Graph, result.Jobs[i], slow)
				r.Jobs[i].Epoch++
			}
		}
	}
	t.Logf("%d requests are guided, in-triggers move in %d calls, %d calls at most", guided, moved, most)
	if guided < 100 || moved < 20 {
		t.Errorf("%d requests are guided, in-triggers move in %d calls, %d calls at most", guided, moved, most)
	}
}

// Where reports follow, no job is refused that has a plan without them: a passive plan that does not pack is done
// without.
func TestPassiveThatDoesNotPack(t *testing.T) {
	for seed, without := uint64(0), 0; without < 2; seed++ {
		r, what := random(t, seed), fmt.Sprintf("seed %d", seed)
		if seed == 400 {
			t.Fatalf("%d passive plans do not pack", without)
		}
		if _, err := draft.Open(r, scheduler.Watch{}, LRU); err == nil {
			continue
		}
		if _, err := draft.Open(r, scheduler.Watch{}, Plan); err != nil {
			continue
		}
		without++
		r.Reports = true
		result, err := draft.Open(r, scheduler.Watch{}, Plan)
		if err != nil {
			t.Fatal(what, err)
		}
		mustHold(t, what, r, result)
	}
}
