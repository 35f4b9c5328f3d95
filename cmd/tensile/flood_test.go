//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// Whoever has the credentials of an executor writes into the log of a job that another trains, and floods the
// controller with all that executors may write. Nobody is shown the lines, the job trains on and ends with its result
// and all of its log, and what was strange is removed and told.
func TestClusterFlood(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	c.submit("lenet")
	c.train(nil, "lenet")
	path := filepath.Join(c.files, "lab.json")
	c.tell("credentials", "lab", "--output", path)
	conn := c.connect(path)
	defer conn.Close()
	if err := conn.Append(t.Context(), wire.LogSubject("lab", "lenet"), []byte("forged")); err != nil {
		t.Fatal(err)
	}
	if err := conn.Append(t.Context(), wire.LogSubject(c.jobs()["lenet"].Executor, "lenet"),
		[]byte("forged")); err == nil {
		t.Error("an executor writes as another")
	}

	const (
		kibibyte = 1 << 10
		at       = "\x00"
	)
	for _, flood := range []struct {
		subject string // with the number of the message in place of at
		bytes   int
		times   int
	}{
		{"log.lab.lenet", 16 * kibibyte, 4_000},
		{"log.lab.j" + at, 16 * kibibyte, 4_000},
		{"log.lab.k" + at, 1, 20_000},
		{"$KV.status.lab", 1 << 20, 100},
		{"$KV.status.lab", 1, 4_000},
		{"$KV.result.lab." + at, 100 * kibibyte, 3_000},
		{"$KV.result.lab." + at, 1, 4_000},
		{"report.lab.lenet", 10 * kibibyte, 4_000},
		{"trace.lab.lenet", 10 * kibibyte, 4_000},
	} {
		before := c.jobs()
		for !conn.Connected() { // it was disconnected for a while
			c.train(before, "lenet")
			before = c.jobs()
		}
		data := []byte(strings.Repeat("x", flood.bytes))
		for i := range flood.times {
			// what the server cannot take it refuses, and may close the connection, which comes back by itself
			_ = conn.Publish(strings.ReplaceAll(flood.subject, at, fmt.Sprint(i)), data)
		}
		_ = conn.Append(t.Context(), wire.LogSubject("lab", "over"), nil) // after all of these
		c.train(before, "lenet")
		status := string(read(t, fmt.Sprintf("/proc/%d/status", c.command.Process.Pid)))
		t.Logf("after %d times %d bytes on %q the controller took at most %s", flood.times, flood.bytes, flood.subject,
			regexp.MustCompile(`VmHWM:\s+(.*)`).FindStringSubmatch(status)[1])
	}
	if said := c.tell("logs", "lenet"); strings.Contains(said, "forged") || strings.Contains(said, "xxxx") ||
		!strings.HasPrefix(said, "trains with layout 1 in ") {
		t.Errorf("the log of the job is:\n%.2000s", said)
	}
	c.line("lines of executor lab are removed: it has written logs of jobs that it does not have")
	c.tell("stop", "lenet")
	if r := c.in(wire.JobStopped, "lenet"); r.Result == nil || len(r.Result.Losses) != r.Iteration {
		t.Errorf("the job has ended after %d iterations without its losses", r.Iteration)
	}
	c.end()
}
