package local

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/controller"
	"tensile/controller/plans"
	"tensile/device"
	"tensile/device/sim"
	"tensile/executor"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// noisy opens a simulated device whose kernels take up to a third more or less each time, whose ops always take far
// more or less than the roofline says, and whose link is slow enough for that to change plans.
func noisy(t *testing.T, seed uint64) *counted {
	t.Helper()
	facts, err := cost.Device("v100")
	if err != nil {
		t.Fatal(err)
	}
	facts.Out.Rate, facts.In.Rate = facts.Out.Rate/10, facts.In.Rate/10
	return newCounted(sim.New(facts, sim.Options{Noise: 0.3, Seed: seed, Mispredicted: 0.6}))
}

// mixed are jobs of different sizes, two of them alike.
func mixed(t *testing.T) []task.Task {
	t.Helper()
	w, err := task.Load([]string{"lenet:2", "mlp:1"}, task.Settings{Batch: 2, Image: 12, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// plain is what jobs come to under the plan that keeps everything.
func plain(t *testing.T, d device.Device, w []task.Task, iterations int) *Run {
	t.Helper()
	run, err := Train(t.Context(), d, on(d), w, Options{Config: controller.Config{Policy: "none-all", NoReplan: true},
		Iterations: iterations})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// sameBits compares losses and digests of the weights.
func sameBits(t *testing.T, what string, got, want *Run) {
	t.Helper()
	for i := range want.Jobs {
		g, w := got.Jobs[i], want.Jobs[i]
		if diff := cmp.Diff(w.Losses, g.Losses); diff != "" || len(w.Losses) == 0 {
			t.Errorf("%s: job %d: losses (-plain +got):\n%s", what, i, diff)
		}
		if diff := cmp.Diff(w.Weights, g.Weights); diff != "" || len(w.Weights) == 0 {
			t.Errorf("%s: job %d: weights (-plain +got):\n%s", what, i, diff)
		}
	}
}

// Equal inputs give equal outputs on a simulated device, to the byte: records, results, and every report on the way,
// while latencies drift and jobs that have gone leave room for better plans. With NoReplan each job keeps its first
// plan.
func TestTrainReproducible(t *testing.T) {
	seeds := long.Rounds(1, 2)
	type outcome struct {
		Run     *Run
		Records []wire.Record
		Reports []Iterated
	}
	changes := 0
	for seed := range seeds {
		train := func(noReplan bool) (o outcome) {
			d, w := noisy(t, seed), mixed(t)
			peaks, err := planner.Vanilla(t.Context(), asked(t, w, d))
			if err != nil {
				t.Fatal(err)
			}
			var sum graph.Bytes
			for _, live := range peaks.Live {
				sum += live
			}
			budget := sum * graph.Bytes(70+5*seed) / 100
			l := newLoop(t.Context(), d, on(d), w, Options{Iterations: 60, Config: controller.Config{Policy: "tensile",
				Budget: budget, NoReplan: noReplan, Threshold: 0.01, SettleReports: 15, Horizon: 1000,
				Options: scheduler.Options{Work: 150_000_000}},
				Observe: func(it Iterated) { o.Reports = append(o.Reports, it) }}, executor.SpecOf)
			if err := l.run(); err != nil {
				t.Fatal(err)
			}
			if o.Run, o.Records = l.outcome(), l.controller.Records(); d.max > budget {
				t.Errorf("seed %d: arenas of %s, the budget is %s", seed, d.max, budget)
			}
			return o
		}
		first, second, kept := train(false), train(false), train(true)
		if diff := cmp.Diff(first, second, cmp.AllowUnexported(Watched{})); diff != "" {
			t.Errorf("seed %d: two runs differ:\n%s", seed, diff)
		}
		for i, r := range first.Records {
			if changes += r.Plans - 1; r.State != wire.JobFinished || r.Iteration != 60 {
				t.Errorf("seed %d: job %d is %s after %d iterations", seed, i, r.State, r.Iteration)
			}
			if k := kept.Records[i]; k.PlansMade != 1 || k.Plans != 1 {
				t.Errorf("seed %d: job %d: %d plans were made and %d used with NoReplan", seed, i, k.PlansMade, k.Plans)
			}
		}
	}
	if t.Logf("%d changes of plans", changes); changes == 0 {
		t.Errorf("jobs never changed their plans: the test shows nothing")
	}
}

// Losses and weights have the bits of a run that keeps everything, under a plan and when drift has every job change its
// plan again and again. Two jobs swap their shares of the budget then: arenas shrink first and grow when there is room,
// and never exceed it together.
func TestReplanKeepsBits(t *testing.T) {
	for _, threads := range []int{1, 2} {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			const iterations = 120
			d := computingBy(t, threads)
			w, _ := setting(t, d)
			want := plain(t, d, w, iterations)
			run, err := Train(t.Context(), d, on(d), w, within(tight, iterations))
			if err != nil {
				t.Fatal(err)
			}
			sameBits(t, "planned", run, want)

			o, budget := swapping(t, d, w, iterations)
			d.max = 0
			if run, err = Train(t.Context(), d, on(d), w, o); err != nil {
				t.Fatal(err)
			}
			sameBits(t, "planned again", run, want)
			for i, j := range run.Jobs {
				if j.Plans < 2 {
					t.Errorf("job %d had %d plans", i, j.Plans)
				}
			}
			if t.Logf("%d and %d plans", run.Jobs[0].Plans, run.Jobs[1].Plans); d.max > budget {
				t.Errorf("arenas of %s, the budget is %s", d.max, budget)
			}
		})
	}
}

// swapping has two jobs planned for again with nearly every report. In turn one of them gets all the memory that it
// wants, and the other as little as it can train with. The large plans do not fit together.
func swapping(t *testing.T, d *counted, w []task.Task, iterations int) (o Options, budget graph.Bytes) {
	t.Helper()
	request := asked(t, w[:1], d)
	arena := func(policy string, budget graph.Bytes) graph.Bytes {
		request.Policy, request.Budget = policy, budget
		planned, err := planner.Plan(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return planned.Arena
	}
	large := arena("none-live", 0)
	small := arena("tensile", tight/2)
	if budget = large + small; small >= large {
		t.Fatalf("a small plan of %s, a large one of %s", small, large)
	}
	o = Options{Config: controller.Config{Policy: "tensile", Budget: budget, Threshold: 1e-12, SettleReports: 1},
		Iterations: iterations}
	o.Plan = func(ctx context.Context, q *plans.Request) *plans.Result {
		// It asks to plan again with the next reports: drift would have to wait while the machine is busy.
		answer := &plans.Result{Ticket: q.Ticket, NewProfiles: map[int]planner.Profile{}, WantsReports: true}
		for i, c := range q.Jobs {
			share := map[bool]graph.Bytes{true: large, false: small}[(q.Ticket+int64(len(c.Spec.Name))+int64(i))%2 == 0]
			one := plans.Worker{Settings: plans.Settings{Policy: "tensile"}, Device: on(d)}
			planned := one.Plan(ctx, &plans.Request{Ticket: q.Ticket, Jobs: []plans.Candidate{c},
				Admitted: min(1, q.Admitted), Budget: share, Correction: q.Correction})
			if len(planned.Jobs) != 1 {
				panic(fmt.Sprintf("no plan of %s within %s: %+v", c.Spec.Name, share, planned))
			}
			planned.Jobs[0].Gain, planned.Jobs[0].Transition = time.Hour, 1
			answer.Jobs = append(answer.Jobs, planned.Jobs[0])
			if p, made := planned.NewProfiles[0]; made {
				answer.NewProfiles[i] = p
			}
		}
		return answer
	}
	return o, budget
}

// On a simulated device, too, two jobs that swap their shares never exceed the budget, and do so as often as they can.
func TestSharesAreSwapped(t *testing.T) {
	d := simulated(t)
	w, _ := setting(t, d)
	o, budget := swapping(t, d, w, 40)
	run, err := Train(t.Context(), d, on(d), w, o)
	if err != nil {
		t.Fatal(err)
	}
	if d.max > budget || d.arenas != 0 {
		t.Errorf("arenas of %s, the budget is %s; %s is left", d.max, budget, d.arenas)
	}
	for i, j := range run.Jobs {
		if j.Plans < 5 || j.Iterations != 40 {
			t.Errorf("job %d had %d plans in %d iterations", i, j.Plans, j.Iterations)
		}
	}
}

// Jobs for which there is no room wait for the end of others, and train all the same.
func TestJobsInTurn(t *testing.T) {
	for name, d := range map[string]*counted{"cpu": computing(t), "sim": simulated(t)} {
		var w []task.Task
		one := mixed(t)[0]
		for _, name := range []string{"a", "b", "c"} {
			one.Name = name
			w = append(w, one)
		}
		request := asked(t, w[:1], d)
		request.Policy = "none-live"
		planned, err := planner.Plan(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		o := within(planned.Arena, 3)
		o.Policy = "none-live"
		var order []int
		o.Observe = func(it Iterated) { order = append(order, it.Job) }
		run, err := Train(t.Context(), d, on(d), w, o)
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{0, 0, 0, 1, 1, 1, 2, 2, 2}; !slices.Equal(order, want) || d.max != planned.Arena {
			t.Errorf("%s: iterations of jobs %v in %s, want %v in %s", name, order, d.max, want, planned.Arena)
		}
		if name == "cpu" {
			sameBits(t, name, run, plain(t, d, w, 3))
		}
	}
}
