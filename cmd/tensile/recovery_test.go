//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
	"tensile/wire"
)

// A controller that is started again with a smaller budget has the jobs shrink, and says so; what comes then begins.
// One for another device leaves them alone. A hang-up ends it like any other signal.
func TestClusterSmallerBudget(t *testing.T) {
	long.Only(t)
	t.Parallel()
	first := startCluster(t, 4*graph.MiB)
	first.submit("lenet:2")
	before := first.train(nil, "lenet.1", "lenet.2")
	first.signal(syscall.SIGHUP)
	if rest := first.ends(0, ""); !strings.HasSuffix(rest,
		"the controller ends; executors go on with their plans until it is started again on this state folder\n") {
		t.Errorf("a hang-up ends the controller with: %s", rest)
	}
	line := first.refused("controller", "--device", "sim:a6000", "--state", first.state)
	if !regexp.MustCompile(`^tensile: take up what is stored: job lenet\.1 runs on cpu[^ ]*, and this controller is ` +
		`for sim:a6000.*: start it for that device`).MatchString(line) {
		t.Errorf("for another device the controller says: %s", line)
	}
	held := before["lenet.1"].Claim + before["lenet.2"].Claim
	again := *first
	again.budget = held * 7 / 10
	again.family = start(t, first.dir, "controller", "--state", first.state, "--budget",
		fmt.Sprint(int64(again.budget)))
	c := &again
	c.line("^controller of ")
	c.line(`^jobs hold ` + regexp.QuoteMeta(held.String()) + ` of .*; they shrink$`)
	c.budget = held // until they have
	c.until("the jobs to shrink", func(jobs map[string]wire.Record) bool {
		one, two := jobs["lenet.1"], jobs["lenet.2"]
		return one.Claim+two.Claim <= held*7/10 && one.Arena == one.Claim && two.Arena == two.Claim
	})
	c.budget = held * 7 / 10
	for name, r := range c.train(before, "lenet.1", "lenet.2") {
		if r.Plans < 2 || r.SlotPeak > r.Arena || r.Arena > r.Claim {
			t.Errorf("the record of job %s does not show the plan in force: %+v", name, r)
		}
	}
	c.tell("submit", "lenet", "--batch", "4", "--image", "12", "--iterations", "3", "--name", "late")
	c.in(wire.JobFinished, "late")
	c.tell("stop", "lenet.1", "lenet.2")
	c.end()
}

// The second process with the same credentials is refused, with where the first one runs; the job of that goes on to
// its end. On the same host it finds the lock of the first, on another (with another state home, here) the controller
// tells it.
func TestClusterSameCredentials(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	path := filepath.Join(c.files, "lab.json")
	c.tell("credentials", "lab", "--output", path)
	first := start(t, c.files, "executor", "--credentials", path)
	c.line(`^executor lab has joined$`)
	c.tell("submit", "lenet", "--batch", "4", "--image", "12", "--iterations", forever)
	before := c.train(nil, "lenet")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := `^tensile: executor lab is sent away: lab runs already on ` + regexp.QuoteMeta(host) +
		`, process [0-9]+ since [0-9]{2}:[0-9]{2}$`
	for range 2 {
		second := startWith(t, c.files, []string{"XDG_STATE_HOME=" + t.TempDir()}, "executor", "--credentials", path)
		second.line(`^connected to `)
		second.ends(1, want)
	}
	start(t, c.files, "executor", "--credentials", path).ends(1, `^tensile: executor lab runs already on `+
		regexp.QuoteMeta(host)+`, process `+fmt.Sprint(first.command.Process.Pid)+
		` since [0-9]+ [A-Z][a-z]+ [0-9]{2}:[0-9]{2}: end that first, or use other credentials$`)
	c.train(before, "lenet")
	c.submit("lenet", "--name", "next") // is not burnt
	c.train(nil, "next")
	c.tell("stop", "next", "lenet")
	if r := c.in(wire.JobStopped, "lenet"); r.Executor != "lab" || r.Incarnation != 1 {
		t.Errorf("the job of the first process: %+v", r)
	}
	first.signal(syscall.SIGTERM)
	first.ends(130, "^tensile: interrupted")
	c.end()
}

// A full disk stops no job. Who submits is told of the disk; with space again everything works, without a restart.
func TestClusterDiskFull(t *testing.T) {
	long.Only(t)
	t.Parallel()
	disk := needs.SmallDisk(t, 4<<20)
	c := &cluster{budget: 8 * graph.MiB, state: filepath.Join(disk, "state"), files: t.TempDir()}
	c.family = start(t, disk, "controller", "--state", c.state, "--budget", fmt.Sprint(int64(c.budget)))
	c.line("^controller of ")
	c.submit("lenet")
	c.train(nil, "lenet")
	fill := filepath.Join(disk, "fill")
	if out, err := exec.Command("dd", "if=/dev/zero", "of="+fill, "bs=1k").CombinedOutput(); err == nil {
		t.Fatalf("the disk is not full: %s", out)
	}
	pid := executors(t, c.dir)["x1"]
	busy := processorTime(t, pid)
	line := c.refused("submit", "mlp", "--image", "8", "--batch", "4", "--name", "told", "--iterations", "3", "--state",
		c.state)
	if !strings.Contains(line, "the controller's disk is full: free some space for "+c.state) {
		t.Errorf("with a full disk submit says: %s", line)
	}
	if said := c.tell("jobs"); !strings.HasPrefix(said, "the controller's disk is full: ") ||
		!strings.Contains(said, "lenet") || !strings.Contains(said, " of 8MiB used, 1 running, ") {
		t.Errorf("with a full disk jobs says: %s", said)
	}
	for processorTime(t, pid) <= busy+5 { // it trains on
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	c.line(`^the store was started again, and takes what comes$`)
	was := c.jobs()
	c.train(was, "lenet")
	c.tell("submit", "lenet", "--batch", "4", "--image", "12", "--iterations", "3", "--name", "after")
	c.in(wire.JobFinished, "after")
	c.tell("stop", "lenet")
	c.in(wire.JobStopped, "lenet")
	if now := executors(t, c.dir)["x1"]; now != 0 && now != pid {
		t.Errorf("the executor is process %d, and was %d", now, pid)
	}
	c.end()
}

// What the ops of a job have taken is known to a controller that is started again after a kill: it plans for the next
// job of the same network as if that had been measured. With another batch size it predicts.
func TestClusterLearns(t *testing.T) {
	long.Only(t)
	t.Parallel()
	first := startCluster(t, 64*graph.MiB, "--no-replan")
	first.tell("submit", "lenet", "--batch", "8", "--iterations", "30", "--name", "first")
	if r := first.in(wire.JobFinished, "first"); r.Latencies != "cold-start" {
		t.Errorf("the first job was planned for with %s latencies", r.Latencies)
	}
	first.signal(syscall.SIGKILL)
	first.ends(-1, "")
	c := first.restart("--no-replan")
	c.submit("lenet", "--name", "second")
	c.tell("submit", "lenet", "--batch", "4", "--iterations", forever, "--name", "other")
	jobs := c.train(nil, "second", "other")
	for name, want := range map[string]string{"second": "updated", "other": "cold-start"} {
		if r := jobs[name]; r.Latencies != want {
			t.Errorf("job %s was planned for with %s latencies, want %s: %+v", name, r.Latencies, want, r)
		}
	}
	c.tell("stop", "second", "other")
	c.end()
}

// A command that is killed takes no job with it.
func TestClusterCommandKilled(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	submit := start(t, c.files, "submit", "lenet", "--batch", "4", "--image", "12", "--iterations", forever,
		"--wait", "--state", c.state)
	submit.line(`^job lenet is `)
	submit.signal(syscall.SIGKILL)
	submit.ends(-1, "")
	c.train(c.train(nil, "lenet"), "lenet")
	c.tell("stop", "lenet")
	if r := c.in(wire.JobStopped, "lenet"); r.Incarnation != 1 {
		t.Errorf("the job of a command that was killed: %+v", r)
	}
	c.end()
}

// An executor whose credentials were revoked is not heard any more, and let in no more. Its jobs go on elsewhere when
// it is given up; what it had stays reserved until somebody says that it has ended.
func TestClusterRevoked(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 8*graph.MiB, "--silence", "10s", "--give-up", "10s")
	path := filepath.Join(c.files, "lab.json")
	c.tell("credentials", "lab", "--output", path)
	args := []string{"executor", "--credentials", path, "--checkpoints", filepath.Join(c.state, "checkpoints")}
	lab := start(t, c.files, args...)
	c.line(`^executor lab has joined$`)
	c.saves("a", forever, "--checkpoint", "50it")
	c.until("a checkpoint", func(jobs map[string]wire.Record) bool { return jobs["a"].Checkpoint != nil })
	c.tell("credentials", "lab", "--revoke")
	c.line(`^the credentials of user "x-lab" were revoked: its connections are closed$`)
	c.line(`^job a goes on from iteration [0-9]+: executor lab is given up: `)
	c.goesOn("a", 2)
	r := c.settles("a", smallJob)
	if r.Incarnation != 2 || len(r.Held) != 1 || r.Held[0].Executor != "lab" {
		t.Errorf("the job of an executor that was revoked: %+v", r)
	}
	lab.signal(syscall.SIGTERM)
	for lab.lines.Scan() { // until it has ended
	}
	start(t, c.files, args...).ends(1, `user "x-lab" is refused`)
	c.tell("forget", "lab")
	c.line(`^what executor lab had is free: an administrator says that it has ended$`)
	if r := c.jobs()["a"]; len(r.Held) > 0 {
		t.Errorf("what an executor had that has ended is still reserved: %+v", r)
	}
	c.end()
}
