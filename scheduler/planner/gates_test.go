package planner

import (
	"errors"
	"testing"
	"time"

	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models"
	"tensile/models/task"
	"tensile/scheduler"
)

// gated is a device that backs arenas by pages, and a request for jobs that share its memory by gates.
func gated(t *testing.T, page graph.Bytes, c models.Config, names ...string) (Device, scheduler.Request) {
	t.Helper()
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	d := Describe(sim.New(facts, sim.Options{Page: page}), Roofline(facts))
	d.Gates = true
	var tasks []task.Task
	for _, name := range names {
		g, err := models.Build(name, c)
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task.Task{Name: name, Graph: g})
	}
	r, err := d.FirstRequest(tasks)
	if err != nil {
		t.Fatal(err)
	}
	r.Policy = "tensile"
	return d, r
}

// A budget is not refused where a smaller one has plans.
func TestGatesRefuseFromBelow(t *testing.T) {
	_, r := gated(t, 0, models.Config{Image: 32, Batch: 8}, "lenet", "mlp", "resnet:1,1,1,1")
	fits := graph.Bytes(0)
	for r.Budget = 44 * graph.MiB; r.Budget <= 50*graph.MiB; r.Budget += graph.MiB * long.Or[graph.Bytes](6, 2) {
		_, err := Schedule(t.Context(), r)
		switch {
		case err == nil:
			fits = r.Budget
		case !errors.Is(err, scheduler.ErrNoPlan):
			t.Fatal(err)
		case fits > 0:
			t.Errorf("within %s there are plans, and of %s is said: %v", fits, r.Budget, err)
		}
	}
	if fits == 0 {
		t.Error("there were no plans")
	}
}

// Plans by gates are those that take least of the budget's own and those of smaller ones, and fit. Without waiting
// nothing else is tried.
func TestGatesTakeLowerBudgets(t *testing.T) {
	d, r := gated(t, 64*graph.KiB, models.Config{Batch: 4}, "lenet", "mlp")
	free, err := d.Plan(t.Context(), r)
	if err != nil || free.Expected == nil || free.Expected.Capacity < free.Least {
		t.Fatalf("without a budget %+v is expected, %v", free, err)
	}
	lower := 0
	for percent := graph.Bytes(60); percent <= 100; percent += 5 {
		r.Budget = free.Least * percent / 100 / d.Page * d.Page
		own, capacity, err := d.inPages(t.Context(), r)
		if err == nil {
			own.Expected, err = d.Expect(t.Context(), own, &r, capacity)
		}
		if errors.Is(err, scheduler.ErrNoPlan) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		p, err := d.Plan(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if p.WeightedTime(&r) > own.WeightedTime(&r) || p.Least > r.Budget || p.Expected.Capacity != r.Budget {
			t.Errorf("%d %%: iterations take %v by plans that need %s within %s of %s, and %v by the budget's own",
				percent, p.WeightedTime(&r), p.Least, p.Expected.Capacity, r.Budget, own.WeightedTime(&r))
		}
		if p.WeightedTime(&r) < own.WeightedTime(&r) {
			lower++
		}
	}
	if lower == 0 {
		t.Error("for no budget were the plans of a smaller one taken")
	}
}

// The steps of the scale below a budget are at least half of it, and are steps for larger budgets, too.
func TestBelow(t *testing.T) {
	d := Device{Page: 2 * graph.MiB}
	const small, large = 100 * graph.MiB, 120 * graph.MiB
	steps := make(map[graph.Bytes]bool)
	for step := range d.below(large) {
		if steps[step] = true; step >= large || step < large/2 {
			t.Errorf("%s is a step below %s", step, large)
		}
	}
	n := 0
	for step := range d.below(small) {
		if n++; step >= large/2 && !steps[step] {
			t.Errorf("%s is a step below %s, and not below %s", step, small, large)
		}
	}
	if n < 3 || n > 5 || len(steps) < 3 || len(steps) > 5 {
		t.Errorf("there are %d steps below %s and %d below %s", n, small, len(steps), large)
	}
}

// Jobs that would copy more than the link can are as slow as the link makes them.
func TestExpectLink(t *testing.T) {
	ms := time.Millisecond
	c := course(1, []int{2, 2}, 10*ms, 10*ms)
	for _, copies := range []time.Duration{0, 5 * ms, 15 * ms} {
		c.Out = copies
		got := rates(t, 8, c, c)
		if busy := 2 * got[0] * float64(copies) / float64(c.Alone); busy > 1.01 {
			t.Errorf("copies of %v an iteration keep the link busy for %.2f of the time", copies, busy)
		}
		want := 1.0
		if copies > 10*ms {
			want = 20.0 / 30
		}
		if !near(got[0], want) || !near(got[1], want) {
			t.Errorf("with copies of %v an iteration jobs get on at %v, want %.2f each", copies, got, want)
		}
	}
}
