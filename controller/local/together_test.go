package local

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tensile/controller"
	"tensile/controller/plans"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/scheduler/policies/tensile"
)

// several are tasks of networks named as in "resnet50 x4, bert", with these many examples each.
func several(t *testing.T, networks string, batch int, optimizer string) []task.Task {
	t.Helper()
	o, err := autodiff.ParseOptimizer(optimizer, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range strings.SplitSeq(networks, ", ") {
		names = append(names, strings.Replace(name, " x", ":", 1))
	}
	w, err := task.Load(names, task.Settings{Batch: batch, Seed: 1, Optimizer: o})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// deviceOf opens a simulated device by name, maybe with noise.
func deviceOf(t *testing.T, name string, noise float64) *sim.Device {
	t.Helper()
	facts, err := cost.Device(name)
	if err != nil {
		t.Fatal(err)
	}
	return sim.New(facts, sim.Options{Noise: noise, Seed: 1})
}

// iterations trains tasks with their first plans and returns the mean iteration of each, without the first, while all
// of them train.
func iterations(t *testing.T, d *sim.Device, w []task.Task, c controller.Config, n int) []time.Duration {
	t.Helper()
	walls := make([][]time.Duration, len(w))
	c.NoReplan = true
	o := Options{Config: c, Iterations: n,
		Observe: func(i Iterated) { walls[i.Job] = append(walls[i.Job], i.Report.Wall) }}
	if _, err := Train(t.Context(), d, on(d), w, o); err != nil {
		t.Fatal(err)
	}
	end := time.Duration(math.MaxInt64)
	for _, job := range walls {
		var sum time.Duration
		for _, wall := range job {
			sum += wall
		}
		end = min(end, sum)
	}
	means := make([]time.Duration, len(w))
	for i, job := range walls {
		at, n := job[0], 0
		for _, wall := range job[1:] {
			if at += wall; at <= end || n == 0 {
				means[i], n = means[i]+wall, n+1
			}
		}
		means[i] /= time.Duration(n)
	}
	return means
}

// TestStretchAsSimulated compares what requests take ops to last beside other jobs with what they last in virtual time
// with noise, where nothing is swapped, and holds the gains of running together that docs/simulator.md tells: with
// noise, and without, where equal jobs keep in step unless their prologues bring them out of it.
func TestStretchAsSimulated(t *testing.T) {
	long.Only(t)
	for _, test := range []struct {
		networks string
		batch    int
		want     [2]float64 // throughput of jobs together over that of one after the other: without noise, with it
	}{
		{"resnet50 x2", 16, [2]float64{1.034, 1.08}},
		{"bert x2", 16, [2]float64{1.054, 1.055}},
		{"gnmt x2", 16, [2]float64{1.249, 1.24}},
		{"rhn x2", 64, [2]float64{1.637, 1.62}},
		{"nasnet-mobile x2", 64, [2]float64{1.08, 1.15}},
		{"resnet110-cifar, nasnet-mobile", 16, [2]float64{1.74, 1.74}},
		{"resnet50 x4", 16, [2]float64{1.058, 1.095}},
	} {
		w := several(t, test.networks, test.batch, "sgd")
		for k, noise := range []float64{0, 0.05} {
			d := deviceOf(t, "a6000", noise)
			r := asked(t, w, d)
			var gain float64
			var line strings.Builder
			for i, took := range iterations(t, d, w, controller.Config{Policy: "none-live"}, 10) {
				var beside time.Duration
				profile, err := on(d).Profile(w[i].Graph)
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range r.Jobs[i].Latency {
					beside += l
				}
				alone := on(d).Sharing.Use(profile.Latency)
				gain += float64(alone.Launch+alone.Work) / float64(took)
				off := float64(beside)/float64(took) - 1
				fmt.Fprintf(&line, " %+.3f (busy %.2f)", off, alone.Busy())
				if noise > 0 && math.Abs(off) > 0.05 {
					t.Errorf("%s: job %d takes %v, and %v by prediction", test.networks, i, took, beside)
				}
			}
			t.Logf("%s, batch %d, noise %v: throughput %.3f, predicted latencies off by%v", test.networks, test.batch,
				noise, gain, &line)
			if math.Abs(gain-test.want[k]) > 0.02 {
				t.Errorf("%s, noise %v: %v times the throughput of one after the other, want %v", test.networks, noise,
					gain, test.want[k])
			}
		}
	}
}

// fourCopies are four copies of resnet50, their request, and what they need with every tensor freed after its last use.
func fourCopies(t *testing.T) (w []task.Task, d *sim.Device, r scheduler.Request,
	live graph.Bytes) {
	t.Helper()
	w, d = several(t, "resnet50 x4", 16, "adam"), deviceOf(t, "a6000", 0)
	r = asked(t, w, d)
	r.Policy = "tensile"
	peaks, err := planner.Vanilla(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, peak := range peaks.Live {
		live += peak
	}
	return w, d, r, live
}

// The first plans of four copies of resnet50 within 40 % of their memory take as long as predicted, within 4 %, and
// lose no more than 7.5 % against the run without plans.
func TestColdPlansOfSeveral(t *testing.T) {
	long.Only(t)
	w, d, r, live := fourCopies(t)
	r.Budget = live * 4 / 10
	planned, err := planner.Plan(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	plain := iterations(t, d, w, controller.Config{Policy: "none-live"}, 8)
	for i, took := range iterations(t, d, w, controller.Config{Policy: "tensile", Budget: r.Budget}, 12) {
		predicted, eor := planned.Timing(i).Iteration, float64(took)/float64(plain[i])
		planEOR := float64(predicted) / float64(planned.Jobs[i].Unplanned)
		t.Logf("job %d: %v, predicted %v; EOR %.4f, predicted %.4f", i, took, predicted, eor, planEOR)
		if off := float64(predicted)/float64(took) - 1; math.Abs(off) > 0.04 {
			t.Errorf("job %d: an iteration takes %v, and %v by prediction", i, took, predicted)
		}
		if eor > 1.075 || eor > planEOR+0.01 { // less, as the run without plans is in step
			t.Errorf("job %d: EOR %v, predicted %v, want 1.075 and no more than predicted", i, eor, planEOR)
		}
	}
}

// Plans of several jobs that lose no time in virtual time are not below the bound of plans that do not, of any job and
// of all together. (The bound is for plans that swap alone. Plans that also recompute may get below it where jobs that
// are out of step gain what that costs.)
func TestZeroStallOfSeveral(t *testing.T) {
	long.Only(t)
	w, d, r, live := fourCopies(t)
	plain := slices.Max(iterations(t, d, w, controller.Config{Policy: "none-live"}, 8))
	free := 0
	for percent, swaps := range map[graph.Bytes]bool{90: true, 85: true, 80: false, 75: false, 65: false} {
		r.Budget, r.Options.Own = live*percent/100, tensile.Options{NoRecompute: swaps}
		planned, err := planner.Plan(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		took := slices.Max(iterations(t, d, w, controller.Config{Policy: r.Policy, Budget: r.Budget,
			Options: r.Options}, 12))
		eor := float64(took) / float64(plain)
		t.Logf("at %d %%: EOR %.4f, slot peaks %d, bound %d", percent, eor, planned.SlotPeak, planned.ZeroStall)
		if eor > 1.0005 {
			continue
		}
		free++
		var sum graph.Bytes
		for i, j := range planned.Jobs {
			if sum += j.Bounds.ZeroStall; j.Footprint.Peak < j.Bounds.ZeroStall {
				t.Errorf("at %d %%: job %d has %d bytes at its peak, the bound is %d", percent, i, j.Footprint.Peak,
					j.Bounds.ZeroStall)
			}
		}
		if planned.SlotPeak < planned.ZeroStall || planned.ZeroStall < sum {
			t.Errorf("at %d %%: slot peaks of %d, a bound of %d, and bounds of the jobs of %d", percent,
				planned.SlotPeak, planned.ZeroStall, sum)
		}
	}
	if free < 2 {
		t.Errorf("only %d plans lose no time", free)
	}
}

// The controller keeps latencies as if each job ran alone, and plans with what they become beside the jobs of the
// request: those of the first plans are what reports then say; when a job has gone, the other is planned for with what
// it takes alone, although no report has said so.
func TestMeasuredAlone(t *testing.T) {
	w := several(t, "resnet:1,1,1,1, resnet:2,2,2,2", 8, "sgd")
	d := deviceOf(t, "a6000", 0)
	var requests []scheduler.Request
	p := &plans.Worker{Settings: plans.Settings{Policy: "tensile"}, Device: on(d),
		Known: func(r scheduler.Request) *planner.Planned { requests = append(requests, r); return nil }}
	var steps [2]time.Duration // in the mean of the iterations in which both train
	var n [2]int
	over := false
	config := controller.Config{Policy: "tensile"}
	_, err := Train(t.Context(), d, on(d), w, Options{Config: config, Iterations: 20, Observe: func(it Iterated) {
		if over = over || it.Job == 0 && it.Report.Iteration == 19; it.Report.Iteration > 0 && !over {
			for _, took := range it.Report.Steps {
				steps[it.Job] += took
			}
			n[it.Job]++
		}
	}, Plan: func(ctx context.Context, q *plans.Request) *plans.Result { return p.Plan(ctx, q) }})
	if err != nil {
		t.Fatal(err)
	}
	sum := func(j scheduler.Job) (sum time.Duration) {
		for _, l := range j.Latency {
			sum += l
		}
		return sum
	}
	if len(requests) < 2 || len(requests[0].Jobs) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	for i, j := range requests[0].Jobs {
		took := steps[i] / time.Duration(n[i])
		if off := float64(sum(j))/float64(took) - 1; j.Measured || math.Abs(off) > 0.05 {
			t.Errorf("the first plan of job %d expects steps of %v, and they take %v", i, sum(j), took)
		}
	}
	last := requests[len(requests)-1]
	alone := asked(t, w[1:], d).Jobs[0]
	if len(last.Jobs) != 1 || !last.Jobs[0].Measured {
		t.Fatalf("the last request is for %d jobs", len(last.Jobs))
	}
	off := float64(sum(last.Jobs[0]))/float64(sum(alone)) - 1
	t.Logf("left alone it is planned for with %v, and takes %v; beside the other it took %v", sum(last.Jobs[0]),
		sum(alone), steps[1]/time.Duration(n[1]))
	if math.Abs(off) > 0.06 || steps[1]/time.Duration(n[1]) < sum(alone)*13/10 {
		t.Errorf("the job that is left is planned for with %v, and takes %v alone", sum(last.Jobs[0]), sum(alone))
	}
}
