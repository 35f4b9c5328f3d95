//go:build linux

package main

import (
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// With 64 MiB of host memory the second of two jobs waits for bytes of it, however much the device has, and begins when
// the first one ends. One that would never fit is refused. What jobs have there is shown, and never more than there is.
func TestClusterHostMemory(t *testing.T) {
	long.Only(t)
	t.Parallel()
	const host = 64 * graph.MiB
	c := startCluster(t, 4*graph.GiB, "--host-memory", "64MiB")
	until := func(what string, ok func(jobs map[string]wire.Record) bool) {
		c.until(what, func(jobs map[string]wire.Record) bool {
			var sum graph.Bytes
			for _, r := range jobs {
				sum += r.Host
			}
			if sum > host {
				t.Errorf("jobs have %s of %s of host memory: %+v", sum, host, jobs)
			}
			return ok(jobs)
		})
	}
	submit := func(name string) string {
		return c.tell("submit", "mlp", "--image", "16", "--batch", "8", "--iterations", forever, "--name", name)
	}
	submit("first")
	until("the first job to train", func(jobs map[string]wire.Record) bool { return jobs["first"].Iteration > 0 })
	if said := c.answered("second", submit("second")); !strings.HasPrefix(said, "job second is queued: waits for ") ||
		!strings.Contains(said, " of host memory: it and the running jobs need ") {
		t.Errorf("submit says %q", said)
	}
	line := c.refused("submit", "mlp", "--batch", "8", "--state", c.state)
	if !strings.HasPrefix(line, "tensile: job mlp cannot run here, even alone: it needs ") ||
		!strings.Contains(line, "of host memory, of which there are 64MiB") {
		t.Errorf("of a job that never fits it is said: %s", line)
	}
	head, _, _ := strings.Cut(c.tell("jobs", "--wide"), "\n")
	if !strings.Contains(head, "1 running, 1 waiting; ") ||
		!strings.Contains(head, "MiB of 64MiB of host memory; ") {
		t.Errorf("jobs begins with %q", head)
	}
	c.tell("stop", "first")
	until("the second job to train", func(jobs map[string]wire.Record) bool { return jobs["second"].Iteration > 0 })
	c.tell("stop", "second")
	c.end()
}
