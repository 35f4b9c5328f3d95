//go:build linux

package main

import (
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// Two processes with a context of 256 MiB each leave a mebibyte of the budget to a job. A second job waits for what its
// own process would take, until the first is over.
func TestClusterContexts(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 513*graph.MiB, "--device", "cuda", "--fake")
	c.line("^this process and every executor take 256MiB of the device's memory each, by opening it; " +
		"that comes off the budget$")
	submit := func(name string) string {
		return c.tell("submit", "lenet", "--image", "16", "--batch", "1", "--iterations", forever, "--name", name)
	}
	if line := c.refused("submit", "mlp", "--state", c.state); !strings.Contains(line,
		", with 2 contexts of 256MiB each, and the budget is 513MiB") {
		t.Errorf("of a job that never fits it is said: %s", line)
	}
	submit("first")
	c.train(nil, "first")
	said := c.answered("second", submit("second"))
	if !strings.HasPrefix(said, "job second is queued: waits for 255.") ||
		!strings.Contains(said, "MiB of 513MiB, with 3 contexts of 256MiB each") {
		t.Errorf("submit says %q", said)
	}
	if head, _, _ := strings.Cut(c.tell("jobs"), "\n"); !strings.Contains(head,
		"MiB of 513MiB used with 2 contexts of 256MiB each, 1 running, 1 waiting for 255.") {
		t.Errorf("jobs begins with %q", head)
	}
	first := c.jobs()["first"]
	c.tell("stop", "first")
	c.train(nil, "second")
	if second := c.jobs()["second"]; second.Executor == first.Executor {
		t.Errorf("both jobs train at %s, want one process each", first.Executor)
	}
	c.until("one executor to be left", func(map[string]wire.Record) bool { return len(executors(t, c.dir)) == 1 })
	c.tell("stop", "second")
	c.end()
}
