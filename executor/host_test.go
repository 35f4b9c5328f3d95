package executor_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/executor"
	"tensile/graph"
	"tensile/models"
	"tensile/plan"
	"tensile/program"
)

func lenet(t *testing.T) *task {
	t.Helper()
	return newTask(t, "lenet", "lenet", models.Config{Image: 12, Batch: 2}, 5)
}

// A stopped job keeps what it has trained, to the iteration, and has given its memory back; the other one goes on.
func TestStop(t *testing.T) {
	const iterations = 12
	d := openCPU(t)
	stopped, other := lenet(t), lenet(t)
	other.name = "other"
	w := watch(t, d, 0)
	var h *executor.Host
	h = executor.NewHost(w, 0, func(r *executor.Report) {
		if r.Job == stopped.name && r.Iteration == 4 {
			h.Stop(stopped.name)
			h.Change(stopped.name, stopped.plan(d, "none-all", 0)) // too late
		}
	})
	defer closeHost(t, h)
	for _, k := range []*task{stopped, other} {
		if err := h.Add(k.spec(iterations), k.plan(d, "none-live", 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := len(stopped.losses); n < 5 || n > 7 {
		t.Errorf("stopped after iteration 4, %d were trained, want those in flight and no more", n)
	}
	for _, k := range []*task{stopped, other} {
		k.take(h)
		k.same(k.vanilla(d, len(k.losses)))
		if m := h.Machine(k.name); m.State() != executor.Finished || m.Plans() != 1 {
			t.Errorf("job %s is %s after %d plans", k.name, m.State(), m.Plans())
		}
	}
	if len(other.losses) != iterations {
		t.Errorf("the other job was trained for %d iterations, want %d", len(other.losses), iterations)
	}
	for _, j := range w.jobs {
		if j.arena != 0 {
			t.Errorf("job %s ended with an arena of %s", j.name, j.arena)
		}
	}
}

// Jobs for which there is no room wait for the end of others, and train all the same.
func TestJobsInTurn(t *testing.T) { engines(t, jobsInTurn) }

func jobsInTurn(t *testing.T, d *cpu.Device) {
	var tasks []*task
	for _, name := range []string{"a", "b", "c"} {
		k := lenet(t)
		k.name = name
		tasks = append(tasks, k)
	}
	p := tasks[0].plan(d, "none-live", 0)
	w := watch(t, d, p.Program().Arena)
	h := executor.NewHost(w, p.Program().Arena, nil)
	defer closeHost(t, h)
	for _, k := range tasks {
		if err := h.Add(k.spec(3), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := tasks[0].vanilla(d, 3)
	for _, k := range tasks {
		k.take(h)
		k.same(want)
	}
}

// A run that is cut short in its middle is closed without a trace: no goroutine is left, and the device trains on.
func TestCancel(t *testing.T) {
	d := openCPU(t)
	tasks := small(t)
	goroutines := runtime.NumGoroutine()
	cause := errors.New("the test has seen enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	h := executor.NewHost(d, 0, func(r *executor.Report) {
		if r.Iteration == 2 {
			cancel(cause)
		}
	})
	for _, k := range tasks {
		if err := h.Add(k.spec(1<<20), k.plan(d, "none-live", 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Run(ctx); !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
	if n := runtime.NumGoroutine(); n < goroutines+4*len(tasks) {
		t.Errorf("%d goroutines during the run, %d before: the test sees no lanes", n, goroutines)
	}
	closeHost(t, h)
	settle(t, goroutines)

	fresh := openCPU(t)
	for _, k := range tasks {
		k.vanilla(d, 2).same(k.vanilla(fresh, 2))
	}
}

// settle lets goroutines that have nothing left to do come to their end.
func settle(t *testing.T, want int) {
	t.Helper()
	for range 1_000_000 {
		if runtime.NumGoroutine() <= want {
			return
		}
		runtime.Gosched()
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%d goroutines are left, %d before:\n%s", runtime.NumGoroutine(), want,
		stacks[:runtime.Stack(stacks, true)])
}

// altered returns a program whose first step with scratch is changed.
func altered(t *testing.T, p program.Proven, change func(*plan.Step)) program.Proven {
	t.Helper()
	copied := *p.Program().Plan
	copied.Steps = slices.Clone(copied.Steps)
	change(&copied.Steps[slices.IndexFunc(copied.Steps, func(s plan.Step) bool { return s.Scratch > 0 })])
	return placed(t, p, &copied, p.Program().Align, 0)
}

// larger returns a program with an arena that is larger by so many bytes.
func larger(t *testing.T, p program.Proven, by graph.Bytes) program.Proven {
	t.Helper()
	return placed(t, p, p.Program().Plan, p.Program().Align, by)
}

// placed proves a plan for a program's graph at other places, in an arena that is an even multiple of align and so many
// bytes larger.
func placed(t *testing.T, p program.Proven, other *plan.Plan, align, spare graph.Bytes) program.Proven {
	t.Helper()
	g := p.Program().Graph
	l, err := program.Place(g, other, align)
	if err != nil {
		t.Fatal(err)
	}
	l.Arena = (l.Arena+2*align-1)/(2*align)*(2*align) + spare
	q, err := program.Prove(g, other, l, program.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// What cannot be added is an error that says why, and leaves the host as it was.
func TestAddErrors(t *testing.T) {
	d := openCPU(t)
	k := lenet(t)
	good := k.plan(d, "none-live", 0)
	tests := []struct {
		name string
		p    program.Proven
		want string
	}{
		{"zero value", program.Proven{}, "job lenet: its program was not proven"},
		{"scratch", altered(t, good, func(s *plan.Step) { s.Scratch -= 4 }), "job lenet: step 0: conv1 needs"},
		{"variant", altered(t, good, func(s *plan.Step) { s.Variant = "winograd" }),
			`job lenet: step 0: the device has no variant "winograd" of conv1`},
		{"budget", larger(t, good, d.Align()), "job lenet: its plan needs an arena of"},
		{"alignment", placed(t, good, good.Program().Plan, d.Align()/2, 0), "job lenet: its plan aligns to"},
	}
	w := watch(t, d, good.Program().Arena)
	h := executor.NewHost(w, good.Program().Arena, nil)
	defer closeHost(t, h)
	for _, test := range tests {
		if err := h.Add(k.spec(2), test.p); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want it to contain %q", test.name, err, test.want)
		}
	}
	w.Device = refusing{d}
	refused := k.again()
	refused.name = "refused"
	if err := h.Add(refused.spec(2), good); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
	w.Device = d
	if err := h.Add(k.spec(2), good); err != nil {
		t.Fatal(err)
	}
	if err := h.Add(k.spec(2), good); err == nil || err.Error() != "add job lenet: there is a job of that name" {
		t.Errorf("added twice: error %v", err)
	}
	if err := h.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(k.losses) != 2 || len(w.jobs) != 1 {
		t.Errorf("%d iterations were trained in %d jobs, want 2 in 1", len(k.losses), len(w.jobs))
	}
}

// A change to what the device cannot run, or to a job that there is not, ends the run.
func TestChangeErrors(t *testing.T) {
	d := openCPU(t)
	k := lenet(t)
	good := k.plan(d, "none-live", 0)
	tests := []struct {
		name string
		wish func(h *executor.Host)
		want string
	}{
		{"variant", func(h *executor.Host) {
			h.Change("lenet", altered(t, good, func(s *plan.Step) { s.Variant = "winograd" }))
		}, `the device has no variant "winograd" of conv1`},
		{"nobody", func(h *executor.Host) { h.Change("vgg16", good) }, "there is no job vgg16"},
		{"stop nobody", func(h *executor.Host) { h.Stop("vgg16") }, "there is no job vgg16"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := executor.NewHost(d, 0, nil)
			defer closeHost(t, h)
			if err := h.Add(k.again().spec(1<<20), good); err != nil {
				t.Fatal(err)
			}
			test.wish(h)
			if err := h.Run(context.Background()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want it to contain %q", err, test.want)
			}
		})
	}
}

// A wish is heeded at once, also while no command ends: here the loader does not return before Run has.
func TestWishWakes(t *testing.T) {
	d := openCPU(t)
	k := lenet(t)
	h := executor.NewHost(d, 0, nil)
	defer closeHost(t, h)
	returned := make(chan struct{})
	spec := k.spec(1)
	spec.Input = func(_ int, s graph.StorageID, _ device.Memory) {
		if s == k.inputs[0] {
			h.Stop("nobody")
			<-returned
		}
	}
	if err := h.Add(spec, k.plan(d, "none-live", 0)); err != nil {
		t.Fatal(err)
	}
	if err := h.Run(context.Background()); err == nil || err.Error() != "there is no job nobody" {
		t.Errorf("error %v", err)
	}
	close(returned)
}

var errFull = errors.New("full")

// refusing is a device with no room for jobs.
type refusing struct{ device.Device }

func (refusing) Open(*graph.Graph, device.JobOptions) (device.Job, error) { return nil, errFull }
