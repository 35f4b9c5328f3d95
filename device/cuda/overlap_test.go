package cuda_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/cuda/kernels"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler/planner"
)

// latencies has an op's kernels take what the roofline of a table says of the op, in equal parts.
func latencies(g *graph.Graph, facts cost.Facts) func(cuda.Launch) time.Duration {
	each := make(map[string]time.Duration)
	for _, op := range g.Ops {
		call := kernels.Call{Kind: op.Kind, Attrs: op.Attrs, InShapes: g.Shapes(op.Inputs),
			OutShapes: g.Shapes(op.Outputs), In: ones(len(op.Inputs)), Out: ones(len(op.Outputs)), Scratch: 1,
			Iteration: 1}
		each[op.Name] = facts.Roofline(g.Cost(op.ID)) / time.Duration(max(1, len(kernels.Launches(&call))))
	}
	return func(l cuda.Launch) time.Duration { return each[l.Op] }
}

func ones(n int) []uint64 { return slices.Repeat([]uint64{1}, n) }

// oneStream is a driver on which copies lie on the compute stream of the job, in the order in which they are issued.
type oneStream struct {
	*fakecuda.Driver
	streams []cuda.Stream // the clock's, then the compute stream's
	events  []cuda.Event
}

func (o *oneStream) NewStream() (cuda.Stream, error) {
	s, err := o.Driver.NewStream()
	o.streams = append(o.streams, s)
	return s, err
}

func (o *oneStream) CopyIn(s cuda.Stream, to cuda.Address, from []byte) error {
	return o.compute(s, func(s cuda.Stream) error { return o.Driver.CopyIn(s, to, from) })
}

func (o *oneStream) CopyOut(s cuda.Stream, to []byte, from cuda.Address) error {
	return o.compute(s, func(s cuda.Stream) error { return o.Driver.CopyOut(s, to, from) })
}

// compute has a copy wait for its stream, and its stream for the copy.
func (o *oneStream) compute(s cuda.Stream, copy func(cuda.Stream) error) error {
	if len(o.streams) < 2 {
		return copy(s)
	}
	return errors.Join(o.order(s, o.streams[1]), copy(o.streams[1]), o.order(o.streams[1], s))
}

func (o *oneStream) order(from, to cuda.Stream) error {
	e, err := o.NewEvent()
	o.events = append(o.events, e)
	return errors.Join(err, o.Record(from, e), o.Wait(to, e))
}

func (o *oneStream) Close() error {
	var problems []error
	for _, e := range o.events {
		problems = append(problems, o.DestroyEvent(e))
	}
	return errors.Join(append(problems, o.Driver.Close())...)
}

// course is how some iterations went.
type course struct {
	iteration     time.Duration // mean of those after the first two
	copied, under time.Duration // time of copies, and the part of it in which something was computed
	computed      time.Duration
	whole         time.Duration
	moved         graph.Bytes // per iteration
}

// courseOf reads the events of bodies.
func courseOf(p *program.Program, events []device.Event, iterations int) course {
	const warm = 2
	var c course
	var compute, copies []device.Event
	ends := make([]time.Duration, iterations) // of the last kernel
	for _, e := range events {
		if e.Section != &p.Body {
			continue
		}
		switch command := &e.Section.Commands[e.Index]; command.Kind.Unit() {
		case program.Compute:
			ends[e.Iteration] = max(ends[e.Iteration], e.End)
			compute = append(compute, e)
		case program.CopyIn, program.CopyOut:
			copies = append(copies, e)
		}
	}
	from, to := ends[warm-1], ends[iterations-1]
	c.whole = to - from
	c.iteration = c.whole / time.Duration(iterations-warm)
	slices.SortFunc(compute, func(a, b device.Event) int { return int(a.Start - b.Start) })
	for _, e := range compute {
		c.computed += max(0, min(e.End, to)-max(e.Start, from))
	}
	for _, e := range copies {
		begin, end := max(e.Start, from), min(e.End, to)
		if begin >= end {
			continue
		}
		c.copied += end - begin
		c.moved += e.Section.Commands[e.Index].Bytes
		i, _ := slices.BinarySearchFunc(compute, begin, func(k device.Event, t time.Duration) int {
			return int(k.End - t)
		})
		for ; i < len(compute) && compute[i].Start < end; i++ {
			c.under += max(0, min(end, compute[i].End)-max(begin, compute[i].Start))
		}
	}
	c.moved /= graph.Bytes(iterations - warm)
	return c
}

// TestOverlap trains networks by plans for half of their memory on a driver that only tells times: copies lie under
// compute as the plan has it. On one stream they would not.
func TestOverlap(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes the simulation slow, which has one goroutine: run without -race")
	}
	const iterations = 6
	for _, name := range []string{"resnet50", "vgg16"} {
		t.Run(name, func(t *testing.T) {
			tasks, err := task.Load([]string{name}, task.Settings{Image: 224, Channels: 3, Classes: 1000,
				Batch: 16, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			g := tasks[0].Graph
			table, err := cost.Device("a6000")
			if err != nil {
				t.Fatal(err)
			}
			driver := func() *fakecuda.Driver {
				return fakecuda.New(fakecuda.Options{Facts: table, Dry: true, Latency: latencies(g, table)})
			}
			d := open(t, driver())
			defer closed(t, d)
			request, err := planner.Describe(d, planner.Roofline(table)).FirstRequest(tasks)
			if err != nil {
				t.Fatal(err)
			}
			plan := func(policy string, budget graph.Bytes) (proof.Proven, time.Duration) {
				request.Policy, request.Budget = policy, budget
				planned, err := planner.Plan(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				p := planned.Programs[0].Program()
				return planned.Programs[0], program.Time(p, program.Durations{Steps: p.Plan.Made,
					Out: request.Out, In: request.In}).Iteration
			}
			peaks, err := planner.Vanilla(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			free, vanilla := plan("none-live", 0)
			half, predicted := plan("tensile", peaks.Live[0]/2)
			run := func(d *cuda.Device, proven proof.Proven) course {
				events, _, err := (&trainer{dry: true}).train(t, d, proven, iterations)
				if err != nil {
					t.Fatal(err)
				}
				return courseOf(proven.Program(), events, iterations)
			}
			base := run(d, free)
			c := run(d, half)
			single := open(t, &oneStream{Driver: driver()})
			defer closed(t, single)
			wrong := run(single, half)
			eor := func(c course) float64 { return float64(c.iteration) / float64(base.iteration) }
			share := func(c course) float64 { return float64(c.under) / float64(c.copied) }
			want := float64(predicted) / float64(vanilla)
			t.Logf("eor %.3f, predicted %.3f; %s moved per iteration; compute busy %.1f %%, copies %.1f %% of the "+
				"time, of that %.1f %% under compute; on one stream eor %.3f, %.1f %%", eor(c), want, c.moved,
				100*float64(c.computed)/float64(c.whole), 100*float64(c.copied)/float64(c.whole), 100*share(c),
				eor(wrong), 100*share(wrong))
			if share(c) < .9 {
				t.Errorf("%.1f %% of the time of copies is under compute, want 90 %%", 100*share(c))
			}
			if diff := eor(c) - want; diff > .02 || diff < -.02 {
				t.Errorf("eor is %.3f, the plan's is %.3f", eor(c), want)
			}
			if share(wrong) >= .9 || eor(wrong)-want <= .02 {
				t.Errorf("with copies on the compute stream %.1f %% are under compute, and eor is %.3f",
					100*share(wrong), eor(wrong))
			}
		})
	}
}
