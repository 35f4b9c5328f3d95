//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
	"tensile/wire/bus"
)

// Jobs come and go, and all are planned again each time: those that run shrink for one that comes, which begins when
// they have; and what one leaves behind goes to one that waits, and to the others. The link is so slow that bytes save
// time. How busy the machine is while this runs is no reason to plan again.
func TestClusterReplans(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 2600*graph.KiB, "--link", "6MB/s", "--threshold", "100")
	c.submit("lenet:2")
	two := c.train(nil, "lenet.1", "lenet.2")
	if a, b := two["lenet.1"].Executor, two["lenet.2"].Executor; a == b || len(executors(t, c.dir)) != 2 {
		t.Errorf("the jobs train at %s and %s of %v, want one process each", a, b, executors(t, c.dir))
	}

	said := c.answered("lenet", c.submit("lenet"))
	if !strings.HasPrefix(said, "job lenet is starting") && !strings.HasPrefix(said, "job lenet is running") {
		t.Errorf("submit says %q", said)
	}
	three := c.train(two, "lenet", "lenet.1", "lenet.2")
	for _, name := range []string{"lenet.1", "lenet.2"} {
		before, now := two[name], three[name]
		if now.PlansMade <= before.PlansMade || now.Epoch <= before.Epoch || now.Applied <= before.Applied ||
			now.Claim >= before.Claim {
			t.Errorf("job %s was not planned again for a third, or has not shrunk for it: %+v, before %+v", name, now,
				before)
		}
	}

	// A fourth has to wait, and says for how much; a fifth waits behind it. One that never fits is refused.
	said = c.answered("four", c.submit("lenet", "--name", "four"))
	if !strings.HasPrefix(said, "job four is queued: waits for ") {
		t.Errorf("submit says %q", said)
	}
	said = c.answered("five", c.submit("lenet", "--name", "five"))
	if said != "job five is queued: job four is before it in the queue\n" {
		t.Errorf("submit says %q", said)
	}
	if r := c.jobs()["four"]; r.State != wire.JobQueued || r.Wait.DeviceBytes() <= 0 ||
		r.Wait.DeviceBytes() > c.budget ||
		!strings.Contains(r.Reason, r.Wait.DeviceBytes().String()+":") {
		t.Errorf("the record of a job that waits for bytes: %+v", r)
	}
	line := c.refused("submit", "mlp", "--batch", "8", "--state", c.state)
	if !strings.HasPrefix(line, "tensile: job mlp cannot run here, even alone: it needs 16MiB at fc2.w.update and "+
		"the budget is 2.54MiB; no smaller --batch fits") {
		t.Errorf("of a job that never fits it is said: %s", line)
	}
	// So it is said of one that was taken, and found out later.
	conn := c.connect("")
	defer conn.Close()
	var s submission
	s.workloadFlags.register(new(cobra.Command))
	s.batch = 1024
	late := s.suggestBatch(t.Context(), conn, []string{"lenet"},
		&exitError{errors.New("job lenet has failed: it needs 9MiB; " + plans.SmallerHint), someDiverged})
	var ended *exitError
	if !errors.As(late, &ended) || ended.status != someDiverged ||
		!strings.HasPrefix(late.Error(), "job lenet has failed: it needs 9MiB; --batch ") ||
		!strings.HasSuffix(late.Error(), " would fit") {
		t.Errorf("of a job that failed for its size it is said: %v", late)
	}

	if said := c.tell("stop", "lenet.1"); said != "job lenet.1 is stopping\n" {
		t.Errorf("stop says %q", said)
	}
	next := c.train(three, "lenet", "lenet.2", "four")
	if r := next["lenet.1"]; r.State != wire.JobStopped || r.Result == nil || len(r.Result.Losses) != r.Iteration {
		t.Errorf("the record of the stopped job: %+v", r)
	}

	if said := c.tell("stop", "five"); said != "job five is stopped\n" {
		t.Errorf("stop says %q", said)
	}

	// Nobody waits for what these leave.
	c.tell("stop", "lenet", "four")
	c.until("the last job to get the bytes of the others", func(jobs map[string]wire.Record) bool {
		before, now := next["lenet.2"], jobs["lenet.2"]
		return now.Claim > before.Claim && now.PlansMade > before.PlansMade && now.Applied == now.Epoch
	})
	c.tell("stop", "lenet.2")
	c.end()
}

// An executor that is killed takes its own job with it if no checkpoints are taken of it, and no other. Its bytes are
// free again.
func TestClusterLosesExecutor(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	c.submit("lenet", "--name", "lenet.1", "--checkpoint", "none")
	c.train(nil, "lenet.1")
	c.submit("lenet", "--name", "lenet.2") // the first one is planned for again
	before := c.train(nil, "lenet.1", "lenet.2")
	c.shows("lenet.1")
	kill(t, executors(t, c.dir)[before["lenet.1"].Executor])
	lost := c.in(wire.JobFailed, "lenet.1")
	if !strings.HasPrefix(lost.Reason, "its executor ended: signal: killed") || lost.Claim != 0 || lost.Result == nil ||
		len(lost.Result.Losses) < before["lenet.1"].Iteration {
		t.Errorf("the job whose executor was killed: %+v", lost)
	}
	c.train(c.jobs(), "lenet.2")
	if pid := executors(t, c.dir)[before["lenet.2"].Executor]; pid == 0 {
		t.Error("the executor of the other job has changed")
	}
	c.submit("lenet") // into the bytes that are free
	c.train(nil, "lenet", "lenet.2")
	c.tell("stop", "lenet", "lenet.2")
	c.end()
}

// Of jobs that are over the newest are remembered, with their graphs and logs.
func TestClusterForgets(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2*graph.MiB, "--keep", "1")
	train := func(name, batch string) wire.Record {
		c.tell("submit", "lenet", "--name", name, "--batch", batch, "--iterations", "2")
		return c.in(wire.JobFinished, name)
	}
	first := train("first", "4")
	train("second", "8")
	jobs := c.until("the first job to be forgotten", func(jobs map[string]wire.Record) bool { return len(jobs) == 1 })
	conn := c.connect("")
	defer conn.Close()
	if _, err := conn.Load(t.Context(), wire.Graphs, wire.GraphObject(jobs["second"].Spec.Graph)); err != nil {
		t.Error(err)
	}
	lines := func(job string) (n int) {
		stop, err := wire.FollowLog(t.Context(), conn, job, func([]byte) { n++ })
		if err != nil {
			t.Fatal(err)
		}
		stop()
		return n
	}
	c.until("the log of the first job to go", func(map[string]wire.Record) bool { return lines("first") == 0 })
	if lines("second") == 0 {
		t.Error("the log of the second job has gone")
	}
	c.until("the graph of the first job to go", func(map[string]wire.Record) bool {
		_, err := conn.Load(t.Context(), wire.Graphs, wire.GraphObject(first.Spec.Graph))
		return errors.Is(err, wire.ErrNotFound)
	})
	c.end()
}

// A job whose executor can not be started, here because a folder is where its credentials should be, gets another.
func TestClusterStartsAgain(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	if err := os.MkdirAll(filepath.Join(c.state, "executors", "x1.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.submit("lenet")
	c.line("^job lenet had not begun: start executor x1: write credentials: .*; it gets another executor$")
	if r := c.train(nil, "lenet")["lenet"]; r.Executor != "x1.2" || r.Incarnation != 2 {
		t.Errorf("the job trains at %s after %d starts, want x1.2 after 2", r.Executor, r.Incarnation)
	}
	c.tell("stop", "lenet")
	c.end()
}

// Executors go on while their controller is away. The next one on its state finds jobs and plans, and goes on too.
func TestClusterRestarts(t *testing.T) {
	long.Only(t)
	t.Parallel()
	const calm = "100" // how busy the machine is while this runs is no reason to plan again
	first := startCluster(t, 2600*graph.KiB, "--threshold", calm)
	first.submit("lenet:2")
	before := first.train(nil, "lenet.1", "lenet.2")
	pids := executors(t, first.dir)
	first.signal(syscall.SIGKILL)
	first.ends(-1, "")
	for one, two := processorTime(t, pids["x1"]), processorTime(t, pids["x2"]); ; {
		line := first.refused("jobs", "--state", first.state)
		if !strings.HasPrefix(line, "tensile: connect to nats://127.0.0.1:") ||
			!strings.Contains(line, "connection refused: start a controller") {
			t.Fatalf("while the controller is away jobs says: %s", line)
		}
		const ticks = 5
		if processorTime(t, pids["x1"]) > one+ticks && processorTime(t, pids["x2"]) > two+ticks {
			break
		}
	}

	c := first.restart("--threshold", calm)
	for name, now := range c.jobs() {
		was := before[name]
		if now.Order != was.Order || now.Executor != was.Executor || now.Epoch < was.Epoch ||
			now.PlansMade < was.PlansMade || now.Claim < was.Claim {
			t.Errorf("job %s is not what it was: %+v, before %+v", name, now, was)
		}
	}
	more := c.train(before, "lenet.1", "lenet.2")
	for executor, pid := range executors(t, c.dir) {
		if pid != pids[executor] {
			t.Errorf("executor %s is process %d, and was %d before", executor, pid, pids[executor])
		}
	}
	c.submit("lenet")
	three := c.train(more, "lenet", "lenet.1", "lenet.2")
	for name, was := range before {
		if now := three[name]; now.PlansMade <= was.PlansMade || now.Applied <= was.Applied || now.Claim >= was.Claim {
			t.Errorf("job %s was not planned again for a third, or has not shrunk for it: %+v, before %+v", name, now,
				was)
		}
	}
	c.tell("stop", "lenet", "lenet.1", "lenet.2")
	c.end()
	first.vanishes()
}

// processorTime is what a process has computed for, in ticks.
func processorTime(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatalf("an executor has ended with its controller: %v", err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from the third on
	ticks, err := strconv.Atoi(fields[14-3])
	if err != nil {
		t.Fatal(err)
	}
	return ticks
}

// An executor joins from elsewhere over TLS, with credentials of its own, and gets a job.
func TestClusterJoined(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 2*graph.MiB, "--tls", "--listen", "127.0.0.1:0")
	path := filepath.Join(c.files, "lab.json")
	if said := c.tell("credentials", "lab.2", "--output", path); said != path+": credentials of executor lab.2\n" {
		t.Errorf("credentials says %q", said)
	}
	for _, name := range []string{path, filepath.Join(c.state, clientFile), filepath.Join(c.state, "secret"),
		filepath.Join(c.state, "address")} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode of %s is %v, want 0600", name, info.Mode())
		}
	}

	right, err := bus.ReadCredentials(path)
	if err != nil || !strings.HasPrefix(right.URL, "tls://127.0.0.1:") {
		t.Fatalf("credentials %+v, %v", right, err)
	}
	for _, test := range []struct {
		name   string
		change func(*bus.Credentials)
		want   string
	}{
		{"password", func(to *bus.Credentials) { to.Password = strings.Repeat("x", len(to.Password)) },
			`user "x-lab_2e2" is refused: use the credentials`},
		{"user", func(to *bus.Credentials) { to.User = bus.Executor("lob") },
			`user "x-lob" is refused: use the credentials`},
		{"authority", func(to *bus.Credentials) { to.CA = "" }, "failed to verify certificate"},
		{"client", func(to *bus.Credentials) { to.User = bus.Client }, "is for client, not for an executor"},
		{"port", func(to *bus.Credentials) { to.URL = "tls://127.0.0.1:1" },
			"connection refused: start a controller there"},
	} {
		wrong := right
		test.change(&wrong)
		name := filepath.Join(c.files, test.name+".json")
		if err := bus.WriteCredentials(name, wrong); err != nil {
			t.Fatal(err)
		}
		if line := c.refused("executor", "--credentials", name); !strings.HasPrefix(line, "tensile: ") ||
			!strings.Contains(line, test.want) {
			t.Errorf("with another %s: %s", test.name, line)
		}
	}

	lab := start(t, c.files, "executor", "--credentials", path)
	c.line(`^executor lab\.2 has joined$`)
	c.submit("lenet")
	if r := c.train(nil, "lenet")["lenet"]; r.Executor != "lab.2" {
		t.Errorf("the job trains at %s, want lab.2", r.Executor)
	}
	c.tell("stop", "lenet")
	c.in(wire.JobStopped, "lenet")
	lab.signal(syscall.SIGTERM)
	lab.ends(130, "^tensile: interrupted$")
	c.end()
}
