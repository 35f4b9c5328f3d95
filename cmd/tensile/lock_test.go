//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
	"tensile/wire/bus"
)

// A controller that is started again notices by the lock that an executor of the one before it has ended, without
// waiting until it counts as silent. One that is stopped lives.
func TestClusterBuriesOrphans(t *testing.T) {
	t.Parallel()
	first := startCluster(t, 2*graph.MiB)
	first.submit("lenet:2")
	before := first.train(nil, "lenet.1", "lenet.2")
	pids := executors(t, first.dir)
	one, two := pids[before["lenet.1"].Executor], pids[before["lenet.2"].Executor]
	first.signal(syscall.SIGKILL)
	first.ends(-1, "")
	if err := syscall.Kill(two, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	kill(t, one) // nobody reaps it for the next controller
	c := first.restart()
	lines := c.line(`^executor ` + before["lenet.1"].Executor +
		` has gone: its executor has ended: it no longer holds its lock$`)
	for _, line := range lines {
		if strings.Contains(line, before["lenet.2"].Executor+" has gone") {
			t.Errorf("of the executor that is stopped it is said: %s", line)
		}
	}
	if err := syscall.Kill(two, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.train(before, "lenet.2")
	if pid := executors(t, c.dir)[before["lenet.2"].Executor]; pid != two {
		t.Errorf("the executor that was stopped is process %d, and was %d", pid, two)
	}
	c.tell("stop", "lenet.2")
	c.in(wire.JobStopped, "lenet.2")
	if r := c.jobs()["lenet.1"]; !r.State.Over() {
		c.tell("stop", "lenet.1")
	}
	c.line(`^executor ` + before["lenet.2"].Executor + ` has gone: `) // which has left
	c.end()
	first.vanishes()
	if left, _ := filepath.Glob(filepath.Join(c.state, "executors", "*")); len(left) > 0 {
		t.Errorf("executors have left %q", left)
	}
}

// Executors whose controller was killed, and its state folder removed, leave, and do not make the folder again. Until
// then they are listed.
func TestClusterStateRemoved(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	c.tell("submit", "lenet", "--batch", "8", "--iterations", forever, "--checkpoint", "10it")
	job := c.train(nil, "lenet")["lenet"]
	pid := executors(t, c.dir)[job.Executor]
	listed := func() (at []localExecutor) {
		t.Helper()
		document(t, tensile(t, c.files, "executors", "--json"), &at)
		return slices.DeleteFunc(at, func(x localExecutor) bool { return x.PID != pid })
	}
	now := time.Now()
	if at := listed(); len(at) != 1 || at[0].Name != job.Executor || at[0].Gone || at[0].Since.After(now) ||
		!strings.HasPrefix(at[0].Credentials, c.state) {
		t.Errorf("of process %d of %s is listed %+v", pid, job.Executor, at)
	}
	c.signal(syscall.SIGKILL)
	c.ends(-1, "")
	if err := os.Rename(c.state, c.state+".gone"); err != nil { // at once, where removing files one by one is not
		t.Fatal(err)
	}
	if err := os.RemoveAll(c.state + ".gone"); err != nil {
		t.Fatal(err)
	}
	c.vanishes()
	if at := listed(); len(at) > 0 {
		t.Errorf("an executor that has left is listed: %+v", at)
	}
	if _, err := os.Stat(c.state); !os.IsNotExist(err) {
		t.Errorf("the state folder is there again: %v", err)
	}
}

// A job that is to be saved in the state folder, also by way of a link, fails before it trains, and changes nothing.
func TestClusterSaveInState(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	secret := filepath.Join(c.state, "secret")
	before := read(t, secret)
	link := filepath.Join(c.files, "link")
	if err := os.Symlink(c.state, link); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"a": secret, "b": filepath.Join(link, "secret")} {
		c.tell("submit", "lenet", "--batch", "8", "--iterations", "2", "--name", name, "--save", path)
		r := c.in(wire.JobFailed, name)
		if want := path + " lies in the state folder "; !strings.Contains(r.Reason, want) || r.Iteration > 0 {
			t.Errorf("after %d iterations job %s is over: %q, want %q", r.Iteration, name, r.Reason, want)
		}
	}
	if after := read(t, secret); !bytes.Equal(after, before) {
		t.Error("the secret is another")
	}
	c.end()
}

// An executor that was started by hand tells which processes of its name have ended on its host.
func TestClusterNamesTheDead(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	path := filepath.Join(c.files, "lab.json")
	c.tell("credentials", "lab", "--output", path)
	credentials, err := bus.ReadCredentials(path)
	if err != nil {
		t.Fatal(err)
	}
	credentials, err = bus.Issue(c.state, credentials, bus.Controller)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := bus.Connect(t.Context(), credentials, bus.ConnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	said := make(chan wire.Status, 1024)
	stop, err := conn.Watch(t.Context(), wire.StatusKey("lab"), func(_ string, value []byte) {
		if s, err := wire.DecodeAs[wire.Status](value); err == nil {
			select {
			case said <- s:
			default:
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var lives []string // the newest first
	for range 3 {
		x := start(t, c.files, "executor", "--credentials", path)
		for {
			s := <-said
			if len(lives) > 0 && s.Life == lives[0] {
				continue
			}
			if strings.Join(s.Dead, " ") != strings.Join(lives, " ") {
				t.Errorf("process %d names %q dead, want %q", len(lives), s.Dead, lives)
			}
			lives = append([]string{s.Life}, lives...)
			break
		}
		x.signal(syscall.SIGKILL)
		x.ends(-1, "")
	}
}

// A process that was killed is known to be dead as soon as the next one of its name on the same host says so: its job
// goes on, from its checkpoint, although no silence ever counts.
func TestClusterStartedAgainByHand(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 8*graph.MiB, "--silence", "1h", "--give-up", "1h")
	path := filepath.Join(c.files, "lab.json")
	c.tell("credentials", "lab", "--output", path)
	args := []string{"executor", "--credentials", path, "--checkpoints", filepath.Join(c.state, "checkpoints")}
	lab := start(t, c.files, args...)
	c.line(`^executor lab has joined$`)
	c.saves("a", forever, "--checkpoint", "50it")
	c.until("a checkpoint", func(jobs map[string]wire.Record) bool { return jobs["a"].Checkpoint != nil })
	lab.signal(syscall.SIGKILL)
	lab.ends(-1, "")
	lab = start(t, c.files, args...)
	c.line(`^executor lab has gone: its process has ended$`)
	c.goesOn("a", 2)
	r := c.settles("a", smallJob)
	if r.Incarnation != 2 {
		t.Errorf("the job has had %d incarnations, want 2", r.Incarnation)
	}
	lab.signal(syscall.SIGTERM)
	lab.ends(130, "^tensile: interrupted")
	c.end()
}
