//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tensile/controller"
	"tensile/graph"
	"tensile/wire"
)

// medium is a network whose arena has a page more than it holds between two iterations, on the cpu.
var medium = []string{"lenet", "--batch", "32"}

// together is what jobs claim together.
func together(jobs map[string]wire.Record) graph.Bytes {
	var sum controller.Together
	for _, r := range jobs {
		sum = sum.With(controller.ClaimOf(&r))
	}
	return sum.Bytes()
}

// Processes of their own that share memory train to the bits of a run without a plan, within a budget in which their
// arenas would not fit beside each other.
func TestRunSharesMemory(t *testing.T) {
	t.Parallel()
	for _, sharing := range []string{"gates", "shift", "pairs", "slices"} {
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
	t.Parallel()
	if r := runReport(t, "--memory-sharing", "gates"); r.Sharing != wire.Gates {
		t.Errorf("jobs share memory by %s, want gates", r.Sharing)
	}
}

// Executors that share memory by gates are killed, and the controller: the others go on, and all jobs come to the bits
// of one that nothing disturbs. While the controller is away gates work as before.
func TestClusterGates(t *testing.T) {
	t.Parallel()
	for _, sharing := range []string{"gates", "shift", "pairs"} {
		t.Run(sharing, func(t *testing.T) {
			t.Parallel()
			clusterGates(t, sharing)
		})
	}
}

func clusterGates(t *testing.T, sharing string) {
	const iterations = 400 // so that all three train for a while beside each other
	submit := func(c *cluster, name string) string {
		path := fmt.Sprintf("%s/%s.safetensors", c.files, name)
		c.tell(append(append([]string{"submit"}, medium...), "--name", name, "--iterations", fmt.Sprint(iterations),
			"--save", path, "--checkpoint", "10it", "--restarts", "20")...)
		return path
	}
	c := startCluster(t, 16*graph.MiB)
	path := submit(c, "calm")
	r := c.in(wire.Done, "calm")
	c.end()
	want := &calm{iterations, read(t, path), r.Result.Losses}

	flags := []string{"--memory-sharing", sharing, "--threshold", "100"}
	c = startCluster(t, 8*graph.MiB, flags...) // of 12 MiB that three arenas take
	saved := make(map[string]string)
	for _, name := range []string{"a", "b", "c"} {
		saved[name] = submit(c, name)
	}
	jobs := c.until("all to train", func(jobs map[string]wire.Record) bool {
		return !slices.ContainsFunc([]string{"a", "b", "c"}, func(name string) bool {
			return jobs[name].State == wire.Starting || jobs[name].State == wire.Queued
		})
	})
	var arenas graph.Bytes
	for name, r := range jobs {
		if arenas += r.Claim; r.State.Over() {
			t.Fatalf("job %s is over before all train: %+v", name, r)
		}
	}
	if least := together(jobs); arenas <= c.budget || least > c.budget {
		t.Errorf("jobs claim %s, together %s, of %s", arenas, least, c.budget)
	}
	victims := executors(t, c.dir)
	syscall.Kill(victims[jobs["b"].Executor], syscall.SIGKILL) // it may have ended
	c.signal(syscall.SIGKILL)
	c.ends(-1, "")
	syscall.Kill(victims[jobs["c"].Executor], syscall.SIGKILL)
	c = c.restart(flags...)
	jobs = c.until("all jobs to be over", func(jobs map[string]wire.Record) bool {
		if least := together(jobs); least > c.budget {
			t.Errorf("jobs claim %s of %s", least, c.budget)
		}
		return countActive(jobs) == 0
	})
	for name, path := range saved {
		c.whole(jobs[name], path, want)
	}
	c.end()
}

// The budget becomes smaller and larger again while jobs that share memory train: they go on within it, in the
// processes that they have, and no iteration is lost.
func TestClusterBudgetByGates(t *testing.T) {
	t.Parallel()
	for _, sharing := range []string{"gates", "shift", "pairs"} {
		t.Run(sharing, func(t *testing.T) {
			t.Parallel()
			clusterBudgetByGates(t, sharing)
		})
	}
}

func clusterBudgetByGates(t *testing.T, sharing string) {
	const iterations = 800 // so that all three train for a while beside each other
	c := startCluster(t, 12*graph.MiB, "--memory-sharing", sharing, "--threshold", "100")
	for _, name := range []string{"a", "b", "c"} {
		c.tell(append(append([]string{"submit"}, medium...), "--name", name, "--iterations", fmt.Sprint(iterations))...)
	}
	jobs := c.train(nil, "a", "b", "c")
	for _, mib := range []graph.Bytes{8, 12} {
		c.tell("budget", fmt.Sprintf("%dMiB", mib))
		what := fmt.Sprintf("jobs to fit %d MiB", mib)
		c.until(what, func(jobs map[string]wire.Record) bool { return together(jobs) <= mib*graph.MiB })
		if jobs = c.jobs(); countActive(jobs) == 3 {
			jobs = c.until("iterations", func(now map[string]wire.Record) bool {
				return now["a"].Iteration > jobs["a"].Iteration || now["a"].State.Over()
			})
		}
	}
	jobs = c.until("all jobs to be over", func(jobs map[string]wire.Record) bool { return countActive(jobs) == 0 })
	for name, r := range jobs {
		if r.State != wire.Done || r.Incarnation != 1 || len(r.Result.Losses) != iterations {
			t.Errorf("job %s is %s in incarnation %d, with %d losses: %s", name, r.State, r.Incarnation,
				len(r.Result.Losses), r.Why)
		}
	}
	c.end()
}
