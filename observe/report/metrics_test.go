package report

import (
	"math"
	"slices"
	"testing"
	"time"

	"tensile/controller/local"

	"github.com/google/go-cmp/cmp"

	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// tight is a budget for two small copies of lenet that their plans do not fit unless something moves.
const tight = 1792 * graph.KiB

// twoJobs is a small workload, the request for its plans on a simulated device, these plans, and what they save.
func twoJobs(t *testing.T, policy string, budget graph.Bytes) ([]task.Task, scheduler.Request, *planner.Planned,
	[]Memory) {
	t.Helper()
	tasks, err := task.Load([]string{"lenet:2"}, task.Settings{Batch: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	r, err := planner.Describe(sim.New(facts, sim.Options{}), planner.Roofline(facts)).FirstRequest(tasks)
	if err != nil {
		t.Fatal(err)
	}
	r.Policy, r.Budget = policy, budget
	planned, err := planner.Plan(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	vanilla, err := planner.Vanilla(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return tasks, r, planned, MemoryOf(planned, vanilla)
}

// madeUp is a run of two jobs with twelve iterations each, with the plans that were made first. Each first iteration of
// a block takes a second, the others what is given.
func madeUp(p *planner.Planned, first, second time.Duration) *local.Run {
	weights := func() map[int32]string { return map[int32]string{0: "a", 3: "b"} }
	run := &local.Run{Jobs: []local.JobRun{
		{Iterations: 12, Watched: watched(blocksOf(first)), Result: wire.Result{Losses: []float32{3, 2, 1},
			Stall:   5 * time.Millisecond,
			Touched: 1000, Plans: 1, Transition: 7 * time.Millisecond, Weights: weights()}},
		{Iterations: 12, Watched: watched(blocksOf(second)), Result: wire.Result{Losses: []float32{9, 8, 7},
			Stall:   500 * time.Microsecond,
			Touched: 2000, Plans: 2, Transition: time.Millisecond, Weights: weights()}},
	}}
	for i := range run.Jobs {
		run.Jobs[i].Arena, run.Jobs[i].SlotPeak = p.Jobs[i].Layout.Arena, p.Jobs[i].Footprint.Peak
	}
	return run
}

func blocksOf(wall time.Duration) []time.Duration {
	return slices.Repeat([]time.Duration{time.Second, wall, wall, wall}, 3)
}

func TestCompare(t *testing.T) {
	tasks, request, planned, saved := twoJobs(t, "tensile", tight)
	planned.PlanTime, planned.PackTime, planned.Proof = 1500*time.Microsecond, 2*time.Millisecond, 3*time.Millisecond
	peaks, err := planner.Vanilla(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	all, live := peaks.All, peaks.Live
	run, vanilla := madeUp(planned, 200*time.Millisecond, 150*time.Millisecond),
		madeUp(planned, 100*time.Millisecond, 200*time.Millisecond)
	got := Compare(tasks, planned, saved, 0, run, vanilla)
	job := func(i int, eor float64) Metrics {
		peak := planned.Jobs[i].Footprint.Peak
		saving := func(v graph.Bytes) float64 { return float64(v-peak) / float64(v) }
		cbr := saving(live[i]) / eor
		return Metrics{Memory: Memory{VanillaAll: all[i], VanillaLive: live[i], SlotPeak: peak,
			Arena: planned.Jobs[i].Layout.Arena, WorkingSet: scheduler.WorkingSetOf(request.Jobs[i],
				request.Align).Bytes, ZeroStall: planned.Jobs[i].Bounds.ZeroStall, MSRAll: saving(all[i]),
			MSRLive: saving(live[i])},
			EOR: &eor, EORLow: &eor, EORHigh: &eor, CBR: &cbr}
	}
	yes := true
	first, second := job(0, 2), job(1, 0.75)
	first.Touched, first.Stall, first.Plans, first.Transition = 1000, 5, 1, 7
	second.Touched, second.Stall, second.Plans, second.Transition = 2000, 0.5, 2, 1
	sum := Metrics{Memory: Memory{VanillaAll: all[0] + all[1], VanillaLive: live[0] + live[1],
		SlotPeak: planned.SlotPeak, Arena: planned.Arena, WorkingSet: first.WorkingSet + second.WorkingSet,
		ZeroStall: first.ZeroStall + second.ZeroStall}, Touched: 3000, Stall: 5.5, Plans: 3, Transition: 8}
	sum.MSRAll = 1 - float64(sum.SlotPeak)/float64(sum.VanillaAll)
	sum.MSRLive = 1 - float64(sum.SlotPeak)/float64(sum.VanillaLive)
	eor := 1.0 // the longest job takes as long in both
	cbr := sum.MSRLive / eor
	sum.EOR, sum.EORLow, sum.EORHigh, sum.CBR = &eor, &eor, &eor, &cbr
	want := &Training{PlanTime: 1.5, PackTime: 2, Proof: 3, Work: planned.Work, Total: sum, Jobs: []JobMetrics{
		{Job: "lenet.1", Model: "lenet", Iterations: 12, LossFirst: pointer(3), LossLast: pointer(1),
			BitIdentical: &yes, Digest: new("ea82e20008778473754813de6b811d33"), Metrics: first},
		{Job: "lenet.2", Model: "lenet", Iterations: 12, LossFirst: pointer(9), LossLast: pointer(7),
			BitIdentical: &yes, Digest: new("8875cd40eb013245338f48901f18e852"), Metrics: second},
	}}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if !(first.MSRLive > 0) || planned.Arena > tight {
		t.Errorf("the plan saves %v, its arenas take %d", first.MSRLive, planned.Arena)
	}
}

// Without a vanilla run there are the savings, and nothing else to compare.
func TestCompareAlone(t *testing.T) {
	tasks, _, planned, saved := twoJobs(t, "none-live", 0)
	r := Compare(tasks, planned, saved, 0, madeUp(planned, 2, 1), nil)
	for _, m := range []Metrics{r.Jobs[0].Metrics, r.Jobs[1].Metrics, r.Total} {
		if m.EOR != nil || m.CBR != nil || m.MSRLive != 0 || !(m.MSRAll > 0) {
			t.Errorf("figures of none-live alone: %+v", m)
		}
	}
	for _, j := range r.Jobs {
		if j.BitIdentical != nil || j.LossFirst == nil {
			t.Errorf("%s: bit_identical %v, loss %v", j.Job, j.BitIdentical, j.LossFirst)
		}
	}
}

// A job counts with the largest of its arenas, all jobs together with no more than the budget.
func TestCompareReplanned(t *testing.T) {
	tasks, _, planned, saved := twoJobs(t, "tensile", tight)
	run := madeUp(planned, 2, 1)
	run.Jobs[1].Arena, run.Jobs[1].SlotPeak, run.Jobs[1].Touched = tight, tight-1, tight-2
	r := Compare(tasks, planned, saved, tight, run, nil)
	if j := r.Jobs[1]; j.Arena != tight || j.SlotPeak != tight-1 || !(j.MSRLive < 0) {
		t.Errorf("the job whose plan changed: %+v", j)
	}
	if sum := r.Total; sum.Arena != tight || sum.SlotPeak != tight ||
		sum.MSRLive != float64(sum.VanillaLive-tight)/float64(sum.VanillaLive) {
		t.Errorf("total with a budget of %d: %+v", tight, sum)
	}
}

func TestIdentical(t *testing.T) {
	nan, otherNaN := math.Float32frombits(0x7fc00000), math.Float32frombits(0x7fc00001)
	job := func(losses []float32, weights map[int32]string) *local.JobRun {
		return &local.JobRun{Result: wire.Result{Losses: losses, Weights: weights}}
	}
	base := map[int32]string{1: "a", 2: "b"}
	yes, no := true, false
	for _, test := range []struct {
		name string
		a, b *local.JobRun
		want *bool
	}{
		{"equal", job([]float32{1, 2}, base), job([]float32{1, 2}, base), &yes},
		{"equal NaN losses", job([]float32{1, nan}, base), job([]float32{1, nan}, base), &yes},
		{"other NaN", job([]float32{nan}, base), job([]float32{otherNaN}, base), &no},
		{"minus zero", job([]float32{0}, base), job([]float32{float32(math.Copysign(0, -1))}, base), &no},
		{"other loss", job([]float32{1, 2}, base), job([]float32{1, 3}, base), &no},
		{"fewer losses", job([]float32{1, 2}, base), job([]float32{1}, base), &no},
		{"other weight", job(nil, base), job(nil, map[int32]string{1: "a", 2: "c"}), &no},
		{"missing weight", job(nil, base), job(nil, map[int32]string{1: "a"}), &no},
		{"one weight more", job(nil, map[int32]string{1: "a"}), job(nil, base), &no},
		{"other storage", job(nil, map[int32]string{1: "a", 3: "b"}), job(nil, base), &no},
		{"no data", job(nil, nil), job(nil, nil), nil},
		{"no data on one side", job(nil, nil), job([]float32{1}, base), nil},
	} {
		if diff := cmp.Diff(test.want, identical(test.a, test.b)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// Losses that JSON cannot hold are left out, and so are ratios of times that were not measured.
func TestNumbers(t *testing.T) {
	for _, f := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		if got := finiteLoss(f); got != nil {
			t.Errorf("number(%v) = %v", f, *got)
		}
	}
	if got := finiteLoss(0.5); got == nil || *got != 0.5 {
		t.Errorf("number(0.5) = %v", got)
	}
	of := func(all, live, peak graph.Bytes) Metrics {
		var m Metrics
		m.Memory.Add(Memory{VanillaAll: all, VanillaLive: live, SlotPeak: peak})
		return m
	}
	m := of(10, 8, 4)
	if m.relate(nil); m.EOR != nil || m.EORLow != nil || m.EORHigh != nil || m.CBR != nil || m.MSRAll != 0.6 ||
		m.MSRLive != 0.5 {
		t.Errorf("of no times: %+v", m)
	}
	nothing := of(0, 0, 0)
	if nothing.relate(&spread{1, 1, 1}); nothing.MSRAll != 0 || *nothing.EOR != 1 || *nothing.CBR != 0 {
		t.Errorf("of no memory: %+v", nothing)
	}
	worse := of(10, 8, 10)
	if worse.relate(&spread{1.5, 1, 2}); worse.MSRLive != -0.25 || *worse.EOR != 1.5 {
		t.Errorf("of a plan that takes more: %+v", worse)
	}
}

func pointer(f float64) *float64 { return &f }
