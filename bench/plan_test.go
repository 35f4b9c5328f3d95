package bench

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/cost"
	"tensile/graph"
	"tensile/plan"
	"tensile/program"
	"tensile/scheduler"
)

// A plan comes with its proof, its program and its predicted time; equal requests give equal ones.
func TestPlan(t *testing.T) {
	w, planner, first := twoJobs(t, "tensile", tight)
	_, _, second := twoJobs(t, "tensile", tight)
	if len(first.Programs) != 2 || len(first.Timings) != 2 || first.Arena > tight || first.Arena != first.Programs[0].Program().Arena+first.Programs[1].Program().Arena {
		t.Errorf("%d programs, %d timings, arena %d", len(first.Programs), len(first.Timings), first.Arena)
	}
	if first.PlanTime <= 0 || first.PackTime <= 0 || first.Proof <= 0 {
		t.Errorf("planned in %v, packed in %v, proven in %v", first.PlanTime, first.PackTime, first.Proof)
	}
	for i, task := range w {
		if diff := cmp.Diff(first.Jobs[i].Plan.Text(task.Graph), second.Jobs[i].Plan.Text(task.Graph)); diff != "" {
			t.Errorf("two plans of %s:\n%s", task.Name, diff)
		}
		if diff := cmp.Diff(first.Programs[i].Program().Text(), second.Programs[i].Program().Text()); diff != "" {
			t.Errorf("two programs of %s:\n%s", task.Name, diff)
		}
		if first.Timings[i].Iteration < planner.Latency(i) || planner.Latency(i) <= 0 {
			t.Errorf("%s: iteration %v, sum of latencies %v", task.Name, first.Timings[i].Iteration, planner.Latency(i))
		}
		holders := first.Holders(task.Graph, i)
		var held graph.Bytes
		for _, s := range holders {
			held += task.Graph.Storages[s].Bytes
		}
		if len(holders) == 0 || held > first.Jobs[i].Footprint.Peak {
			t.Errorf("%s: %d storages of %d bytes at the peak of %d", task.Name, len(holders), held, first.Jobs[i].Footprint.Peak)
		}
	}
	for _, whole := range []struct {
		name       string
		link, a, b cost.Link
	}{
		{"out", planner.request.Out, first.Jobs[0].Out, first.Jobs[1].Out},
		{"in", planner.request.In, first.Jobs[0].In, first.Jobs[1].In},
	} {
		if sum := whole.a.Rate + whole.b.Rate; whole.a.Rate <= 0 || whole.b.Rate <= 0 || sum > whole.link.Rate*(1+1e-9) || sum < whole.link.Rate*0.999 {
			t.Errorf("%s: %v and %v of the link's %v", whole.name, whole.a.Rate, whole.b.Rate, whole.link.Rate)
		}
	}
	for i, c := range first.Programs {
		j := first.Jobs[i]
		if want := program.Time(c.Program(), program.Durations{Steps: j.Plan.Made, Out: j.Out, In: j.In}); want.Iteration != first.Timings[i].Iteration {
			t.Errorf("%s: predicted with its share %v, not %v", w[i].Name, want.Iteration, first.Timings[i].Iteration)
		}
	}
}

// A preferred job's plan moves less than it did, and one that may swap little swaps little.
func TestPrefer(t *testing.T) {
	w, planner, plain := twoJobs(t, "tensile", tight)
	copied := func(p *Planned, job int) graph.Bytes {
		out, in := p.Jobs[job].Plan.Copied(w[job].Graph)
		return out + in
	}
	for job := range w {
		planner.Prefer(job, 50, 0)
		p, err := planner.Plan("tensile", tight)
		if err != nil {
			t.Fatal(err)
		}
		if got, before := copied(p, job), copied(plain, job); got >= before {
			t.Errorf("%s copies %v when it is preferred, %v when not", w[job].Name, got, before)
		}
		planner.Prefer(job, 0, 0)
	}
	planner.Prefer(0, 0, 1e-9)
	p, err := planner.Plan("tensile", tight)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range p.Jobs[0].Decisions {
		if d.Kind == "swap" && d.From >= 0 {
			t.Errorf("%s may swap nothing, but swaps %s", w[0].Name, w[0].Graph.Storages[d.Storage].Name)
		}
	}
}

// A budget that cannot be met is the scheduler's typed no.
func TestPlanOverBudget(t *testing.T) {
	_, planner, _ := twoJobs(t, "none-live", 0)
	least := planner.WorkingSet(0).Bytes + planner.WorkingSet(1).Bytes
	for _, policy := range []string{"tensile", "none-live", "none-all"} {
		_, err := planner.Plan(policy, least-1)
		over, ok := errors.AsType[*scheduler.OverBudgetError](err)
		if !ok || over.Budget != least-1 || over.Need < least {
			t.Errorf("%s in %d bytes: %v", policy, least-1, err)
		}
	}
	if _, err := planner.Plan("best", 0); err == nil {
		t.Error("there is a policy best")
	}
}

// Vanilla peaks are those of the two vanilla policies, whatever is planned.
func TestVanilla(t *testing.T) {
	_, planner, live := twoJobs(t, "none-live", 0)
	_, _, all := twoJobs(t, "none-all", 0)
	gotAll, gotLive, err := planner.Vanilla()
	if err != nil {
		t.Fatal(err)
	}
	for i := range gotAll {
		if gotAll[i] != all.Jobs[i].Footprint.Peak || gotLive[i] != live.Jobs[i].Footprint.Peak || gotLive[i] >= gotAll[i] {
			t.Errorf("job %d: all %d, live %d", i, gotAll[i], gotLive[i])
		}
	}
}

// Prove refuses a plan that is wrong.
func TestProve(t *testing.T) {
	w, _, planned := twoJobs(t, "tensile", tight)
	s := planned.Jobs[0]
	if _, err := Prove(w[0].Graph, s); err != nil {
		t.Errorf("a plan that was proven before: %v", err)
	}
	in := slices.IndexFunc(s.Plan.Moves, func(m plan.Move) bool { return m.Kind == plan.In })
	wrong := *s.Plan
	wrong.Moves = slices.Delete(slices.Clone(wrong.Moves), in, in+1)
	s.Plan = &wrong
	_, err := Prove(w[0].Graph, s)
	if _, ok := errors.AsType[*plan.InvalidError](err); !ok {
		t.Errorf("a plan without one of its copies in: %v", err)
	}
}
