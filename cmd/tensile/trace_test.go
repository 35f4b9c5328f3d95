//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tensile/executor/timeline"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
	"tensile/wire/bustest"
)

// A trace has the iterations that were asked for of each job, on one time axis; a job that is over
// ends it.
func TestClusterTraced(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 64*graph.MiB)
	c.tell("submit", "lenet", "--batch", "2", "--image", "12", "--iterations", forever, "--name", "a")
	c.tell("submit", "lenet", "--batch", "2", "--image", "12", "--iterations", forever, "--name", "b")
	c.train(nil, "a", "b")
	path := filepath.Join(c.files, "trace.json")
	if said := c.tell("trace", "a", "b", "--iterations", "4", "--output", path); !strings.Contains(said,
		path+" has ") || !strings.HasSuffix(said, "https://ui.perfetto.dev shows it\n") {
		t.Errorf("trace says %q", said)
	}
	for job, n := range iterationsOf(t, path) {
		if n < 4 {
			t.Errorf("the trace has %d iterations of %s, want 4", n, job)
		}
	}
	c.tell("park", "b")
	c.in(wire.JobParked, "b")
	// What is heard of c shows that b's trace was asked for.
	c.tell("submit", "lenet", "--batch", "2", "--image", "12", "--iterations", forever, "--name", "c")
	conn := c.connect("")
	defer conn.Close()
	heard := make(chan struct{}, 1)
	stop, err := conn.Subscribe(wire.TracedSubject("*", "c"), func(string, []byte) {
		select {
		case heard <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	traced := start(t, c.files, "trace", "b", "c", "--state", c.state, "--output", path)
	<-heard
	c.tell("stop", "b")
	if said := traced.ends(0, ""); !strings.Contains(said, path+" has ") {
		t.Errorf("the trace of a job that is stopped says %q", said)
	}
	if n := iterationsOf(t, path); len(n) != 1 || slices.Max(slices.Collect(maps.Values(n))) < 3 {
		t.Errorf("the trace has iterations of %v, want 3 of c alone", n)
	}
	for _, test := range []struct{ args, want string }{
		{"trace", "tensile: tensile trace: name a JOB: tensile jobs lists them"},
		{"trace b", "tensile: job b is stopped already"},
		{"trace x", "tensile: there is no job x that runs or waits: tensile jobs lists them"},
		{"trace a --iterations 0", "tensile: --iterations 0: give 1 to 1000"},
		{"trace a --output no/file", "tensile: --output: no/file: folder no does not exist: make it first"},
	} {
		if line := c.refused(append(strings.Fields(test.args), "--state", c.state)...); line != test.want {
			t.Errorf("%s: %q, want %q", test.args, line, test.want)
		}
	}
	c.tell("stop", "a", "c")
	c.end()
}

// iterationsOf returns how many iterations of each process of a trace are on its compute lane.
func iterationsOf(t *testing.T, path string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		Events []struct {
			Phase   string         `json:"ph"`
			Process int            `json:"pid"`
			Thread  int            `json:"tid"`
			Args    map[string]any `json:"args"`
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(data, &trace); err != nil {
		t.Fatal(err)
	}
	names, seen, count := make(map[int]string), make(map[string]bool), make(map[string]int)
	for _, e := range trace.Events {
		if e.Phase == "M" && e.Thread == 0 {
			names[e.Process] = fmt.Sprint(e.Args["name"])
		}
		key := fmt.Sprint(e.Process, " ", e.Args["iteration"])
		if e.Phase == "X" && e.Args["section"] == "body" && !seen[key] {
			seen[key] = true
			count[names[e.Process]]++
		}
	}
	return count
}

// TestTraceAsksAgain: what a controller that ended did not hand on is asked for again; what comes is not.
func TestTraceAsksAgain(t *testing.T) {
	tr := newTracing([]string{"a", "b"})
	for range 2 {
		tr.add(timeline.Section{Job: "a", Kind: timeline.Body})
	}
	due := make(chan time.Time)
	asked := make(chan string, 8)
	want := func(job string, iterations int) error {
		asked <- fmt.Sprint(job, iterations)
		return nil
	}
	ended := make(chan error)
	go func() { ended <- tr.wait(context.Background(), bustest.New(), 3, due, want) }()
	due <- time.Time{} // a was heard of
	if got := <-asked; got != "b3" {
		t.Fatalf("asked for %s, want b3", got)
	}
	due <- time.Time{}
	if got := <-asked + <-asked; got != "a1b3" {
		t.Fatalf("asked for %s, want a1b3", got)
	}
	tr.add(timeline.Section{Job: "a", Kind: timeline.Body})
	for range 3 {
		tr.add(timeline.Section{Job: "b", Kind: timeline.Body})
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
