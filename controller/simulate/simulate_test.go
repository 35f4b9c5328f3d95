package simulate

import (
	"math"
	"strings"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/scheduler/planner"
)

// load makes tasks of networks for small images.
func load(model string, batch int) (task.Task, error) {
	tasks, err := task.Load([]string{model}, task.Settings{Image: 32, Batch: batch,
		Optimizer: autodiff.Adam{}})
	if err != nil {
		return task.Task{}, err
	}
	return tasks[0], nil
}

func options(t *testing.T, way Way, devices int, budget graph.Bytes) Options {
	t.Helper()
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	return Options{Way: way, Facts: facts, Devices: devices, Budget: budget, Fold: true, Load: load}
}

// small is a trace of twenty jobs of which two or three share a device of 64 MiB.
func small() []Arrival {
	return Generator{Jobs: 20, Seed: 3, Gap: 200 * time.Millisecond, Fewest: 20, Most: 400, Tail: 1, Tenants: 2,
		Mix: []Kind{{"lenet", 64}, {"vgg11-cifar", 16}, {"resnet:1,1,1,1", 8}}}.Trace()
}

// A folded run says of every job what one says that trains each iteration, to one in two hundred or an iteration of the
// job beside it that takes longest: when time jumps a job goes on where it stood in its iteration.
func TestFoldedIsUnfolded(t *testing.T) {
	for _, way := range Ways() {
		t.Run(string(way), func(t *testing.T) {
			o := options(t, way, 2, 320*graph.MiB)
			folded := run(t, small(), o)
			o.Fold = false
			each := run(t, small(), o)
			var iteration float64
			for _, j := range each.Jobs {
				iteration = max(iteration, (j.End-j.Start)/float64(j.Iterations))
			}
			for i, j := range folded.Jobs {
				want := each.Jobs[i]
				took := want.End - want.Start
				if math.Abs(j.End-want.End) > max(iteration, took/200) || j.Device != want.Device {
					t.Errorf("job %s ends on %s at %.4f s, and unfolded on %s at %.4f s", j.Name, j.Device, j.End,
						want.Device,
						want.End)
				}
			}
			for what, of := range map[string][2]float64{"memory": {folded.Memory, each.Memory},
				"bytes moved": {folded.Moved, each.Moved}, "link": {folded.Link, each.Link}} {
				if math.Abs(of[0]-of[1]) > of[1]/200 {
					t.Errorf("%s: %v, and unfolded %v", what, of[0], of[1])
				}
			}
			t.Logf("makespan %.3f, unfolded %.3f; mean %.3f, wait %.3f, memory %.2f, link %.3f, %d re-plans",
				folded.Makespan,
				each.Makespan, folded.Mean, folded.Waiting, folded.Memory, folded.Link, folded.Replans)
		})
	}
}

func run(t *testing.T, trace []Arrival, o Options) *Result {
	t.Helper()
	r, err := Run(t.Context(), trace, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// With fifo a device has one job at a time and the queue keeps its order; with pack what needs no more than the memory
// together; and Tensile begins jobs for which there is no room without plans.
func TestWaysKeepTheirRules(t *testing.T) {
	const budget = 320 * graph.MiB
	peaks := map[string]graph.Bytes{}
	w := world{Options: options(t, FIFO, 1, budget), ctx: t.Context(), kinds: map[Kind]*profiledKind{}}
	n := newNode("any", w.Facts, false)
	defer n.device.Close()
	w.planner = planner.Describe(n.device, planner.Roofline(w.Facts))
	if err := w.load(small()); err != nil {
		t.Fatal(err)
	}
	for _, j := range w.jobs {
		peaks[j.name] = j.kind.peak
	}
	most := map[Way]graph.Bytes{}
	for _, way := range Ways() {
		jobs := run(t, small(), options(t, way, 2, budget)).Jobs
		for i, j := range jobs {
			var beside graph.Bytes
			for _, other := range jobs {
				if other.Device == j.Device && other.Start <= j.Start && j.Start < other.End {
					beside += peaks[other.Name]
					if way == FIFO && other.Name != j.Name {
						t.Errorf("%s: job %s begins at %.3f s beside %s", way, j.Name, j.Start, other.Name)
					}
				}
			}
			most[way] = max(most[way], beside)
			if way == FIFO && i > 0 && j.Start < jobs[i-1].Start {
				t.Errorf("job %s begins before the one that came before it", j.Name)
			}
			if j.Slowdown < 0.99 || j.Start < j.Submit || j.End <= j.Start {
				t.Errorf("%s: %+v", way, j)
			}
		}
	}
	if most[Pack] > budget || most[Tensile] <= budget {
		t.Errorf("jobs beside each other would need %v without plans, and a device has %v", most, budget)
	}
}

// A job that fits no device is refused by every way, with what it would need.
func TestTooLarge(t *testing.T) {
	for _, way := range Ways() {
		_, err := Run(t.Context(), []Arrival{{Model: "vgg11-cifar", Batch: 64, Iterations: 3}},
			options(t, way, 1, 16*graph.MiB))
		if err == nil || !strings.Contains(err.Error(), "job1") {
			t.Errorf("%s: error %v", way, err)
		} else {
			t.Log(err)
		}
	}
}

// A trace whose jobs say how long they take alone takes that long.
func TestLengthsOfPublicTraces(t *testing.T) {
	r := run(t, []Arrival{{Model: "lenet", Batch: 64, Alone: 2 * time.Second}}, options(t, FIFO, 1, graph.GiB))
	if end := r.Jobs[0].End; math.Abs(end-2) > 0.001 {
		t.Errorf("a job of 2 s alone takes %.4f s", end)
	}
}

// When a short job ends beside which two long ones have shared the other device, one of these moves: both end earlier.
// Without moves nobody does.
func TestMovesEndEarlier(t *testing.T) {
	trace := []Arrival{{Model: "vgg11-cifar", Batch: 2048, Iterations: 2000},
		{Submit: time.Second, Model: "vgg11-cifar", Batch: 2048, Iterations: 300},
		{Submit: 2 * time.Second, Model: "vgg11-cifar", Batch: 2048, Iterations: 2000}}
	o := options(t, Tensile, 2, 40*graph.GiB)
	with := run(t, trace, o)
	o.NoMoves = true
	without := run(t, trace, o)
	t.Logf("makespan %.1f s with %d moves, %.1f s without", with.Makespan, with.Moves, without.Makespan)
	if with.Moves != 1 || without.Moves != 0 || with.Makespan > 0.9*without.Makespan {
		t.Errorf("makespan %.1f s with %d moves, %.1f s with %d", with.Makespan, with.Moves, without.Makespan,
			without.Moves)
	}
}
