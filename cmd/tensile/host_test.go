//go:build linux

package main

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
	"tensile/wire"
)

// smallJob are flags of a job whose iterations take less than a millisecond.
var smallJob = []string{"lenet", "--batch", "4", "--image", "12"}

// calm is what a job comes to that nothing disturbs.
type calm struct {
	iterations int
	saved      []byte
	losses     wire.Losses
}

// becalmed trains the small job, or with more flags another, at a controller of its own.
func becalmed(t *testing.T, iterations int, more ...string) *calm {
	t.Helper()
	c := startCluster(t, 8*graph.MiB)
	path := c.saves("calm", fmt.Sprint(iterations), more...)
	r := c.in(wire.JobFinished, "calm")
	c.end()
	return &calm{iterations, read(t, path), r.Result.Losses}
}

// distant starts an executor on another host, with a state home of its own, and waits until it has joined. Its
// checkpoints lie in the folder of the controller's. Jobs begin there: the controller's device has no room for any
// until it is given back its budget.
func (c *cluster) distant(h *needs.Host) *family {
	c.t.Helper()
	path := filepath.Join(c.files, "lab.json")
	c.tell("credentials", "lab", "--output", path)
	lab := startCommand(c.t, c.files, []string{"XDG_STATE_HOME=" + c.t.TempDir()}, h.Command("tensile", "executor",
		"--credentials", path, "--checkpoints", filepath.Join(c.state, "checkpoints"))...)
	c.line(`^executor lab has joined$`)
	c.tell("budget", "64KiB")
	return lab
}

// saves submits the small job, and returns the file that it saves at its end.
func (c *cluster) saves(name, iterations string, more ...string) string {
	c.t.Helper()
	path := filepath.Join(c.files, name+".safetensors")
	args := append(append([]string{"submit"}, smallJob...), "--name", name, "--iterations", iterations, "--save", path)
	c.tell(append(args, more...)...)
	return path
}

// whole wants a job to have come to what one comes to that nothing disturbs, to the bit.
func (c *cluster) whole(r wire.Record, saved string, want *calm) {
	c.t.Helper()
	if r.State != wire.JobFinished || r.Iteration != want.iterations || r.Result == nil {
		c.t.Errorf("job %s is %s after %d iterations: %s", r.Spec.Name, r.State, r.Iteration, r.Reason)
		return
	}
	if !slices.Equal(r.Result.Losses, want.losses) {
		c.t.Errorf("job %s has other losses than an undisturbed one, %d of them", r.Spec.Name, len(r.Result.Losses))
	}
	if !bytes.Equal(read(c.t, saved), want.saved) {
		c.t.Errorf("job %s has saved something else than an undisturbed one", r.Spec.Name)
	}
}

// settles stops a job of some flags, if that was not done, which saves it, and wants it to have come to what one comes
// to that nothing disturbs in as many iterations: in losses, weights and the saved file, to the bit. A job that trains
// until it is stopped is not over before a test has seen what it waits for, however slow the test is.
func (c *cluster) settles(name string, flags []string) wire.Record {
	c.t.Helper()
	if s := c.jobs()[name].State; !s.Over() && s != wire.JobStopping {
		c.tell("stop", name)
	}
	r := c.in(wire.JobStopped, name)
	if r.Result == nil || r.Result.Saved == "" || len(r.Result.Losses) != r.Iteration {
		c.t.Fatalf("job %s was stopped as %+v", name, r)
	}
	alone := "undisturbed-" + name
	c.tell(slices.Concat([]string{"submit"}, flags, []string{"--iterations", fmt.Sprint(r.Iteration), "--name", alone,
		"--save", filepath.Join(c.files, alone), "--checkpoint", "none", "--wait"})...)
	want := c.jobs()[alone].Result
	if !slices.Equal(r.Result.Losses, want.Losses) {
		c.t.Errorf("job %s has other losses than an undisturbed one, %d of them", name, len(r.Result.Losses))
	}
	if len(want.Weights) == 0 || !maps.Equal(r.Result.Weights, want.Weights) {
		c.t.Errorf("job %s has other weights than an undisturbed one after %d iterations", name, r.Iteration)
	}
	if !bytes.Equal(read(c.t, r.Result.Saved), read(c.t, want.Saved)) {
		c.t.Errorf("job %s has saved something else than an undisturbed one", name)
	}
	return r
}

// goesOn waits until a job trains in an incarnation, and has done more iterations than when it was first seen there.
func (c *cluster) goesOn(name string, incarnation int64) wire.Record {
	c.t.Helper()
	at := func(jobs map[string]wire.Record) bool {
		r := jobs[name]
		if r.State.Over() || r.Incarnation > incarnation {
			c.t.Fatalf("job %s is %s in incarnation %d, and was to train in %d: %s", name, r.State, r.Incarnation,
				incarnation, r.Reason)
		}
		return r.State == wire.JobRunning && r.Incarnation == incarnation
	}
	what := fmt.Sprintf("job %s to train in incarnation %d", name, incarnation)
	first := c.until(what, at)[name]
	return c.until(what, func(jobs map[string]wire.Record) bool {
		return at(jobs) && jobs[name].Iteration > first.Iteration
	})[name]
}

// An executor on another host is cut off, and the cable comes back before its jobs are given up: they are unknown
// meanwhile, and nothing is lost or trained twice.
func TestHostCutOff(t *testing.T) {
	long.Only(t)
	t.Parallel()
	h := needs.AnotherHost(t)
	times := []string{"--silence", "3s", "--give-up", "1h"}
	if long.Soak() {
		times = nil
	}
	c := startCluster(t, 8*graph.MiB, append(times, "--listen", h.Here+":0")...)
	lab := c.distant(h)
	c.saves("a", forever, "--checkpoint", "1000it")
	c.train(nil, "a")
	c.tell("budget", "8MiB")
	if long.Soak() {
		h.Cut()
		time.Sleep(10 * time.Second)
		h.Heal()
		c.train(c.jobs(), "a")
		h.Cut()
		time.Sleep(2 * time.Minute)
	} else {
		h.Cut()
	}
	c.line(`^executor lab cannot be reached: `)
	away := c.in(wire.JobUnknown, "a")
	if away.Claim == 0 {
		t.Errorf("the job of an executor that cannot be reached: %+v", away)
	}
	h.Heal()
	c.line(`^executor lab is back$`)
	c.train(map[string]wire.Record{"a": away}, "a")
	r := c.settles("a", smallJob)
	if r.Incarnation != 1 || r.Restarts != 0 || r.Executor != "lab" {
		t.Errorf("the job was started again: %+v", r)
	}
	lab.signal(syscall.SIGTERM)
	lab.ends(130, "^tensile: interrupted$")
	c.end()
}

// The jobs of an executor that is cut off for longer go on elsewhere, from their checkpoints. What the executor has
// stays reserved until it is back, and what it trains meanwhile counts for nothing.
func TestHostGivenUp(t *testing.T) {
	long.Only(t)
	t.Parallel()
	h := needs.AnotherHost(t)
	c := startCluster(t, 8*graph.MiB, "--silence", "10s", "--give-up", "10s", "--listen", h.Here+":0")
	lab := c.distant(h)
	c.saves("a", forever, "--checkpoint", "100it")
	c.until("a checkpoint", func(jobs map[string]wire.Record) bool { return jobs["a"].Checkpoint != nil })
	c.tell("budget", "8MiB")
	h.Cut()
	c.line(`^executor lab cannot be reached: `)
	c.line(`^job a goes on from iteration [0-9]+: executor lab is given up: `)
	c.until("the job to train elsewhere", func(jobs map[string]wire.Record) bool {
		r := jobs["a"]
		if r.Executor == "lab" || r.State != wire.JobRunning {
			return false
		}
		if len(r.Held) != 1 || r.Held[0].Executor != "lab" || r.Held[0].Bytes == 0 {
			t.Errorf("what the executor may have is not reserved: %+v", r)
		}
		return true
	})
	h.Heal()
	c.line(`^what executor lab had is free: ` + regexp.QuoteMeta("it is back"))
	c.goesOn("a", 2)
	r := c.settles("a", smallJob)
	if r.Incarnation != 2 || r.Executor == "lab" || len(r.Held) > 0 {
		t.Errorf("the job has not gone on elsewhere, once: %+v", r)
	}
	lab.signal(syscall.SIGTERM)
	lab.ends(130, "^tensile: interrupted$")
	c.end()
}

// Of a host that is gone for good only a person knows: what an executor had there is free as soon as an administrator
// says so, and not while the executor is heard.
func TestHostForgotten(t *testing.T) {
	long.Only(t)
	t.Parallel()
	h := needs.AnotherHost(t)
	c := startCluster(t, 8*graph.MiB, "--silence", "10s", "--give-up", "1h", "--listen", h.Here+":0")
	lab := c.distant(h)
	c.saves("a", forever, "--checkpoint", "50it")
	c.until("a checkpoint", func(jobs map[string]wire.Record) bool { return jobs["a"].Checkpoint != nil })
	c.tell("budget", "8MiB")
	said := c.refused("forget", "lab", "--state", c.state)
	if !regexp.MustCompile(`^tensile: executor lab was heard of .* ago: it has not ended$`).MatchString(said) {
		t.Errorf("of an executor that is heard forget says: %s", said)
	}
	h.Cut()
	lab.signal(syscall.SIGKILL)
	lab.ends(-1, "")
	c.line(`^executor lab cannot be reached: `)
	if said := c.tell("forget", "lab"); said != "executor lab has ended, as you say; its jobs can go on elsewhere\n" {
		t.Errorf("forget says %q", said)
	}
	c.line(`^executor lab has gone: an administrator says that it has ended$`)
	c.goesOn("a", 2)
	r := c.settles("a", smallJob)
	if r.Incarnation != 2 || len(r.Held) > 0 {
		t.Errorf("the job has not gone on elsewhere: %+v", r)
	}
	c.end()
}
