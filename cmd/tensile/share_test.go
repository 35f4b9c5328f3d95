//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tensile/controller/memory"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// medium is a network whose arena has a page more than it holds between two iterations, on the cpu.
var medium = []string{"lenet", "--batch", "32"}

// together is what jobs claim together.
func together(jobs map[string]wire.Record) graph.Bytes {
	var sum memory.Sum
	for _, r := range jobs {
		sum = sum.Add(memory.ClaimOf(&r))
	}
	return sum.Bytes()
}

// Processes of their own that share memory train to the bits of a run without a plan, within a budget in which their
// arenas would not fit beside each other.
func TestRunSharesMemory(t *testing.T) {
	t.Parallel()
	for _, sharing := range long.Or([]string{"gates"}, []string{"gates", "zico", "waterwave", "slices"}) {
		t.Run(sharing, func(t *testing.T) {
			t.Parallel()
			p := start(t, t.TempDir(), append([]string{"run", "mlp", "--iterations", "20", "--budget", "29MiB",
				"--compare", "--memory-sharing", sharing}, medium...)...)
			if n := strings.Count(p.ends(0, ""), "  identical\n"); n != 2 {
				t.Errorf("the table says of %d jobs that their bits are identical, want 2", n)
			}
			p.nothing()
		})
	}
}

// The figures of a run whose jobs share memory by gates fit one another.
func TestRunReportGates(t *testing.T) {
	long.Only(t)
	t.Parallel()
	if r := runReport(t, "--memory-sharing", "gates"); r.Sharing != wire.Gates {
		t.Errorf("jobs share memory by %s, want gates", r.Sharing)
	}
}

// A lease that hangs is killed, and a new one started, so that the jobs go on.
func TestClusterLeaseHangs(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 8*graph.MiB, "--memory-sharing", "gates", "--threshold", "100")
	names := []string{"a", "b"}
	for _, name := range names {
		c.tell(append(append([]string{"submit"}, medium...), "--name", name, "--iterations", forever)...)
	}
	c.train(nil, names...)
	var pids []int // both executors may start one, of which one finds that the device is locked, and ends
	c.until("one lease", func(map[string]wire.Record) bool {
		pids = leases(t, c.state)
		return len(pids) == 1
	})
	if err := syscall.Kill(pids[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c.until("the lease to be another", func(map[string]wire.Record) bool {
		return !slices.Contains(leases(t, c.state), pids[0])
	})
	c.train(c.jobs(), names...)
	c.tell(append([]string{"stop"}, names...)...)
	for _, name := range names {
		c.in(wire.JobStopped, name)
	}
	c.end()
}

// Executors that share memory by gates are killed, and the controller: the others go on, and all jobs come to the bits
// of one that nothing disturbs. While the controller is away gates work as before.
func TestClusterGates(t *testing.T) {
	long.Only(t)
	t.Parallel()
	for _, sharing := range long.Or([]string{"gates"}, []string{"gates", "zico", "waterwave"}) {
		t.Run(sharing, func(t *testing.T) {
			t.Parallel()
			clusterGates(t, sharing)
		})
	}
}

func clusterGates(t *testing.T, sharing string) {
	flags := []string{"--memory-sharing", sharing, "--threshold", "100"}
	c := startCluster(t, 8*graph.MiB, flags...) // of 12 MiB that three arenas take
	names := []string{"a", "b", "c"}
	for _, name := range names {
		c.tell(append(append([]string{"submit"}, medium...), "--name", name, "--iterations", forever, "--save", name,
			"--checkpoint", "10it", "--restarts", "20")...)
	}
	before := c.train(nil, names...)
	var arenas graph.Bytes
	for _, r := range before {
		arenas += r.Claim
	}
	if least := together(before); arenas <= c.budget || least > c.budget {
		t.Errorf("jobs claim %s, together %s, of %s", arenas, least, c.budget)
	}
	victims := executors(t, c.dir)
	kill(t, victims[before["b"].Executor])
	c.signal(syscall.SIGKILL)
	c.ends(-1, "")
	kill(t, victims[before["c"].Executor])
	c = c.restart(flags...)
	c.until("the jobs to go on", func(jobs map[string]wire.Record) bool {
		if least := together(jobs); least > c.budget {
			t.Errorf("jobs claim %s of %s", least, c.budget)
		}
		return jobs["a"].Incarnation == 1 && jobs["b"].Incarnation > 1 && jobs["c"].Incarnation > 1
	})
	c.train(before, names...)
	c.tell(append([]string{"stop"}, names...)...)
	for _, name := range names {
		c.settles(name, medium)
	}
	c.end()
}

// The budget becomes smaller and larger again while jobs that share memory train: they go on within it, in the
// processes that they have, and no iteration is lost.
func TestClusterBudgetByGates(t *testing.T) {
	long.Only(t)
	t.Parallel()
	for _, sharing := range long.Or([]string{"gates"}, []string{"gates", "zico", "waterwave"}) {
		t.Run(sharing, func(t *testing.T) {
			t.Parallel()
			clusterBudgetByGates(t, sharing)
		})
	}
}

func clusterBudgetByGates(t *testing.T, sharing string) {
	c := startCluster(t, 12*graph.MiB, "--memory-sharing", sharing, "--threshold", "100")
	for _, name := range []string{"a", "b", "c"} {
		c.tell(append(append([]string{"submit"}, medium...), "--name", name, "--iterations", forever)...)
	}
	c.train(nil, "a", "b", "c")
	for _, mib := range []graph.Bytes{8, 12} {
		c.tell("budget", fmt.Sprintf("%dMiB", mib))
		what := fmt.Sprintf("jobs to fit %d MiB", mib)
		c.until(what, func(jobs map[string]wire.Record) bool { return together(jobs) <= mib*graph.MiB })
		c.train(c.jobs(), "a", "b", "c")
	}
	c.tell("stop", "a", "b", "c")
	jobs := c.until("all jobs to be over", func(jobs map[string]wire.Record) bool { return countActive(jobs) == 0 })
	for name, r := range jobs {
		if r.State != wire.JobStopped || r.Incarnation != 1 || len(r.Result.Losses) != r.Iteration {
			t.Errorf("job %s is %s in incarnation %d, with %d losses of %d: %s", name, r.State, r.Incarnation,
				len(r.Result.Losses), r.Iteration, r.Reason)
		}
	}
	c.end()
}
