package executor_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tensile/device"
	"tensile/executor"
	"tensile/graph"
	"tensile/models"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/proof"
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
	var h *host
	h = newHost(w, func(r *executor.Report) {
		if r.Job == stopped.name && r.Iteration == 4 {
			h.Stop(stopped.name)
			h.Change(stopped.name, stopped.plan(d, "none-all", 0)) // too late
		}
	})
	defer closeHost(t, h.Host)
	for _, k := range []*task{stopped, other} {
		h.Submit(k.spec(iterations), k.plan(d, "none-live", 0))
	}
	if err := run(context.Background(), h.Host); err != nil {
		t.Fatal(err)
	}
	if n := len(stopped.losses); n < 5 || n > 7 {
		t.Errorf("stopped after iteration 4, %d were trained, want those in flight and no more", n)
	}
	for _, k := range []*task{stopped, other} {
		k.take(h.ended[k.name])
		k.same(k.vanilla(d, len(k.losses)))
		if n := h.ended[k.name].Plans; n != 1 {
			t.Errorf("job %s had %d plans", k.name, n)
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

// A run that is cut short in its middle is closed without a trace: no goroutine is left, and the device trains on.
func TestCancel(t *testing.T) {
	d := openCPU(t)
	tasks := small(t)
	goroutines := runtime.NumGoroutine()
	cause := errors.New("the test has seen enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	h := newHost(d, func(r *executor.Report) {
		if r.Iteration == 2 {
			cancel(cause)
		}
	})
	for _, k := range tasks {
		h.Submit(k.spec(1<<20), k.plan(d, "none-live", 0))
	}
	if err := run(ctx, h.Host); !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
	if n := strings.Count(stacks(), "(*lane).run("); n == 0 { // some may be about to begin
		t.Error("no lanes during the run: the test sees none")
	}
	closeHost(t, h.Host)
	settle(t, goroutines)

	fresh := openCPU(t)
	for _, k := range tasks {
		k.vanilla(d, 2).same(k.vanilla(fresh, 2))
	}
}

// settle lets goroutines that have nothing left to do come to their end.
func settle(t *testing.T, want int) {
	t.Helper()
	end, limited := t.Deadline()
	for !limited || time.Until(end) > 10*time.Second {
		if runtime.NumGoroutine() <= want {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines are left, %d before:\n%s", runtime.NumGoroutine(), want, stacks())
}

// stacks are those of all goroutines.
func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

// altered returns a program whose first step with scratch is changed.
func altered(t *testing.T, p proof.Proven, change func(*plan.Step)) proof.Proven {
	t.Helper()
	copied := *p.Program().Plan
	copied.Steps = slices.Clone(copied.Steps)
	change(&copied.Steps[slices.IndexFunc(copied.Steps, func(s plan.Step) bool { return s.Scratch > 0 })])
	return placed(t, p, &copied, p.Program().Align, 0)
}

// placed proves a plan for a program's graph at other places, in an arena that is an even multiple of align and so many
// bytes larger.
func placed(t *testing.T, p proof.Proven, other *plan.Plan, align, spare graph.Bytes) proof.Proven {
	t.Helper()
	g := p.Program().Graph
	l, err := compile.Place(g, other, align)
	if err != nil {
		t.Fatal(err)
	}
	l.Arena = (l.Arena+2*align-1)/(2*align)*(2*align) + spare
	q, err := compile.Prove(g, other, l, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// A job that cannot be added ends with an error that says why, and leaves the host as it was.
func TestSubmitFails(t *testing.T) {
	d := openCPU(t)
	k := lenet(t)
	good := k.plan(d, "none-live", 0)
	tests := []struct {
		name string
		p    proof.Proven
		want string
	}{
		{"zero value", proof.Proven{}, "job lenet: its program was not proven"},
		{"scratch", altered(t, good, func(s *plan.Step) { s.Scratch -= 4 }), "job lenet: step 28: conv2.dx needs"},
		{"variant", altered(t, good, func(s *plan.Step) { s.Variant = "winograd" }),
			`job lenet: step 28: the device has no variant "winograd" of conv2.dx`},
		{"alignment", placed(t, good, good.Program().Plan, d.Align()/2, 0), "job lenet: its plan aligns to"},
	}
	w := watch(t, d, 0)
	h := newHost(w, nil)
	defer closeHost(t, h.Host)
	try := func(s executor.Spec, p proof.Proven) error {
		h.Submit(s, p)
		if err := run(t.Context(), h.Host); err != nil {
			t.Fatal(err)
		}
		return h.ended[s.Name].Err
	}
	for _, test := range tests {
		if err := try(k.spec(2), test.p); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want it to contain %q", test.name, err, test.want)
		}
	}
	w.Device = refusing{d}
	refused := k.again()
	refused.name = "refused"
	if err := try(refused.spec(2), good); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
	w.Device = d
	if err := try(k.spec(2), good); err != nil || len(h.refused) > 0 {
		t.Fatal(err, h.refused)
	}
	if try(k.spec(2), good); len(h.refused) != 1 ||
		h.refused[0].Error() != "add job lenet: there is a job of that name" {
		t.Errorf("added twice: refused were %v", h.refused)
	}
	if len(k.losses) != 2 || len(w.jobs) != 1 {
		t.Errorf("%d iterations were trained in %d jobs, want 2 in 1", len(k.losses), len(w.jobs))
	}
}

// A command is carried out at once, also while nothing ends on the device: here the loader does not return before Serve
// has.
func TestCommandWakes(t *testing.T) {
	d := openCPU(t)
	k := lenet(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	h := executor.NewHost(d, func(e executor.Event) {
		if e.Refused != nil {
			cancel(e.Refused)
		}
	})
	defer closeHost(t, h)
	returned := make(chan struct{})
	spec := k.spec(1)
	spec.Input = func(_ int, s graph.StorageID, _ device.Memory) {
		if s == k.inputs[0] {
			h.Stop("nobody")
			<-returned
		}
	}
	h.Submit(spec, k.plan(d, "none-live", 0))
	if err := h.Serve(ctx); err == nil || !strings.HasSuffix(err.Error(), "there is no job nobody") {
		t.Errorf("error %v", err)
	}
	close(returned)
}

var errFull = errors.New("full")

// refusing is a device with no room for jobs.
type refusing struct{ device.Device }

func (refusing) Open(*graph.Graph, device.JobOptions) (device.Job, error) { return nil, errFull }
