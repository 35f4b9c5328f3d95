package local

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/cost"
	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/devicetest"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/internal/needs"
	"tensile/planner"
	"tensile/report"
	"tensile/scheduler"
	"tensile/task"
	"tensile/workload"
)

// tight is a budget for two small copies of lenet that their plans do not fit unless something moves.
const tight = 1792 * graph.KiB

// counted is a device that counts its open jobs, and can fail to open or close one.
type counted struct {
	device.Device
	jobs   map[device.Job]*countedJob
	opened int
	closed int
	full   int   // the job that cannot be opened; 0: none
	close  error // of every job
}

type countedJob struct {
	device.Job
	device *counted
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
	j := &countedJob{inner, d}
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

func (j *countedJob) Close() error {
	j.device.closed++
	return errors.Join(j.Job.Close(), j.device.close)
}

// setting is two small jobs on a device.
func setting(t *testing.T, d device.Device) ([]task.Task, *planner.Planned) {
	t.Helper()
	w, err := workload.Load([]string{"lenet:2"}, workload.Settings{Batch: 2, Seed: 1})
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

// asked is the request for plans of tasks on a device, by the roofline.
func asked(t testing.TB, tasks []task.Task, d device.Device) scheduler.Request {
	t.Helper()
	r, err := planner.Of(d, planner.Roofline(d.Facts())).First(tasks)
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

func computing(t *testing.T) *counted { return computingBy(t, "gonum") }

// computingBy opens the cpu device with an engine, and skips the test where that is OpenBLAS and not there.
func computingBy(t *testing.T, engine string) *counted {
	t.Helper()
	d, err := cpu.New(cpu.Options{NoOpenBLAS: engine == "gonum"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if engine == "openblas" {
		needs.OpenBLAS(t, d.Name())
	}
	return newCounted(d)
}

func TestTrain(t *testing.T) {
	for name, d := range map[string]*counted{"cpu": computing(t), "sim": simulated(t)} {
		w, planned := setting(t, d)
		var seen [2][]int
		var stalls [2]time.Duration
		run, err := Train(t.Context(), d, w, planned.Programs, tight, 3, func(it Iterated) {
			seen[it.Job] = append(seen[it.Job], it.Report.Iteration)
			stalls[it.Job] += it.Report.Stall
			if isNaN := math.IsNaN(float64(it.Loss)); isNaN != (name == "sim") {
				t.Errorf("%s: job %d, iteration %d: loss %v", name, it.Job, it.Report.Iteration, it.Loss)
			}
		})
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
			if j.Iterations != 3 || j.Plans != 1 || j.Touched <= 0 || j.Touched > planned.Jobs[i].Layout.Arena ||
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
	for _, engine := range []string{"gonum", "openblas"} {
		t.Run("engine="+engine, func(t *testing.T) { trainNoise(t, computingBy(t, engine)) })
	}
}

func trainNoise(t *testing.T, d *counted) {
	w := []task.Task{{Name: "zoo", Model: "zoo", Graph: devicetest.Zoo(), Seed: 4},
		{Name: "tiny", Model: "tiny", Graph: devicetest.Tiny(), Seed: 5}}
	request := asked(t, w, d)
	peaks, err := planner.Vanilla(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	train := func(policy string, budget graph.Bytes) (*planner.Planned, *report.Run) {
		request.Policy, request.Budget = policy, budget
		planned, err := planner.Plan(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		run, err := Train(t.Context(), d, w, planned.Programs, budget, 4, nil)
		if err != nil {
			t.Fatal(err)
		}
		return planned, run
	}
	plain, vanilla := train("none-live", 0)
	planned, run := train("tensile", plain.Arena*9/10)
	compared := report.Compare(w, planned, report.MemoryOf(planned, peaks), 0, run, vanilla)
	for i, j := range compared.Jobs {
		if j.BitIdentical == nil || !*j.BitIdentical || j.LossFirst == nil || j.VanillaLive != peaks.Live[i] {
			t.Errorf("%s: bit_identical %v, loss %v, vanilla live %d, want %d", j.Job, j.BitIdentical, j.LossFirst,
				j.VanillaLive, peaks.Live[i])
		}
	}
	// A run that went wrong in one bit of one weight is told from it.
	for s := range run.Jobs[1].Weights {
		run.Jobs[1].Weights[s] = task.Digest([]float32{1})
		break
	}
	compared = report.Compare(w, planned, report.MemoryOf(planned, peaks), 0, run, vanilla)
	if !*compared.Jobs[0].BitIdentical || *compared.Jobs[1].BitIdentical {
		t.Error("a wrong weight of the second job is not seen, or seen in the first")
	}
}

// A context that is done ends the run with its cause, before the first iteration or between two, and everything that
// was opened is closed.
func TestTrainCancelled(t *testing.T) {
	cause := errors.New("enough")
	for _, d := range []*counted{computing(t), simulated(t)} {
		w, planned := setting(t, d)
		for after := range 3 {
			before := d.opened
			ctx, cancel := context.WithCancelCause(t.Context())
			if after == 0 {
				cancel(cause)
			}
			seen := 0
			run, err := Train(ctx, d, w, planned.Programs, 0, 1000, func(Iterated) {
				if seen++; seen == after {
					cancel(cause)
				}
			})
			if run != nil || !errors.Is(err, cause) {
				t.Errorf("%s: cancelled after %d iterations: run %v, error %v", d.Name(), after, run, err)
			}
			if d.opened != before+2 || d.closed != d.opened {
				t.Errorf("%s: cancelled after %d iterations: %d jobs opened, %d closed", d.Name(), after, d.opened,
					d.closed)
			}
			cancel(nil)
		}
		// The device still works.
		if _, err := Train(t.Context(), d, w, planned.Programs, 0, 2, nil); err != nil {
			t.Errorf("%s: after cancelled runs: %v", d.Name(), err)
		}
	}
}

// Trouble with the device is an error, and what was opened is closed.
func TestTrainTrouble(t *testing.T) {
	d := simulated(t)
	w, planned := setting(t, d)
	d.full = 2
	if _, err := Train(t.Context(), d, w, planned.Programs, 0, 2, nil); !errors.Is(err, errDevice) || d.opened != 1 ||
		d.closed != 1 {
		t.Errorf("a device that is full at the second job: %v, %d opened, %d closed", err, d.opened, d.closed)
	}

	d = simulated(t)
	d.close = errDevice
	if _, err := Train(t.Context(), d, w, planned.Programs, 0, 2, nil); !errors.Is(err, errDevice) {
		t.Errorf("a device whose jobs fail to close: %v", err)
	}

	d = simulated(t)
	if _, err := Train(t.Context(), d, w, planned.Programs, planned.Programs[0].Program().Arena-1, 2,
		nil); err == nil ||
		!strings.Contains(err.Error(), "job lenet.1: its plan needs an arena of") || d.closed != d.opened {
		t.Errorf("a budget below the first arena: %v, %d opened, %d closed", err, d.opened, d.closed)
	}
}

// Equal simulated runs are equal in everything.
func TestTrainReproducible(t *testing.T) {
	var runs []*report.Run
	for range 2 {
		d := simulated(t)
		w, planned := setting(t, d)
		run, err := Train(t.Context(), d, w, planned.Programs, tight, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	if diff := cmp.Diff(runs[0], runs[1], cmp.AllowUnexported(report.Watched{})); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
}
