package live

import (
	"strings"
	"testing"
	"time"

	"tensile/controller"
	"tensile/controller/local"
	"tensile/device/sim"
	"tensile/executor"
	"tensile/executor/timeline"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/plan/program"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// compute checks that the bars of the compute lane follow one another, and returns how long each kind takes.
func compute(t *testing.T, bars []Bar) map[string]time.Duration {
	t.Helper()
	took := make(map[string]time.Duration)
	var end time.Duration
	for _, b := range bars {
		if took[b.Lane] += b.To - b.From; b.To < b.From || b.Name == "" {
			t.Errorf("bar %+v", b)
		}
		if b.Lane == Out || b.Lane == In {
			if b.Bytes <= 0 {
				t.Errorf("bar %+v copies nothing", b)
			}
			continue
		}
		if b.From < end {
			t.Errorf("bar %+v begins before %v, when the one before it ended", b, end)
		}
		end = b.To
	}
	return took
}

// The picture of a plan has the plan's figures: peaks, times, and at the peak the storages that it is made of. What is
// measured has those of the report.
func TestPicture(t *testing.T) {
	w, err := task.Load([]string{"lenet:2"}, task.Settings{Batch: 64, Image: 32, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	d := sim.New(facts, sim.Options{Noise: .1, Seed: 1, Page: 4 * graph.KiB})
	on := planner.Describe(d, planner.Roofline(facts))
	request, err := on.FirstRequest(w)
	if err != nil {
		t.Fatal(err)
	}
	peaks, err := planner.Vanilla(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	request.Budget, request.Policy = (peaks.Live[0]+peaks.Live[1])*85/100, "tensile"
	planned, err := planner.Plan(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	swapped := 0
	for i, j := range planned.Jobs {
		g := w[i].Graph
		before, err := planner.Before(t.Context(), g, j.Plan)
		if err != nil {
			t.Fatal(err)
		}
		c := PictureOf(planned.Programs[i].Program(), before, wire.Rates{Out: j.Out.Rate, In: j.In.Rate})
		c.Explain(wire.ReasonsOf(&j, 0))
		for _, d := range j.Decisions {
			if why := c.Storages[d.Storage].Reason; !strings.Contains(why, "; "+d.Kind.String()+": "+d.Reason) {
				t.Errorf("the planner said %+v, and the picture says %q", d, why)
			}
		}
		timing := program.Time(planned.Programs[i].Program(), program.Durations{Steps: j.Plan.Made,
			Out: cost.Link{Rate: j.Out.Rate}, In: cost.Link{Rate: j.In.Rate}})
		top := c.After[indexOfLargest(c.After)]
		if top != j.Footprint.Peak || c.Before[indexOfLargest(c.Before)] != peaks.Live[i] ||
			c.Iteration != timing.Iteration {
			t.Errorf("peaks %d and %d, iteration %v; want %d, %d, %v", top, c.Before[indexOfLargest(c.Before)],
				c.Iteration,
				j.Footprint.Peak, peaks.Live[i], timing.Iteration)
		}
		took := compute(t, c.Bars)
		if sum := took[Compute] + took[again] + took[Stall]; sum != c.Iteration || took[Stall] != c.Stall ||
			took[again] != j.Plan.Recomputation() {
			t.Errorf("bars of %v, want an iteration of %v with a stall of %v and %v again", took, c.Iteration, c.Stall,
				j.Plan.Recomputation())
		}
		at := j.Plan.Steps[indexOfLargest(c.After)].Scratch
		for k, s := range c.Storages {
			if s.Peak {
				at += s.Bytes
			}
			if s.Name != g.Storages[k].Name || s.Reason == "" || s.Does == "" ||
				strings.HasPrefix(s.Does, "swapped") && !strings.HasPrefix(s.Reason, "away from step ") {
				t.Errorf("storage %+v", s)
			}
			if strings.HasPrefix(s.Does, "swapped") {
				swapped++
			}
		}
		if at != top {
			t.Errorf("the storages at the peak have %d bytes, want %d", at, top)
		}
	}
	if swapped == 0 {
		t.Error("nothing is swapped: the test is about nothing")
	}

	type key struct {
		job       string
		iteration int
	}
	reports := make(map[key]wire.Report)
	measured := make(map[key]*Measured)
	recorder := timeline.Recorder{Device: d.Name(), Origin: time.Hour}
	_, err = local.Train(t.Context(), d, on, w, local.Options{Iterations: 6,
		Config: controller.Config{Policy: "tensile", Budget: request.Budget, MemorySharing: wire.Gates},
		Observe: func(it local.Iterated) {
			reports[key{it.Report.Job, it.Report.Iteration}] = *it.Report
		},
		Trace: func(job string, did *executor.Trace) {
			s := recorder.Add(job, did)
			if m := MeasuredOf(&s); m != nil {
				measured[key{job, m.Iteration}] = m
			} else if s.Kind == timeline.Body {
				t.Errorf("iteration %d of %s is not shown", s.Iteration, job)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	for at, m := range measured {
		took, r := compute(t, m.Bars), reports[at]
		if took[Stall] != r.Stall || took[Gate] != r.Gate || m.Epoch != r.Epoch {
			t.Errorf("iteration %v: %v, want a stall of %v and %v at gates", at, took, r.Stall, r.Gate)
		}
		if sum := took[Compute] + took[again] + took[Stall] + took[Gate]; sum != m.Length {
			t.Errorf("iteration %v: bars of %v, length %v", at, sum, m.Length)
		}
	}
	if len(measured) != len(reports) || len(measured) != 12 {
		t.Errorf("%d iterations are shown, of %d", len(measured), len(reports))
	}
}
