//go:build linux

package main

import (
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tensile/graph"
	"tensile/scheduler/explain"
	"tensile/wire"
)

// A controller explains a job that trains and a job that waits, and the life of a storage; what it says agrees with the
// records. While it does the jobs train on. Reasons are those of the plan in force, also of a controller before it.
func TestExplain(t *testing.T) {
	c := startCluster(t, graph.MiB)
	c.submit("lenet")
	before := c.train(nil, "lenet")
	c.submit("lenet", "--name", "lenet.2")
	waits := c.in(wire.JobQueued, "lenet.2")
	var e explain.Job
	c.until("lenet to be explained with a measured iteration", func(map[string]wire.Record) bool {
		document(t, []byte(c.tell("explain", "lenet", "--priority", "3", "--json")), &e)
		return e.Time != nil
	})
	record := c.train(before, "lenet")["lenet"]
	if e.Job != "lenet" || e.State != "running" || e.Budget != c.budget || len(e.Holders) != 1 ||
		e.Holders[0].Bytes != record.Claim || e.Taken != record.Claim || len(e.Plans) != 4 ||
		e.Plans[1].Budget != c.budget+c.budget/4 || e.Plans[3].Priority != 3 {
		t.Errorf("lenet is explained by %+v, its record is %+v", e, record)
	}
	x := e.Time
	sum := x.Alone + x.Variants + x.Again + x.Beside + x.Stall + x.Gate + x.Rest
	if sum != x.Iteration || x.Alone <= 0 {
		t.Errorf("the parts of %+v add up to %v", x, sum)
	}
	said := c.tell("explain", "lenet.2")
	if !regexp.MustCompile(`^Job lenet\.2 \(lenet on cpu[^)]*\) is queued, at iteration 0 of 16777216\.
.+\.
What helps: it begins when others have ended; .+\.

It has waited .+ for memory.*\.

The budget is 1MiB: .+ are taken, .+ are free\.
  WHO +HAS +BETWEEN ITERATIONS +PRIORITY +STATE
  lenet +.+ +- +1 +running

What the planner would do now, by prediction:
  as things are, it waits: .+
    lenet has .+ an iteration
`).MatchString(said) {
		t.Errorf("lenet.2 (%s) is explained by\n%s", waits.Reason, said)
	}
	var life explain.Storage
	document(t, []byte(c.tell("explain", "lenet", "conv1.w", "--json")), &life)
	if life.Storage != "conv1.w" || life.Role != graph.Parameter || len(life.Events) < 2 || life.Unsaid ||
		life.Stands != explain.InForce || life.Epoch < 1 {
		t.Errorf("the life of conv1.w is %+v", life)
	}
	const unknown = "tensile: job lenet has no storage conv1.weight: the first of "
	if line := c.refused("explain", "lenet", "conv1.weight", "--state", c.state); !strings.HasPrefix(line, unknown) {
		t.Errorf("a storage that is not there: %s", line)
	}
	c.signal(syscall.SIGKILL)
	c.ends(-1, "")
	c = c.restart()
	c.train(c.train(nil, "lenet"), "lenet") // so that this controller has a report
	var again explain.Storage
	document(t, []byte(c.tell("explain", "lenet", "conv1.w", "--json")), &again)
	if again.Unsaid || again.Stands != explain.InForce || again.Epoch < life.Epoch ||
		again.Epoch == life.Epoch && !slices.Equal(again.Decisions, life.Decisions) {
		t.Errorf("after a restart the life of conv1.w is %+v, and was %+v", again, life)
	}
	c.tell("stop", "lenet", "lenet.2")
	c.in(wire.JobStopped, "lenet")
	if said := c.tell("explain", "lenet"); !regexp.MustCompile(`^Job lenet \(lenet on cpu[^)]*\) was stopped, at .+\.

\d+ iterations were reported to this controller\. Alone and without a plan one takes .+\.
`).MatchString(said) {
		t.Errorf("lenet, which was stopped, is explained by\n%s", said)
	}
	c.end()
}
