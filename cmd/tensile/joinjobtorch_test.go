//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tensile/executor/sidecar"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
	"tensile/wire"
)

// A script that leaves trains on to its own bits. Jobs say so, and that it claims what it has without a plan, until it
// ends.
func TestJoinTorchLeaves(t *testing.T) {
	long.Only(t)
	t.Parallel()
	python := needs.Torch(t)
	want, stderr, status := trainTorch(t, python, torchScript, "encoder", "plain")
	if status != 0 {
		t.Fatalf("alone: status %d, stderr:\n%s", status, stderr)
	}
	all := joinTorch(t, python, "encoder", 0, want).Touched
	c := startCluster(t, 2*all)
	script, err := filepath.Abs(torchScript)
	if err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	ends := filepath.Join(c.files, "ends")
	if err := syscall.Mkfifo(ends, 0o600); err != nil {
		t.Fatal(err)
	}
	p := startWith(t, t.TempDir(), []string{"PYTHONPATH=" + packages, "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1"},
		"join", "--state", c.state, "--name", "one", "--memory", fmt.Sprint(int64(all/2)), "--", python, script,
		"encoder", "leave", ends)
	r := c.until("jobs to say that it has left", func(jobs map[string]wire.Record) bool {
		return strings.Contains(jobs["one"].Reason, "tensile.leave") && jobs["one"].Claim >= all*95/100
	})["one"]
	if r.State != wire.JobRunning || r.Script == nil || r.Script.Plan <= 0 {
		t.Errorf("it has followed a plan and left: %+v", r)
	}
	if err := os.WriteFile(ends, nil, 0); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for p.lines.Scan() {
		got.WriteString(p.lines.Text() + "\n")
	}
	if err := p.wait(); err != nil || got.String() != want {
		t.Errorf("it ended with %v and printed\n%s\nwant\n%s\nstderr:\n%s", err, &got, want, &p.stderr)
	}
	if r := c.in(wire.JobFinished, "one"); r.Claim != 0 || r.Iteration != 8 {
		t.Errorf("its record is %+v", r)
	}
	c.end()
}

// Two scripts and a job of ours train beside each other within 60 % of what they need together. The scripts end with
// the bits that they have alone, and what their allocators had is within their plans.
func TestJoinTorchJobs(t *testing.T) {
	long.Only(t)
	t.Parallel()
	python := needs.Torch(t)
	c := startCluster(t, 3600*graph.KiB)
	c.submit("lenet")
	script, err := filepath.Abs(torchScript)
	if err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	networks := []string{"cnn", "encoder"}
	reports, processes, want := map[string]string{}, map[string]*family{}, map[string]string{}
	for _, network := range networks {
		out, stderr, status := trainTorch(t, python, torchScript, network, "plain")
		if status != 0 {
			t.Fatalf("%s alone: status %d, stderr:\n%s", network, status, stderr)
		}
		want[network] = out
	}
	for _, network := range networks {
		dir := t.TempDir()
		reports[network] = filepath.Join(dir, "report.json")
		processes[network] = startWith(t, dir, []string{"PYTHONPATH=" + packages, "PYTHONDONTWRITEBYTECODE=1",
			"OMP_NUM_THREADS=1"}, "join", "--state", c.state, "--name", network, "--memory", "512KiB", "--report",
			reports[network], "--", python, script, network)
	}
	for _, network := range networks {
		p := processes[network]
		var got strings.Builder
		for p.lines.Scan() {
			got.WriteString(p.lines.Text() + "\n")
			c.jobs() // whose claims exceed the budget only while a script has no plan
		}
		if err := p.wait(); err != nil || got.String() != want[network] {
			t.Fatalf("%s ended with %v and printed\n%s\nwant\n%s\nstderr:\n%s", network, err, &got, want[network],
				&p.stderr)
		}
		text, err := os.ReadFile(reports[network])
		if err != nil {
			t.Fatal(err)
		}
		var s sidecar.Summary
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: plan %d, touched %d, reserve %d, %d of %d iterations by a plan", network, s.Plan, s.Touched,
			s.Reserve, s.Planned, s.Iterations)
		if s.Iterations != 12 || s.Planned < 3 || s.Plan <= 0 || s.Touched > s.Largest+s.Largest/100+64<<10 ||
			s.Faults != 0 || !s.Ended {
			t.Errorf("%s: report %s\nstderr:\n%s", network, text, &p.stderr)
		}
		if r := c.in(wire.JobFinished, network); r.Iteration != 12 || r.Script == nil || r.Script.Plan != s.Plan ||
			r.Script.Reserve != s.Reserve || r.Result == nil {
			t.Errorf("%s: its record is %+v", network, r)
		}
	}
	c.train(c.jobs(), "lenet")
	c.tell("stop", "lenet")
	c.end()
}

// A script without a plan keeps the limit that it begins with as a job, to its own bits, claims no more than it is seen
// to hold, and one whose ops need more than the budget trains on.
func TestFirstIterationAsJob(t *testing.T) {
	long.Only(t)
	t.Parallel()
	python := needs.Torch(t)
	c := startCluster(t, 16*graph.MiB)
	script := filepath.Join(c.files, "train.py")
	write(t, script, firstScript)
	want, stderr, status := trainTorch(t, python, script)
	if status != 0 {
		t.Fatalf("alone: status %d, stderr:\n%s", status, stderr)
	}
	for _, memory := range []string{"5MiB", "1MiB"} {
		name := "job-" + strings.ToLower(memory)
		out, stderr, status := trainTorch(t, "tensile", "join", "--state", c.state, "--name", name, "--memory", memory,
			"--", python, script)
		if status != 0 || out != want || !strings.Contains(stderr, "True\n") {
			t.Errorf("within %s: status %d\n%s\n%s\nwant\n%s", memory, status, out, stderr, want)
		}
		if r := c.in(wire.JobFinished, name); r.Claim != 0 || r.Iteration != 4 {
			t.Errorf("within %s: its record is %+v", memory, r)
		}
	}
	c.end()
}

// ranksScript trains by itself, or with "ddp" or "reduce" over all ranks, for some steps. Each rank prints its last
// bits.
const ranksScript = `
import hashlib, os, sys, torch
if len(sys.argv) > 3:
    with open(os.path.join(sys.argv[3], "rank" + os.environ["RANK"]), "w") as f:
        f.write(str(os.getpid()))
torch.manual_seed(int(os.environ["RANK"]))
model = torch.nn.Sequential(*[l for _ in range(6) for l in (torch.nn.Linear(256, 256), torch.nn.ReLU())])
if sys.argv[1] != "alone":
    torch.distributed.init_process_group("gloo")
if sys.argv[1] == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(int(sys.argv[2])):
    optimizer.zero_grad()
    loss = model(torch.randn(256, 256)).square().mean()
    loss.backward()
    for p in model.parameters() if sys.argv[1] == "reduce" else ():
        torch.distributed.all_reduce(p.grad)
    optimizer.step()
digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
os.write(1, f"rank {os.environ['RANK']} {loss.item()} {digest.hexdigest()}\n".encode())  # at once: another prints, too
if sys.argv[1] != "alone":
    torch.distributed.destroy_process_group()
`

// Each rank of torchrun is a job of a controller, and is planned for, to the bits that it has alone. What ranks have
// stays their own when their sidecar is killed, until they end. Ranks that train together say that they are not
// planned.
func TestJoinTorchRanks(t *testing.T) {
	long.Only(t)
	t.Parallel()
	python := needs.Torch(t)
	c := startCluster(t, 16*graph.MiB, "--silence", "3s")
	script := filepath.Join(c.files, "train.py")
	write(t, script, ranksScript)
	command := func(args ...string) []string {
		return append([]string{python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script},
			args...)
	}
	join := func(name string, args ...string) *family {
		words := []string{"join", "--state", c.state, "--name", name, "--memory", "4MiB", "--"}
		return startWith(t, t.TempDir(), []string{"OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1"},
			append(words, command(args...)...)...)
	}
	sorted := func(text string) string {
		return strings.Join(slices.Sorted(strings.SplitSeq(strings.TrimSpace(text), "\n")), "\n")
	}
	rest := func(p *family) string {
		var got strings.Builder
		for p.lines.Scan() {
			got.WriteString(p.lines.Text() + "\n")
		}
		return sorted(got.String())
	}
	for kind, why := range map[string]string{"alone": "", "ddp": "training over several processes",
		"reduce": "others of its group"} {
		want, stderr, status := trainTorch(t, command(kind, "30")...)
		if status != 0 {
			t.Fatalf("%s: status %d, stderr:\n%s", kind, status, stderr)
		}
		p := join(kind, kind, "30")
		got := rest(p)
		if err := p.wait(); err != nil || got != sorted(want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: it ended with %v and printed\n%s\nwant\n%s\nstderr:\n%s", kind, err, got, sorted(want),
				&p.stderr)
		}
		c.in(wire.JobFinished, kind)
		if kind == "alone" {
			for _, job := range []string{"alone", "alone-1"} {
				if r := c.in(wire.JobFinished, job); r.Iteration != 30 || r.Script == nil || r.Script.Plan <= 0 {
					t.Errorf("%s is not planned: %+v; stderr:\n%s", job, r, &p.stderr)
				}
			}
		} else if r, there := c.jobs()[kind+"-1"]; there || !strings.Contains(p.stderr.String(),
			kind+"-1: it is no job, and trains without a plan beside the jobs: "+why) {
			t.Errorf("%+v; stderr:\n%s", r, &p.stderr)
		}
	}
	p := join("lost", "alone", forever, c.files)
	jobs := c.until("both ranks to be planned", func(jobs map[string]wire.Record) bool {
		planned := func(r wire.Record) bool {
			return r.State == wire.JobRunning && r.Script != nil && r.Script.Plan > 0
		}
		return planned(jobs["lost"]) && planned(jobs["lost-1"])
	})
	p.signal(syscall.SIGKILL)
	for _, job := range []string{"lost", "lost-1"} {
		if r := c.in(wire.JobUnknown, job); r.Claim < jobs[job].Script.Plan {
			t.Errorf("without its sidecar %s claims %s, and had %s", job, r.Claim, jobs[job].Script.Plan)
		}
	}
	rank, err := strconv.Atoi(string(read(t, filepath.Join(c.files, "rank1"))))
	if err != nil {
		t.Fatal(err)
	}
	kill(t, rank) // and torchrun ends the other
	c.in(wire.JobFailed, "lost")
	c.in(wire.JobFailed, "lost-1")
	c.end()
}
