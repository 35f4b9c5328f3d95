package planner

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/models/nettest"
	"tensile/models/task"
	"tensile/peak"
	"tensile/plan"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler"
)

// tight is a budget for two small copies of lenet that their plans do not fit unless something moves.
const tight = 1792 * graph.KiB

// twoJobs asks for plans of two copies of a small network on a simulated device.
func twoJobs(t *testing.T, policy string, budget graph.Bytes) scheduler.Request {
	t.Helper()
	g, err := models.Build("lenet", models.Config{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Describe(sim.New(facts, sim.Options{}), Roofline(facts)).FirstRequest([]task.Task{{Name: "lenet.1",
		Graph: g},
		{Name: "lenet.2", Graph: g}})
	if err != nil {
		t.Fatal(err)
	}
	r.Policy, r.Budget = policy, budget
	return r
}

func planned(t *testing.T, r scheduler.Request) *Planned {
	t.Helper()
	p, err := Plan(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A plan comes with its proof, its program and its predicted time; equal requests give equal ones.
func TestPlan(t *testing.T) {
	r := twoJobs(t, "tensile", tight)
	first, second := planned(t, r), planned(t, r)
	if len(first.Programs) != 2 || first.Arena > tight ||
		first.Arena != first.Programs[0].Program().Arena+first.Programs[1].Program().Arena {
		t.Errorf("%d programs, arena %d", len(first.Programs), first.Arena)
	}
	if first.PlanTime <= 0 || first.PackTime <= 0 || first.Proof <= 0 {
		t.Errorf("planned in %v, packed in %v, proven in %v", first.PlanTime, first.PackTime, first.Proof)
	}
	for i, job := range r.Jobs {
		if diff := cmp.Diff(first.Jobs[i].Plan.Text(job.Graph), second.Jobs[i].Plan.Text(job.Graph)); diff != "" {
			t.Errorf("two plans of %s:\n%s", job.Name, diff)
		}
		if diff := cmp.Diff(first.Programs[i].Program().Text(), second.Programs[i].Program().Text()); diff != "" {
			t.Errorf("two programs of %s:\n%s", job.Name, diff)
		}
		var sum time.Duration
		for _, l := range job.Latency {
			sum += l
		}
		if took := first.Timing(i).Iteration; took < sum || sum <= 0 {
			t.Errorf("%s: iteration %v, sum of latencies %v", job.Name, took, sum)
		}
		var held graph.Bytes
		holders := first.Holders(job.Graph, i)
		for _, s := range holders {
			held += job.Graph.Storages[s].Bytes
		}
		if len(holders) == 0 || held > first.Jobs[i].Footprint.Peak {
			t.Errorf("%s: %d storages of %d bytes at the peak of %d", job.Name, len(holders), held,
				first.Jobs[i].Footprint.Peak)
		}
	}
	for _, whole := range []struct {
		name       string
		link, a, b cost.Link
	}{
		{"out", r.Out, first.Jobs[0].Out, first.Jobs[1].Out},
		{"in", r.In, first.Jobs[0].In, first.Jobs[1].In},
	} {
		if sum := whole.a.Rate + whole.b.Rate; whole.a.Rate <= 0 || whole.b.Rate <= 0 ||
			sum > whole.link.Rate*(1+1e-9) || sum < whole.link.Rate*0.999 {
			t.Errorf("%s: %v and %v of the link's %v", whole.name, whole.a.Rate, whole.b.Rate, whole.link.Rate)
		}
	}
	for i, c := range first.Programs {
		j := first.Jobs[i]
		want := program.Time(c.Program(), program.Durations{Steps: j.Plan.Made, Out: j.Out, In: j.In})
		if got := first.Timing(i); got.Iteration != want.Iteration {
			t.Errorf("%s: predicted with its share %v, not %v", r.Jobs[i].Name, want.Iteration, got.Iteration)
		}
	}
}

// A preferred job's plan moves less than it did, and one that may swap little swaps little.
func TestPrefer(t *testing.T) {
	r := twoJobs(t, "tensile", tight)
	plain := planned(t, r)
	copied := func(p *Planned, job int) graph.Bytes {
		out, in := p.Jobs[job].Plan.Copied(r.Jobs[job].Graph)
		return out + in
	}
	for job := range r.Jobs {
		r.Jobs[job].Weight = 50
		if got, before := copied(planned(t, r), job), copied(plain, job); got >= before {
			t.Errorf("%s copies %v when it is preferred, %v when not", r.Jobs[job].Name, got, before)
		}
		r.Jobs[job].Weight = 0
	}
	r.Jobs[0].MaxSwapRate = 1e-9
	for _, d := range planned(t, r).Jobs[0].Decisions {
		if d.Kind == scheduler.Swap && d.From >= 0 {
			t.Errorf("%s may swap nothing, but swaps %s", r.Jobs[0].Name, r.Jobs[0].Graph.Storages[d.Storage].Name)
		}
	}
}

// A budget that cannot be met is the scheduler's typed no.
func TestPlanOverBudget(t *testing.T) {
	r := twoJobs(t, "none-live", 0)
	workingSets := scheduler.WorkingSetOf(r.Jobs[0], r.Align).Bytes + scheduler.WorkingSetOf(r.Jobs[1], r.Align).Bytes
	r.Budget = workingSets - 1
	for _, policy := range []string{"tensile", "none-live", "none-all"} {
		r.Policy = policy
		_, err := Plan(t.Context(), r)
		over, ok := errors.AsType[*scheduler.OverBudgetError](err)
		if !ok || over.Budget != workingSets-1 || over.Need < workingSets {
			t.Errorf("%s in %d bytes: %v", policy, workingSets-1, err)
		}
	}
	r.Policy = "best"
	if _, err := Plan(t.Context(), r); err == nil {
		t.Error("there is a policy best")
	}
}

// Planning ends with its context, whose cause is the error.
func TestPlanStops(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	r := twoJobs(t, "tensile", tight)
	if _, err := Plan(ctx, r); !errors.Is(err, enough) {
		t.Errorf("Plan: %v", err)
	}
	if _, err := Vanilla(ctx, r); !errors.Is(err, enough) {
		t.Errorf("Vanilla: %v", err)
	}
}

// Vanilla peaks are those of the two policies that plan nothing, whatever the request asks for; the curve of a job has
// its peak.
func TestVanilla(t *testing.T) {
	live, all := planned(t, twoJobs(t, "none-live", 0)), planned(t, twoJobs(t, "none-all", 0))
	r := twoJobs(t, "tensile", 1)
	got, err := Vanilla(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Jobs {
		if got.All[i] != all.Jobs[i].Footprint.Peak || got.Live[i] != live.Jobs[i].Footprint.Peak ||
			got.Live[i] >= got.All[i] {
			t.Errorf("job %d: all %d, live %d", i, got.All[i], got.Live[i])
		}
		curve, err := Unplanned(t.Context(), r, i)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Max(curve) != got.Live[i] || len(curve) != len(r.Jobs[i].Graph.Ops) {
			t.Errorf("job %d: a curve of %d steps with a peak of %d", i, len(curve), slices.Max(curve))
		}
	}
}

// Without scratch, vanilla peaks are what package peak says of a graph, of every network.
func TestVanillaOfEveryNetwork(t *testing.T) {
	facts, err := cost.Device("v100")
	if err != nil {
		t.Fatal(err)
	}
	on := Describe(sim.New(facts, sim.Options{}), Roofline(facts))
	for _, name := range models.Names() {
		g, err := nettest.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := on.FirstRequest([]task.Task{{Name: name, Graph: g}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Vanilla(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if all, live := peak.Vanilla(g); got.All[0] != all || got.Live[0] != live {
			t.Errorf("%s: peaks %d and %d, package peak says %d and %d", name, got.All[0], got.Live[0], all, live)
		}
	}
}

// A plan that is wrong is refused.
func TestProve(t *testing.T) {
	r := twoJobs(t, "tensile", tight)
	s := planned(t, r).Jobs[0]
	if _, err := prove(r.Jobs[0].Graph, s, func(int) {}); err != nil {
		t.Errorf("a plan that was proven before: %v", err)
	}
	in := slices.IndexFunc(s.Plan.Moves, func(m plan.Move) bool { return m.Kind == plan.In })
	wrong := *s.Plan
	wrong.Moves = slices.Delete(slices.Clone(wrong.Moves), in, in+1)
	s.Plan = &wrong
	_, err := prove(r.Jobs[0].Graph, s, func(int) {})
	if _, ok := errors.AsType[*proof.InvalidError](err); !ok {
		t.Errorf("a plan without one of its copies in: %v", err)
	}
}
