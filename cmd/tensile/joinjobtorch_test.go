//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tensile/external/sidecar"
	"tensile/graph"
	"tensile/internal/needs"
	"tensile/wire"
)

// Two scripts and a job of ours train beside each other within 60 % of what they need together. The scripts end with
// the bits that they have alone, and what their allocators had is within their plans.
func TestJoinTorchJobs(t *testing.T) {
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
		if s.Iterations != 12 || s.Planned < 3 || s.Plan <= 0 || s.Touched > s.Plan+s.Plan/100+64<<10 ||
			s.Faults != 0 || !s.Ended {
			t.Errorf("%s: report %s\nstderr:\n%s", network, text, &p.stderr)
		}
		if r := c.in(wire.Done, network); r.Iteration != 12 || r.Script == nil || r.Script.Plan != s.Plan ||
			r.Script.Reserve != s.Reserve || r.Result == nil {
			t.Errorf("%s: its record is %+v", network, r)
		}
	}
	c.train(c.jobs(), "lenet")
	c.tell("stop", "lenet")
	c.end()
}
