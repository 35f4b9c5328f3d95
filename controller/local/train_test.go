package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tensile/controller"
	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/devicetest"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// tight is a budget for two small copies of lenet that their plans do not fit unless something moves.
const tight = 1792 * graph.KiB

// counted is a device that counts its open jobs and the bytes of their arenas, and can fail to open or close one.
type counted struct {
	device.Device
	arenas graph.Bytes // of all jobs
	max    graph.Bytes // of that
	jobs   map[device.Job]*countedJob
	opened int
	closed int
	full   int   // the job that cannot be opened; 0: none
	close  error // of every job
}

type countedJob struct {
	device.Job
	device *counted
	arena  graph.Bytes
}

var errDevice = errors.New("the device is full")

func newCounted(d device.Device) *counted {
	return &counted{Device: d, jobs: make(map[device.Job]*countedJob)}
}

func (d *counted) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	if d.opened+1 == d.full {
		return nil, errDevice
	}
	inner, err := d.Device.Open(g, o)
	if err != nil {
		return nil, err
	}
	d.opened++
	j := &countedJob{Job: inner, device: d}
	d.jobs[inner] = j
	return j, nil
}

func (d *counted) Next(ctx context.Context, wake <-chan struct{}) ([]device.Event, error) {
	events, err := d.Device.Next(ctx, wake)
	for i := range events {
		events[i].Job = d.jobs[events[i].Job]
	}
	return events, err
}

func (j *countedJob) Reserve(arena graph.Bytes) error {
	d := j.device
	d.arenas += arena - j.arena
	d.max, j.arena = max(d.max, d.arenas), arena
	return j.Job.Reserve(arena)
}

func (j *countedJob) Close() error {
	j.device.arenas -= j.arena
	j.device.closed++
	return errors.Join(j.Job.Close(), j.device.close)
}

// setting is two small jobs on a device.
func setting(t *testing.T, d device.Device) ([]task.Task, *planner.Planned) {
	t.Helper()
	w, err := task.Load([]string{"lenet:2"}, task.Settings{Batch: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	request := asked(t, w, d)
	request.Policy, request.Budget = "tensile", tight
	planned, err := planner.Plan(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return w, planned
}

// within has a budget of this size and no plan but the first.
func within(budget graph.Bytes, iterations int) Options {
	return Options{Config: controller.Config{Policy: "tensile", Budget: budget, NoReplan: true}, Iterations: iterations}
}

// on describes a device for plans by the roofline.
func on(d device.Device) planner.Device { return planner.Describe(d, planner.Roofline(d.Facts())) }

// asked is the request for plans of tasks on a device, by the roofline.
func asked(t testing.TB, tasks []task.Task, d device.Device) scheduler.Request {
	t.Helper()
	r, err := on(d).FirstRequest(tasks)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func simulated(t *testing.T) *counted {
	t.Helper()
	facts, err := cost.Device("v100")
	if err != nil {
		t.Fatal(err)
	}
	return newCounted(sim.New(facts, sim.Options{}))
}

func computing(t *testing.T) *counted { return computingBy(t, 1) }

// computingBy opens the cpu device with a number of threads.
func computingBy(t *testing.T, threads int) *counted {
	t.Helper()
	d, err := cpu.New(cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return newCounted(d)
}

func TestTrain(t *testing.T) {
	for name, d := range map[string]*counted{"cpu": computing(t), "sim": simulated(t)} {
		w, planned := setting(t, d)
		var seen [2][]int
		var stalls [2]time.Duration
		o := within(tight, 3)
		o.Observe = func(it Iterated) {
			seen[it.Job] = append(seen[it.Job], it.Report.Iteration)
			stalls[it.Job] += it.Report.Stall
			if (it.Report.Loss == nil) != (name == "sim") {
				t.Errorf("%s: job %d, iteration %d: loss %v", name, it.Job, it.Report.Iteration, it.Report.Loss)
			}
			if want := planned.Jobs[it.Job].Footprint.Peak; it.SlotPeak != want {
				t.Errorf("%s: job %d: a slot peak of %d, want %d", name, it.Job, it.SlotPeak, want)
			}
		}
		run, err := Train(t.Context(), d, on(d), w, o)
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{0, 1, 2}; !slices.Equal(seen[0], want) || !slices.Equal(seen[1], want) {
			t.Errorf("%s: iterations %v were observed", name, seen)
		}
		if d.opened != 2 || d.closed != 2 {
			t.Errorf("%s: %d jobs opened, %d closed", name, d.opened, d.closed)
		}
		for i, j := range run.Jobs {
			if j.Iterations != 3 || j.Plans != 1 || j.Touched <= 0 || j.Touched > j.Arena ||
				j.Arena != planned.Jobs[i].Layout.Arena ||
				j.End <= j.Begin {
				t.Errorf("%s: job %d: %d iterations, %d plans, touched %d, from %v to %v", name, i, j.Iterations,
					j.Plans, j.Touched, j.Begin, j.End)
			}
			if j.Stall != stalls[i] {
				t.Errorf("%s: job %d: stall %v, sum of the reports %v", name, i, j.Stall, stalls[i])
			}
			if hasData := j.Weights != nil && len(j.Losses) == 3; hasData != (name == "cpu") {
				t.Errorf("%s: job %d has %d weights and %d losses", name, i, len(j.Weights), len(j.Losses))
			}
		}
	}
}

// A graph that is no classifier of images trains on noise, with the same bits under any plan.
func TestTrainNoise(t *testing.T) {
	for _, threads := range []int{1, 2} {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) { trainNoise(t, computingBy(t, threads)) })
	}
}

func trainNoise(t *testing.T, d *counted) {
	w := []task.Task{{Name: "zoo", Model: "zoo", Graph: devicetest.Zoo(), Seed: 4},
		{Name: "tiny", Model: "tiny", Graph: devicetest.Tiny(), Seed: 5}}
	request := asked(t, w, d)
	train := func(policy string, budget graph.Bytes) (*planner.Planned, *Run) {
		request.Policy, request.Budget = policy, budget
		planned, err := planner.Plan(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		o := within(budget, 4)
		o.Policy = policy
		run, err := Train(t.Context(), d, on(d), w, o)
		if err != nil {
			t.Fatal(err)
		}
		return planned, run
	}
	plain, vanilla := train("none-live", 0)
	planned, run := train("tensile", plain.Arena*9/10)
	sameBits(t, "within nine tenths of the memory", run, vanilla)
	for i, j := range run.Jobs {
		if len(j.Losses) != 4 || planned.Jobs[i].Layout.Arena > plain.Jobs[i].Layout.Arena {
			t.Errorf("job %d: %d losses, an arena of %d", i, len(j.Losses), planned.Jobs[i].Layout.Arena)
		}
	}
}

// A context that is done ends the run with its cause, before the first iteration or between two, and everything that
// was opened is closed.
func TestTrainCancelled(t *testing.T) {
	cause := errors.New("enough")
	for _, d := range []*counted{computing(t), simulated(t)} {
		w, _ := setting(t, d)
		for after := range 3 {
			ctx, cancel := context.WithCancelCause(t.Context())
			if after == 0 {
				cancel(cause)
			}
			seen := 0
			o := within(0, 1000)
			o.Observe = func(Iterated) {
				if seen++; seen == after {
					cancel(cause)
				}
			}
			run, err := Train(ctx, d, on(d), w, o)
			if run != nil || !errors.Is(err, cause) {
				t.Errorf("%s: cancelled after %d iterations: run %v, error %v", d.Name(), after, run, err)
			}
			if d.opened != 2*after || d.closed != d.opened {
				t.Errorf("%s: cancelled after %d iterations: %d jobs opened, %d closed", d.Name(), after, d.opened,
					d.closed)
			}
			cancel(nil)
		}
		// The device still works.
		if _, err := Train(t.Context(), d, on(d), w, within(0, 2)); err != nil {
			t.Errorf("%s: after cancelled runs: %v", d.Name(), err)
		}
	}
}

// Trouble with the device is an error, and what was opened is closed.
func TestTrainTrouble(t *testing.T) {
	d := simulated(t)
	w, _ := setting(t, d)
	d.full = 2
	if _, err := Train(t.Context(), d, on(d), w, within(0, 2)); !errors.Is(err, errDevice) || d.opened != 1 ||
		d.closed != 1 {
		t.Errorf("a device that is full at the second job: %v, %d opened, %d closed", err, d.opened, d.closed)
	}

	d = simulated(t)
	d.close = errDevice
	if _, err := Train(t.Context(), d, on(d), w, within(0, 2)); !errors.Is(err, errDevice) {
		t.Errorf("a device whose jobs fail to close: %v", err)
	}

	d = simulated(t)
	if _, err := Train(t.Context(), d, on(d), w, within(100*graph.KiB, 2)); err == nil ||
		!strings.HasPrefix(err.Error(), "job lenet.1 cannot run here, even alone: it needs") || d.opened != 0 {
		t.Errorf("a budget that no job fits: %v, %d opened", err, d.opened)
	}

	if _, err := Train(t.Context(), d, on(d), []task.Task{w[0], w[0]}, within(0, 2)); err == nil ||
		err.Error() != "two jobs are called lenet.1" || d.opened != 0 {
		t.Errorf("two jobs of one name: %v, %d opened", err, d.opened)
	}
}
