//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/external"
	"tensile/wire"
)

// firstClaim is what a fake script has before it has recorded anything: more than its plan takes.
const firstClaim = 64 * graph.KiB

// joinJob joins a fake script as a job of a cluster, and waits until it trains by a plan.
func (c *cluster) joinJob(name string) (sidecar *family, script int) {
	c.t.Helper()
	file, err := filepath.Abs("../../models/external/testdata/recorded.json")
	if err != nil {
		c.t.Fatal(err)
	}
	p := start(c.t, c.t.TempDir(), "join", "--state", c.state, "--name", name, "--memory",
		fmt.Sprint(int64(firstClaim)), "--", "fakescript", file, "0", "job")
	said := p.line("^process ")
	if script, err = strconv.Atoi(strings.TrimPrefix(said[len(said)-1], "process ")); err != nil {
		c.t.Fatal(err)
	}
	p.line("by plan [1-9]")
	return p, script
}

// planned waits until a script trains by a plan that takes less than its first claim, and returns its record.
func (c *cluster) planned(name string) wire.Record {
	c.t.Helper()
	return c.until("job "+name+" to train by a plan", func(jobs map[string]wire.Record) bool {
		r := jobs[name]
		return r.State == wire.JobRunning && r.Script != nil && r.Script.Plan > 0 && r.Claim < firstClaim &&
			r.Claim == r.Script.Plan+r.Script.Reserve && r.Script.Touched == r.Script.Plan
	})[name]
}

// free waits until a job is in a phase that is an end, and others train on.
func (c *cluster) free(name string, phase wire.JobState, others ...string) wire.Record {
	c.t.Helper()
	r := c.in(phase, name)
	c.train(c.jobs(), others...)
	return r
}

// A script is a job like any other: it begins with a claim, trains by a plan beside other jobs, rests, goes on and is
// stopped. What a script cannot do is refused in one line.
func TestJoinJob(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4*graph.MiB)
	c.submit("lenet")
	p, _ := c.joinJob("one")
	c.planned("one")
	for _, refused := range []struct {
		want string
		args []string
	}{
		{"there is a job one", []string{"join", "--name", "one", "--", "fakescript"}},
		{"takes no checkpoints", []string{"park", "one", "--disk"}},
		{"--priority 0", []string{"join", "--priority", "0", "--", "fakescript"}},
		{"cannot run here, even alone", []string{"join", "--name", "two", "--memory", "1GiB", "--", "fakescript"}},
	} {
		args := append([]string{refused.args[0], "--state", c.state}, refused.args[1:]...)
		if line := c.refused(args...); !strings.Contains(line, refused.want) {
			t.Errorf("%q says %s, want %s", refused.args, line, refused.want)
		}
	}
	c.tell("park", "one")
	p.line("^rests$")
	if r := c.in(wire.JobParked, "one"); r.Claim != 0 {
		t.Errorf("it rests with a claim of %s", r.Claim)
	}
	c.tell("resume", "one")
	p.line("^goes on$")
	before := c.planned("one")
	c.train(map[string]wire.Record{"one": before}, "one", "lenet")
	c.tell("stop", "one")
	if err := p.wait(); err != nil {
		t.Errorf("the command ends with %v; stderr:\n%s", err, &p.stderr)
	}
	if r := c.free("one", wire.JobStopped, "lenet"); r.Result == nil || r.Result.Touched == 0 {
		t.Errorf("its record is %+v", r)
	}
	c.tell("stop", "lenet")
	c.end()
}

// joinRanks joins a shell command whose $1 is what fake scripts have recorded.
func (c *cluster) joinRanks(name, command string) *family {
	c.t.Helper()
	file, err := filepath.Abs("../../models/external/testdata/recorded.json")
	if err != nil {
		c.t.Fatal(err)
	}
	return start(c.t, c.t.TempDir(), "join", "--state", c.state, "--name", name, "--memory",
		fmt.Sprint(int64(firstClaim)), "--", "sh", "-c", command, "sh", file)
}

// Each process of a command is a job of its own, by the number that its launcher gives it, in whatever order they come.
// One is stopped by itself, and the first with all.
func TestJoinJobRanks(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4*graph.MiB)
	p := c.joinRanks("one", `for rank in 2 1 0; do LOCAL_RANK=$rank fakescript "$1" 0 job & done; wait`)
	for _, job := range []string{"one", "one-1", "one-2"} {
		c.planned(job)
	}
	c.tell("stop", "one-1")
	c.free("one-1", wire.JobStopped, "one", "one-2")
	c.tell("stop", "one")
	if err := p.wait(); err != nil {
		t.Errorf("the command ends with %v; stderr:\n%s", err, &p.stderr)
	}
	c.in(wire.JobStopped, "one")
	c.in(wire.JobStopped, "one-2")
	for _, want := range []string{"one-1: torch", `(?m)^one +\d`, `(?m)^one-1 +\d`, `(?m)^one-2 +\d`} {
		if !regexp.MustCompile(want).MatchString(p.stderr.String()) {
			t.Errorf("%s is missing; stderr:\n%s", want, &p.stderr)
		}
	}
	c.end()
}

// What the first process has had is free when it has ended, also while its command goes on; another one that is killed
// fails by itself.
func TestJoinJobLosesRanks(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 4*graph.MiB)
	p := c.joinRanks("one", `fakescript "$1" 0 job; fakescript "$1" 0 job; exec tail -f /dev/null`)
	lose := func() {
		said := p.line("^process ")
		script, err := strconv.Atoi(strings.TrimPrefix(said[len(said)-1], "process "))
		if err != nil {
			t.Fatal(err)
		}
		p.line("by plan [1-9]")
		kill(t, script)
	}
	lose()
	c.until("the memory of the first process to be free", func(jobs map[string]wire.Record) bool {
		return jobs["one"].State == wire.JobRunning && jobs["one"].Claim < graph.KiB/2
	})
	lose()
	if r := c.in(wire.JobFailed, "one-1"); !strings.Contains(r.Reason, "was killed") {
		t.Errorf("it has failed: %s", r.Reason)
	}
	c.tell("park", "one")
	if r := c.in(wire.JobParked, "one"); r.Claim != 0 {
		t.Errorf("it rests with a claim of %s", r.Claim)
	}
	c.tell("resume", "one")
	c.in(wire.JobRunning, "one")
	p.signal(syscall.SIGTERM) // which is passed on, as no process trains
	if p.wait(); p.command.ProcessState.ExitCode() != 143 {
		t.Errorf("it ends with status %d, want 143; stderr:\n%s", p.command.ProcessState.ExitCode(), &p.stderr)
	}
	c.in(wire.JobFailed, "one")
	c.end()
}

// When a controller is killed scripts train on, and the next one goes on with them.
func TestJoinJobLosesController(t *testing.T) {
	long.Only(t)
	t.Parallel()
	first := startCluster(t, 4*graph.MiB)
	p, _ := first.joinJob("one")
	before := first.planned("one")
	first.signal(syscall.SIGKILL)
	first.wait()
	p.line("^iteration ")
	c := first.restart()
	c.train(map[string]wire.Record{"one": before}, "one")
	c.planned("one")
	c.tell("stop", "one")
	if err := p.wait(); err != nil {
		t.Errorf("the command ends with %v; stderr:\n%s", err, &p.stderr)
	}
	c.in(wire.JobStopped, "one")
	c.end()
}

// A script that fails while no controller runs is started again when there is one again.
func TestJoinJobRestartsWithoutController(t *testing.T) {
	long.Only(t)
	t.Parallel()
	first := startCluster(t, 4*graph.MiB)
	failing := filepath.Join(first.dir, "failing")
	log := filepath.Join(t.TempDir(), "log")
	write(t, log, "")
	// Descriptor 3 is where it says that the job is submitted.
	p := startCommand(t, first.dir, nil, "sh", "-c", "exec tensile join --state "+first.state+" --name one --memory "+
		fmt.Sprint(int64(firstClaim))+" --detached "+log+" --restart 1 -- sh -c 'echo begun; until [ -e "+failing+
		" ]; do sleep 0.1; done; exit 3' 2>&1 3>/dev/null")
	p.line("^begun$")
	first.signal(syscall.SIGKILL)
	first.wait()
	write(t, failing, "")
	p.line("it cannot be started again now, and is tried again in ")
	c := first.restart()
	r := c.until("the script to be started again", func(jobs map[string]wire.Record) bool {
		return jobs["one"].State == wire.JobFailed && strings.Contains(jobs["one"].Reason, "failed at all 2 starts")
	})["one"]
	if p.wait() == nil || !strings.Contains(r.Reason, "exit status 3") {
		t.Errorf("it has failed: %s", r.Reason)
	}
	c.end()
}

// When a script is killed its claim is free, and others train on.
func TestJoinJobLosesScript(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4*graph.MiB)
	c.submit("lenet")
	p, script := c.joinJob("one")
	c.planned("one")
	kill(t, script)
	if p.wait() == nil || !strings.Contains(p.stderr.String(), "signal: killed") {
		t.Errorf("the command ends well; stderr:\n%s", &p.stderr)
	}
	if r := c.free("one", wire.JobFailed, "lenet"); !strings.Contains(r.Reason, "signal: killed") {
		t.Errorf("it has failed: %s", r.Reason)
	}
	c.tell("stop", "lenet")
	c.end()
}

// When a sidecar is killed its script trains on with the plan that it has, which stays claimed until it has ended.
func TestJoinJobLosesSidecar(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 4*graph.MiB, "--silence", "3s")
	c.submit("lenet")
	p, script := c.joinJob("one")
	before := c.planned("one")
	p.signal(syscall.SIGKILL)
	p.line("^alone$")
	p.line("^iteration .* by plan [1-9]")
	if r := c.in(wire.JobUnknown, "one"); r.Claim != before.Claim {
		t.Errorf("without its sidecar it claims %s, and had %s", r.Claim, before.Claim)
	}
	c.train(c.jobs(), "lenet")
	kill(t, script)
	c.free("one", wire.JobFailed, "lenet")
	c.tell("stop", "lenet")
	c.end()
}

// A script for whose graph there is no plan within the budget trains on without one: it is told why, jobs and the
// command say so in a line with a remedy, and what it takes is claimed. With more budget it gets a plan.
func TestJoinJobUnplanned(t *testing.T) {
	t.Parallel()
	const claim = 4 * graph.KiB
	c := startCluster(t, 2*claim)
	file := filepath.Join(t.TempDir(), "large.json")
	need := enlarged(t, "../../models/external/testdata/recorded.json", file, claim)
	c.budget = graph.MiB // claims may be above the budget
	p := start(t, t.TempDir(), "join", "--state", c.state, "--name", "one", "--memory", fmt.Sprint(int64(claim)), "--",
		"fakescript", file, "0", "job")
	said := p.line("^no plan: ")
	why := strings.TrimPrefix(said[len(said)-1], "no plan: ")
	record := c.until("jobs to say that there is no plan", func(jobs map[string]wire.Record) bool {
		return jobs["one"].State == wire.JobRunning && strings.Contains(jobs["one"].Reason, "has no plan: ")
	})["one"]
	for _, want := range []string{"is too small", "tensile device budget"} {
		if !strings.Contains(why, want) || !strings.Contains(record.Reason, want) {
			t.Errorf("%q is missing: the script is told %q, and jobs say %q", want, why, record.Reason)
		}
	}
	if record.Claim < need || record.Script == nil || record.Script.Touched > record.Claim {
		t.Errorf("it claims %s, and has %+v; its graph needs %s", record.Claim, record.Script, need)
	}
	c.tell("budget", "1MiB")
	p.line("by plan [1-9]")
	c.until("jobs to say no more that there is no plan", func(jobs map[string]wire.Record) bool {
		return jobs["one"].State == wire.JobRunning && jobs["one"].Reason == ""
	})
	c.tell("stop", "one")
	if err := p.wait(); err != nil || !strings.Contains(p.stderr.String(), "no plan for what was recorded: ") {
		t.Errorf("the command ends with %v; stderr:\n%s", err, &p.stderr)
	}
	c.end()
}

// Where jobs share memory by gates, what a script has stays its own when its sidecar is killed, at the controller and
// at the lease, while another job comes.
func TestJoinJobLosesSidecarByGates(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 4*graph.MiB, "--memory-sharing", "gates", "--silence", "3s")
	c.submit("lenet")
	p, script := c.joinJob("one")
	before := c.until("the script to train by a plan", func(jobs map[string]wire.Record) bool {
		r := jobs["one"]
		return r.State == wire.JobRunning && r.Script != nil && r.Script.Plan > 0
	})["one"]
	p.signal(syscall.SIGKILL)
	p.line("^alone$")
	p.line("^iteration .* by plan [1-9]")
	if r := c.in(wire.JobUnknown, "one"); r.Claim < before.Claim {
		t.Errorf("without its sidecar it claims %s, and had %s", r.Claim, before.Claim)
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", script))
	if err != nil {
		t.Fatal(err)
	}
	sockets := read(t, "/proc/net/unix")
	locks := 0
	for _, f := range files {
		to, _ := os.Readlink(f) // socket:[INODE], which stands before its address
		if inode, ok := strings.CutPrefix(strings.TrimSuffix(to, "]"), "socket:["); ok &&
			strings.Contains(string(sockets), " "+inode+" @tensile-lease-") {
			locks++
		}
	}
	if locks != 1 {
		t.Errorf("the script holds %d locks of clients of a lease, want that of its sidecar", locks)
	}
	c.submit("lenet", "--name", "next")
	jobs := c.train(c.jobs(), "lenet", "next") // within the budget with what the script has
	if r := jobs["one"]; r.State != wire.JobUnknown || r.Claim < before.Claim {
		t.Errorf("beside another job it is %s and claims %s, and had %s", r.State, r.Claim, before.Claim)
	}
	kill(t, script)
	c.in(wire.JobFailed, "one")
	c.tell("stop", "lenet", "next")
	c.end()
}

// enlarged writes the file of a recorded graph with storages that are larger by a factor, and returns what that needs.
func enlarged(t *testing.T, from, to string, times graph.Bytes) graph.Bytes {
	t.Helper()
	text, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	f, err := external.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	g := f.Recorded.Graph
	for i := range g.Storages {
		g.Storages[i].Bytes *= times
	}
	for i := range g.Tensors {
		g.Tensors[i].Shape = graph.Shape{int(g.Storages[g.Tensors[i].Storage].Bytes)}
	}
	var lines []byte
	for _, m := range []external.Message{f.Hello, f.Recorded} {
		line, err := external.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line...)
	}
	if err := os.WriteFile(to, lines, 0o644); err != nil {
		t.Fatal(err)
	}
	return external.Need(g)
}
