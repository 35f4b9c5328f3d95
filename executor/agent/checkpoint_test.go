package agent_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tensile/data/checkpoint"
	"tensile/device"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/wire"
)

// relay has executors with one folder of checkpoints train a job one after the other.
type relay struct {
	t      *testing.T
	open   func(*testing.T) device.Device
	folder string
	spec   wire.Spec // what jobs are beside the network
	number int64     // of the newest incarnation
	newest wire.Checkpoint
}

// begin starts an executor and has it train the next incarnation of the job.
func (r *relay) begin() (*setting, *work, scheduler.Scheduled) {
	r.t.Helper()
	s := beginIn(r.t, r.open(r.t), r.folder)
	w := s.give("job", r.spec.Iterations)
	w.spec.Checkpoint, w.spec.From, w.spec.AnyDevice = r.spec.Checkpoint, r.spec.From, r.spec.AnyDevice
	p := w.plan(1, []graph.Bytes{100, 70, 85}[r.number%3])
	s.deliver(p)
	r.number++
	s.orders(false, r.order(w))
	return s, w, p
}

func (r *relay) order(w *work) wire.Assignment {
	return wire.Assignment{Spec: w.spec, Epoch: 1, Incarnation: r.number, From: r.newest.Iteration}
}

// forever is more iterations than a job does before it is killed.
const forever = 1 << 20

// last is begin of an incarnation that trains a hundred iterations more, and finishes.
func (r *relay) last() (*setting, *work, scheduler.Scheduled) {
	r.t.Helper()
	list, err := filepath.Glob(filepath.Join(r.folder, "job-1", "*.safetensors"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.spec.Iterations = 100
	for _, path := range list {
		if c, err := checkpoint.Read(nil, path); err == nil { // some are torn
			r.spec.Iterations = max(r.spec.Iterations, c.Iteration+100)
		}
	}
	return r.begin()
}

// checkpointed waits until there is a checkpoint that the executor has written itself.
func (r *relay) checkpointed(s *setting) {
	r.t.Helper()
	s.bus.await(r.t, "a checkpoint", func() bool {
		c := s.bus.job("job").Checkpoint
		if c == nil || c.Iteration <= r.newest.Iteration {
			return false
		}
		r.newest = *c
		return true
	})
}

var errKilled = errors.New("killed")

// kill ends an executor without letting its jobs do anything more.
func (r *relay) kill(s *setting) {
	r.t.Helper()
	s.cancel(errKilled)
	if err := s.end(); !errors.Is(err, errKilled) {
		r.t.Errorf("it ended with %v", err)
	}
}

// finishes waits until the job has finished, and compares what it came to with an undisturbed run.
func (r *relay) finishes(s *setting, w *work, p scheduler.Scheduled) {
	r.t.Helper()
	j := s.bus.awaitState(r.t, "job", wire.Finished)
	w.same(j.Result, w.alone(p, r.spec.Iterations, task.Synthetic(w.g, w.spec.Seed)))
	s.leave()
	if left, err := filepath.Glob(filepath.Join(r.folder, "*", "*")); err != nil || len(left) > 0 {
		r.t.Errorf("of the job there is %q: %v", left, err)
	}
}

// logs wants a line in the log of the job.
func (r *relay) logs(s *setting, want string) {
	r.t.Helper()
	s.bus.await(r.t, "the line "+want, func() bool {
		return slices.ContainsFunc(s.bus.lines, func(line string) bool { return strings.Contains(line, want) })
	})
}

// both runs a test on a device with data and on one without.
func both(t *testing.T, every int, test func(*testing.T, *relay)) {
	for name, open := range map[string]func(*testing.T) device.Device{"cpu": computing, "sim": simulated} {
		t.Run(name, func(t *testing.T) {
			test(t, &relay{t: t, open: open, folder: filepath.Join(t.TempDir(), "checkpoints"),
				spec: wire.Spec{Iterations: forever, Checkpoint: wire.Interval{Iterations: every}}})
		})
	}
}

// A job whose executor is killed again and again goes on from its newest checkpoint, and comes to the losses and
// weights of a run that nothing disturbed. When it has finished its checkpoints go.
func TestCheckpoints(t *testing.T) {
	both(t, 10, func(t *testing.T, r *relay) {
		for range 3 {
			s, _, _ := r.begin()
			r.checkpointed(s)
			if r.newest.Iteration < 10 || r.newest.Bytes == 0 || filepath.Dir(r.newest.File) != filepath.Join(r.folder,
				"job-1") {
				t.Errorf("the checkpoint is %+v", r.newest)
			}
			r.kill(s)
		}
		s, w, p := r.last()
		r.logs(s, "from checkpoint "+r.folder)
		r.finishes(s, w, p)
	})
}

// A torn file is passed over with a line, and the job goes on from the one before; if all are torn it begins again. If
// there is none at all, where there was one elsewhere, it does not begin.
func TestTornCheckpoints(t *testing.T) {
	both(t, 5, func(t *testing.T, r *relay) {
		s, _, _ := r.begin()
		r.checkpointed(s)
		r.checkpointed(s)
		r.kill(s)
		list, err := filepath.Glob(filepath.Join(r.folder, "job-1", "*.safetensors"))
		if err != nil || len(list) != 2 {
			t.Fatalf("there are %q: %v", list, err)
		}
		found, err := checkpoint.Folder{Dir: r.folder}.Newest("job", 1, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		torn := filepath.Join(r.folder, found.Is.File)
		if err := os.Truncate(torn, int64(found.Is.Bytes)/2); err != nil {
			t.Fatal(err)
		}
		s, _, _ = r.begin()
		r.logs(s, "checkpoint "+torn+" is passed over: ")
		r.logs(s, "from checkpoint "+filepath.Join(r.folder, "job-1", "1-"))
		r.kill(s)
		list, err = filepath.Glob(filepath.Join(r.folder, "job-1", "*.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range list {
			if err := os.Truncate(path, 100); err != nil {
				t.Fatal(err)
			}
		}
		s, w, p := r.last()
		r.logs(s, "no checkpoint of it is whole: it begins again")
		r.finishes(s, w, p)
	})
}

// A job whose checkpoint is elsewhere fails, and its status says that this is why; also where there is no folder. A job
// that is to take checkpoints fails for good there.
func TestLacking(t *testing.T) {
	both(t, 10, func(t *testing.T, r *relay) {
		const noFolder = "this executor has no folder for checkpoints"
		for _, test := range []struct {
			folder string
			from   int
			want   string
		}{
			{r.folder, 7, fmt.Sprintf("its checkpoint after 7 iterations is not in %s on ", r.folder)},
			{"", 7, noFolder},
			{"", 0, noFolder},
		} {
			r.folder, r.newest.Iteration = test.folder, test.from
			s, _, _ := r.begin()
			j := s.bus.awaitState(t, "job", wire.Failed)
			if !strings.HasPrefix(j.Error, test.want) || j.Lacks != (test.from > 0) {
				t.Errorf("the job is %+v, want error %q", j, test.want)
			}
			s.leave()
		}
	})
}

// A job begins with the checkpoint of another, wherever the file is. One that does not fit is refused.
func TestFrom(t *testing.T) {
	both(t, 10, func(t *testing.T, r *relay) {
		s, _, _ := r.begin()
		r.checkpointed(s)
		r.kill(s)
		text, err := os.ReadFile(r.newest.File)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), "copied")
		if err := os.WriteFile(copied, text, 0o600); err != nil {
			t.Fatal(err)
		}
		from, err := checkpoint.Read(nil, copied)
		if err != nil {
			t.Fatal(err)
		}
		next := relay{t: t, open: r.open, folder: filepath.Join(t.TempDir(), "checkpoints"), spec: r.spec}
		next.spec.Iterations = from.Iteration + 100
		next.spec.From = copied
		s, w, p := next.begin()
		next.logs(s, fmt.Sprintf("goes on after %d iterations, from checkpoint %s", from.Iteration, copied))
		next.finishes(s, w, p)

		for name, test := range map[string]struct {
			change func(*checkpoint.State)
			want   string
		}{
			"graph": {func(c *checkpoint.State) { c.Graph = "ab" },
				"it is of another graph that is called lenet, too, "},
			"settings": {func(c *checkpoint.State) {
				c.Graph, c.Settings = "ab", strings.Replace(c.Settings, "--batch 2", "--batch 4", 1)
			}, "it was taken with --batch 4, and the job has --batch 2: make both the same, or take its tensors " +
				"alone by --weights"},
			"model": {func(c *checkpoint.State) { c.Graph, c.Model = "ab", "mlp" },
				"it is of model mlp, and the job is of lenet: "},
			"seed": {func(c *checkpoint.State) { c.Seed = 6 },
				"its seed is 6, that of the job is 5: give --seed 6"},
			"device": {func(c *checkpoint.State) { c.Device = "other" }, "it is of device other, this is "},
			"iterations": {func(c *checkpoint.State) { c.Iteration, c.Losses = forever, nil },
				"it has 1048576 iterations, the job is to have "},
			"job": {func(c *checkpoint.State) { c.Job = "gone" }, "no such file"},
		} {
			c, dir := *from, t.TempDir()
			test.change(&c)
			if _, err := (checkpoint.Folder{Dir: dir}).Write(&c, 1, math.MaxInt); err != nil {
				t.Fatal(err)
			}
			next.spec.From = filepath.Join(dir, "job-1", fmt.Sprintf("1-%d.safetensors", c.Iteration))
			s, _, _ := next.begin()
			if j := s.bus.awaitState(t, "job", wire.Failed); !strings.Contains(j.Error, test.want) ||
				!strings.HasPrefix(j.Error, "checkpoint "+next.spec.From+": ") {
				t.Errorf("%s: the job is %+v, want error %q", name, j, test.want)
			}
			s.leave()
			if name == "device" {
				next.spec.AnyDevice = true
				s, _, _ := next.begin()
				next.logs(s, "its checkpoint is of device other, this is ")
				s.bus.awaitState(t, "job", wire.Finished)
				s.leave()
				next.spec.AnyDevice = false
			}
		}
	})
}

// A checkpoint of another job that was called the same, as under another controller, is none of the job's.
func TestNamesakes(t *testing.T) {
	r := &relay{t: t, open: simulated, folder: t.TempDir(),
		spec: wire.Spec{Iterations: 20, Checkpoint: wire.Interval{Iterations: 5}}}
	c := &checkpoint.State{Job: "job", ID: 1, Incarnation: 1, Iteration: 9, Seed: 5, Graph: "ab"}
	if _, err := (checkpoint.Folder{Dir: r.folder}).Write(c, 1, math.MaxInt); err != nil {
		t.Fatal(err)
	}
	s, w, p := r.begin()
	r.logs(s, "1-9.safetensors is passed over: it is of another job that was called the same")
	r.finishes(s, w, p)
}

// A job that takes checkpoints leaves an interrupted executor with one, and goes on elsewhere. So does one that is
// parked on disk; one that is parked in memory goes on where it is.
func TestSuspended(t *testing.T) {
	both(t, 1<<20, func(t *testing.T, r *relay) {
		s, _, _ := r.begin()
		s.bus.await(t, "reports", func() bool { return len(s.bus.reports) > 5 })
		close(s.interrupt)
		err := s.end()
		j := s.bus.job("job")
		if j.State != wire.Suspended || j.Checkpoint == nil || j.Checkpoint.Iteration != j.Iteration || j.Arena != 0 {
			t.Fatalf("the last status has %+v", j)
		}
		r.newest = *j.Checkpoint
		want := fmt.Sprintf("interrupted: job job suspended after %d iterations; it goes on from checkpoint %s",
			j.Iteration, r.newest.File)
		if _, ok := errors.AsType[*agent.InterruptedError](err); !ok || err.Error() != want {
			t.Errorf("it ended with %q, want %q", err, want)
		}
		if s.bus.status.Dead == nil || s.bus.status.Dead[0] != s.bus.status.Life {
			t.Errorf("the last status is %+v, want it to say that its life is over", s.bus.status)
		}

		s, w, _ := r.begin()
		s.bus.await(t, "reports", func() bool { return len(s.bus.reports) > 5 })
		parked := r.order(w)
		parked.Park = wire.InMemory
		s.orders(false, parked)
		rests := s.bus.awaitState(t, "job", wire.Resting)
		if rests.Arena != 0 {
			t.Errorf("the parked job is %+v", rests)
		}
		s.orders(false, r.order(w))
		s.bus.await(t, "iterations", func() bool { return s.bus.job("job").Iteration > rests.Iteration+1 })
		parked.Park = wire.OnDisk
		s.orders(false, parked)
		j = s.bus.awaitState(t, "job", wire.Suspended)
		r.newest = *j.Checkpoint
		s.leave()

		s, w, p := r.last()
		r.finishes(s, w, p)
	})
}

// What cannot be written is trouble that the job survives. An executor without a folder takes no job that wants one.
func TestUnwritten(t *testing.T) {
	r := &relay{t: t, open: computing, folder: filepath.Join(t.TempDir(), "file"),
		spec: wire.Spec{Iterations: 400, Checkpoint: wire.Interval{Iterations: 10}}}
	s, w, p := r.begin()
	s.bus.awaitState(t, "job", wire.Running)
	for os.WriteFile(r.folder, nil, 0o600) != nil { // a checkpoint is there already
		if err := os.RemoveAll(r.folder); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
			t.Fatal(err)
		}
	}
	r.logs(s, "checkpoint "+r.folder)
	j := s.bus.awaitState(t, "job", wire.Finished)
	w.same(j.Result, w.alone(p, r.spec.Iterations, task.Synthetic(w.g, w.spec.Seed)))
	if j.Checkpoint != nil || j.Error != "" {
		t.Errorf("the job is %+v", j)
	}
	s.leave()

	r.folder = ""
	s, _, _ = r.begin()
	if j := s.bus.awaitState(t, "job", wire.Failed); !strings.Contains(j.Error, "start it with --checkpoints") {
		t.Errorf("the job is %+v", j)
	}
	s.leave()
}
