package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tensile/controller/local"
	"tensile/data/weights"
	"tensile/device"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/wire"
)

// A job that is trained through an agent comes to what local.Train comes to with the same plan; on the simulator, to
// the nanosecond.
func TestTrain(t *testing.T) {
	for name, open := range map[string]func(*testing.T) device.Device{"cpu": computing, "sim": simulated} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, open(t))
			w := s.give("job.1", 6)
			p := w.plan(1, 70)
			s.deliver(p)
			if name == "cpu" {
				w.spec.Save = filepath.Join(t.TempDir(), "saved")
			}
			s.orders(false, wire.Assignment{Spec: w.spec, Epoch: 1, Copies: true})
			j := s.bus.awaitState(t, "job.1", wire.Finished)
			s.leave()
			if j.Iteration != 6 || j.Epoch != 1 || j.Arena != 0 || j.Error != "" {
				t.Errorf("the job is %+v", j)
			}
			want := w.alone(p, 6, task.Synthetic(w.g, w.spec.Seed))
			w.same(j.Result, want)
			if r := j.Result; r.Touched != want.Touched || r.Plans != 1 || r.Transition <= 0 || r.Begin >= r.End ||
				r.Stall > r.End-r.Begin {
				t.Errorf("the job came to %+v, alone to %+v", r, want)
			}
			if r := j.Result; name == "sim" && (r.End-r.Begin != want.End-want.Begin || r.Stall != want.Stall ||
				r.Transition != want.Transition) {
				t.Errorf("the job took %v with %v of stall and %v of transition, alone %v, %v and %v", r.End-r.Begin,
					r.Stall, r.Transition,
					want.End-want.Begin, want.Stall, want.Transition)
			}
			s.checkSaid(j.Result, len(p.Plan.Steps))
			if name == "cpu" {
				w.checkSaved(want, 6)
			}
		})
	}
}

// checkSaid checks the reports and the log of a job of six iterations.
func (s *setting) checkSaid(result *wire.Result, steps int) {
	s.t.Helper()
	if len(s.bus.reports) != 6 {
		s.t.Fatalf("%d reports, want 6", len(s.bus.reports))
	}
	var stall time.Duration
	for i, r := range s.bus.reports {
		if r.Executor != executorName || r.Job != "job.1" || r.Epoch != 1 || r.Iteration != i ||
			len(r.Steps) != steps || r.Wall <= 0 {
			s.t.Errorf("report %d is %+v", i, r)
		}
		var stalls time.Duration
		for _, c := range r.Copies {
			stalls += c.Stall
		}
		if len(r.Copies) == 0 || stalls > r.Stall {
			s.t.Errorf("report %d has %d copies that stall for %v, the iteration for %v", i, len(r.Copies), stalls,
				r.Stall)
		}
		if hasLoss := r.Loss != nil; hasLoss != (result.Losses != nil) || hasLoss &&
			float32(*r.Loss) != result.Losses[i] {
			s.t.Errorf("report %d has loss %v, the job %v", i, r.Loss, result.Losses)
		}
		stall += r.Stall
	}
	if stall != result.Stall {
		s.t.Errorf("a stall of %v, that of the reports is %v", result.Stall, stall)
	}
	log := wire.LogSubject(executorName, "job.1") + ": "
	for i, want := range []string{"trains with layout 1 in", "iteration 0: ", "iteration 5: ",
		"finished after 6 iterations"} {
		if at := min(i, len(s.bus.lines)-1); at < 0 || !strings.HasPrefix(s.bus.lines[at], log+want) {
			s.t.Errorf("the log is %q, want its line %d to begin with %q", s.bus.lines, i, want)
		}
	}
}

func (w *work) checkSaved(want *local.JobRun, iterations int) {
	w.t.Helper()
	file, err := weights.Read(w.spec.Save)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(file.Tensors) != len(want.Weights) || file.Metadata["iterations"] != fmt.Sprint(iterations) ||
		file.Metadata["model"] != "lenet" {
		w.t.Errorf("%d tensors with metadata %v, want %d", len(file.Tensors), file.Metadata, len(want.Weights))
	}
	for _, x := range file.Tensors {
		i := slices.IndexFunc(w.g.Storages, func(s graph.Storage) bool { return s.Name == x.Name })
		if i < 0 || task.Digest(x.Data) != want.Weights[int32(i)] {
			w.t.Errorf("tensor %s is not what was trained", x.Name)
		}
	}
}

// What an interrupted executor saves of a job are the bits of an undisturbed run of as many iterations, whatever plans
// the job had. It says where they are, and what became of a job that was not to be saved.
func TestInterrupt(t *testing.T) {
	const forever = 1 << 20
	s := begin(t, computing(t))
	a, b := s.give("a", forever), s.give("b", forever)
	a.spec.Save = filepath.Join(t.TempDir(), "saved")
	a2 := a.plan(2, 70)
	for _, p := range []scheduler.Scheduled{a.plan(1, 100), a2, b.plan(1, 80)} {
		s.deliver(p)
	}
	s.orders(false, wire.Assignment{Spec: a.spec, Epoch: 1}, wire.Assignment{Spec: b.spec, Epoch: 1})
	s.bus.awaitState(t, "b", wire.Running)
	s.orders(false, wire.Assignment{Spec: a.spec, Epoch: 2}, wire.Assignment{Spec: b.spec, Epoch: 1})
	s.bus.await(t, "iterations with layout 2", func() bool {
		last := len(s.bus.reports) - 1
		return last > 0 && s.bus.reports[last].Job == "a" && s.bus.reports[last].Epoch == 2
	})
	close(s.interrupt)
	err := s.end()
	failed, other := s.bus.job("a"), s.bus.job("b")
	if failed.State != wire.Failed || failed.Iteration < 1 || failed.Error != "its executor was interrupted, saved in "+
		a.spec.Save || failed.Result.Saved != a.spec.Save {
		t.Fatalf("the last status has %+v", failed)
	}
	want := a.alone(a2, failed.Iteration, task.Synthetic(a.g, a.spec.Seed))
	a.same(failed.Result, want)
	a.checkSaved(want, failed.Iteration)
	if other.State != wire.Failed || len(other.Result.Losses) != other.Iteration || other.Result.Saved != "" {
		t.Errorf("the last status has %+v", other)
	}
	for _, line := range []string{fmt.Sprintf("job a ended after %d iterations, saved in %s", failed.Iteration,
		a.spec.Save),
		fmt.Sprintf("job b ended after %d iterations, not saved", other.Iteration)} {
		if _, ok := errors.AsType[*agent.InterruptedError](err); !ok || !strings.Contains(err.Error(), line) ||
			!strings.Contains(s.notices.String(), line) {
			t.Errorf("it ended with %q and notices %q, want %q", err, s.notices.String(), line)
		}
	}
}

// A job that could not be saved does not begin.
func TestUnwritable(t *testing.T) {
	for name, open := range map[string]func(*testing.T) device.Device{"save: the device has no data": simulated,
		"/none does not exist: make it first": computing} {
		s := begin(t, open(t))
		w := s.give("a", 3)
		w.spec.Save = filepath.Join(t.TempDir(), "none", "saved")
		s.deliver(w.plan(1, 100))
		s.orders(false, wire.Assignment{Spec: w.spec, Epoch: 1})
		if j := s.bus.awaitState(t, "a", wire.Failed); !strings.Contains(j.Error, name) || j.Epoch != 0 {
			t.Errorf("the job is %+v, want an error with %q", j, name)
		}
		s.leave()
	}
}

// Jobs that share an executor are planned anew, stopped and dropped in the middle, and a name is used again: each comes
// to the bits that it comes to alone.
func TestTogether(t *testing.T) {
	const forever = 1 << 20
	s := begin(t, computing(t))
	a, b, c := s.give("a", forever), s.give("b", forever), s.give("a", 4)
	a2, b1, c7 := a.plan(2, 70), b.plan(1, 80), c.plan(7, 75)
	for _, p := range []scheduler.Scheduled{a.plan(1, 100), a2, b1, c7} {
		s.deliver(p)
	}
	order := func(w *work, epoch int64, stop bool) wire.Assignment {
		return wire.Assignment{Spec: w.spec, Epoch: epoch, Stop: stop}
	}
	s.orders(false, order(a, 1, false), order(b, 1, false))
	s.bus.awaitState(t, "a", wire.Running)
	s.bus.awaitState(t, "b", wire.Running)
	s.orders(false, order(a, 2, false), order(b, 1, false))
	s.bus.await(t, "layout 2 and iterations of both", func() bool {
		trained := func(job string) bool {
			return slices.ContainsFunc(s.bus.reports, func(r wire.Report) bool { return r.Job == job })
		}
		return s.bus.job("a").Epoch == 2 && s.bus.job("a").Arena == a2.Layout.Arena && len(s.bus.reports) > 9 &&
			trained("a") && trained("b")
	})
	s.orders(false, order(a, 2, true), order(b, 1, false))
	stopped := s.bus.awaitState(t, "a", wire.Stopped)
	if r := stopped.Result; r.Plans != 2 || len(r.Losses) != stopped.Iteration || stopped.Iteration < 1 {
		t.Errorf("job a was stopped as %+v after %d iterations", r, stopped.Iteration)
	}
	a.same(stopped.Result, a.alone(a2, stopped.Iteration, task.Synthetic(a.g, a.spec.Seed)))

	s.orders(false, order(c, 7, false)) // another a; and b is dropped
	s.bus.await(t, "the orders to be seen", func() bool { return s.bus.status.Orders == s.number })
	finished := s.bus.awaitState(t, "a", wire.Finished)
	c.same(finished.Result, c.alone(c7, 4, task.Synthetic(c.g, c.spec.Seed)))
	s.bus.await(t, "b to go", func() bool { return len(s.bus.status.Jobs) == 1 })
	s.leave()
}

// Nothing that comes over the bus does harm: it is left or refused with a reason, and what is good is taken all the
// same.
func TestHostile(t *testing.T) {
	s := begin(t, computing(t))
	w := s.give("good", 3)
	p := w.plan(2, 90)
	wrong := *w
	wrong.spec.Name = "graph"
	wrong.spec.Graph = graph.Digest(strings.Repeat("ab", 32))
	lost := wrong
	lost.spec.Name, lost.spec.Graph = "lost", graph.Digest(strings.Repeat("cd", 32))
	folder := *w
	folder.spec.Name, folder.spec.Data = "folder", filepath.Join(t.TempDir(), "none")
	text, err := json.Marshal(w.g)
	if err != nil {
		t.Fatal(err)
	}
	s.bus.store(wire.GraphObject(wrong.spec.Graph), text)
	s.bus.store(wire.LayoutObject("good", s.ids["good"][0], 1), []byte("{"))

	for _, value := range []string{"", "{", `{"version":9,"kind":"orders","body":{}}`,
		`{"version":1,"kind":"orders","body":{"executor":"x-1","number":-4}}`} {
		s.bus.order(t, []byte(value))
	}
	s.bus.order(t, nil)
	s.bus.order(t, wire.Encode(wire.Orders{Executor: "x-2", Number: 99, Leave: true}))
	jobs := []wire.Assignment{{Spec: w.spec, Epoch: 1}, {Spec: wrong.spec, Epoch: 1}, {Spec: lost.spec, Epoch: 1},
		{Spec: folder.spec, Epoch: 1}}
	s.orders(false, jobs...)
	if j := s.bus.awaitState(t, "graph", wire.Failed); !strings.Contains(j.Error, "the graph that was fetched is") {
		t.Errorf("job %s failed: %s", j.Name, j.Error)
	}
	if j := s.bus.awaitState(t, "folder", wire.Failed); !strings.Contains(j.Error, "does not exist") {
		t.Errorf("job %s failed: %s", j.Name, j.Error)
	}
	s.bus.await(t, "refusals", func() bool {
		return strings.HasPrefix(s.bus.job("good").Error, "layout 1 is refused: ") &&
			strings.HasPrefix(s.bus.job("lost").Error, "fetch the graph: not found")
	})
	// What was not there comes later, and is found.
	jobs[0].Epoch = 2
	s.orders(false, jobs...)
	s.bus.await(t, "a layout to be missed", func() bool { return s.bus.job("good").Error == "layout 2: not found" })
	s.deliver(p)
	j := s.bus.awaitState(t, "good", wire.Finished)
	w.same(j.Result, w.alone(p, 3, task.Synthetic(w.g, w.spec.Seed)))
	s.leave()
}

// While nobody can be reached a job trains to its end. That is heard of when the bus is back, and then the executor may
// go.
func TestAway(t *testing.T) {
	s := begin(t, simulated(t))
	w := s.give("job", 300)
	s.deliver(w.plan(1, 80))
	s.bus.last = 6
	s.orders(true, wire.Assignment{Spec: w.spec, Epoch: 1})
	<-s.device.closed // it has ended, and is removed
	s.bus.leave(false)
	j := s.bus.awaitState(t, "job", wire.Finished)
	if err := s.end(); err != nil || j.Iteration != 300 || j.Result == nil {
		t.Errorf("error %v, the job is %+v", err, j)
	}
	if n := len(s.bus.reports); n != 6 {
		t.Errorf("%d reports were heard, want 6", n)
	}
}

// A bus that takes its time with statuses keeps no job from training. The newest status is heard in the end.
func TestSlowBus(t *testing.T) {
	s := begin(t, simulated(t))
	s.bus.await(t, "the first status", func() bool { return s.bus.status.Number > 0 })
	slow := make(chan struct{})
	s.bus.do(func() error { s.bus.slow = slow; return nil })
	w := s.give("job", 50)
	s.deliver(w.plan(1, 80))
	s.orders(false, wire.Assignment{Spec: w.spec, Epoch: 1})
	<-s.device.closed
	if n := s.bus.late.Load(); n > 0 {
		t.Errorf("%d statuses were waited for", n)
	}
	close(slow)
	if j := s.bus.awaitState(t, "job", wire.Finished); j.Iteration != 50 {
		t.Errorf("the job is %+v", j)
	}
	s.leave()
}

// An executor that is told to end, or whose device fails, says that its jobs have failed, and why.
func TestEnds(t *testing.T) {
	enough := errors.New("enough")
	for name, test := range map[string]struct {
		end  func(*setting)
		want error
		text string
	}{
		"told":   {func(s *setting) { s.cancel(enough) }, enough, "enough"},
		"broken": {func(s *setting) { s.device.broken.Store(true) }, errBroken, "the device has failed: it is on fire"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, computing(t))
			w := s.give("job", 1<<20)
			s.deliver(w.plan(1, 80))
			s.orders(false, wire.Assignment{Spec: w.spec, Epoch: 1})
			s.bus.await(t, "reports", func() bool { return len(s.bus.reports) > 5 })
			test.end(s)
			if err := s.end(); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if j := s.bus.job("job"); j.State != wire.Failed || j.Error != test.text || j.Arena != 0 {
				t.Errorf("the job is %+v", j)
			}
		})
	}
}

// A job whose weights cannot be saved any more, when it has trained, has failed.
func TestSaveFails(t *testing.T) {
	s := begin(t, computing(t))
	w := s.give("job", 1<<20)
	folder := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	w.spec.Save = filepath.Join(folder, "saved")
	s.deliver(w.plan(1, 100))
	s.orders(false, wire.Assignment{Spec: w.spec, Epoch: 1})
	s.bus.await(t, "reports", func() bool { return len(s.bus.reports) > 0 })
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	s.orders(false, wire.Assignment{Spec: w.spec, Epoch: 1, Stop: true})
	j := s.bus.awaitState(t, "job", wire.Failed)
	if want := "write weights " + w.spec.Save; !strings.Contains(j.Error, want) || j.Result == nil ||
		j.Result.Saved != "" {
		t.Errorf("the job is %+v, want an error with %q", j, want)
	}
	s.leave()
}

// What cannot begin is an error at once.
func TestRunErrors(t *testing.T) {
	bus := newMemory()
	bus.away = true
	for name, want := range map[string]string{"": "executor: the name", "x": "wait for orders: no connection"} {
		d := simulated(t)
		err := agent.Run(t.Context(), agent.Options{Executor: name, Device: d, Host: agent.HostMaker(d), Bus: bus})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("executor %q: error %v, want %q", name, err, want)
		}
	}
}
