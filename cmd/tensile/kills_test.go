//go:build linux

package main

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// Whenever the command of a run or one of its executors is killed or told to end, every process ends and nothing is
// left behind.
func TestKills(t *testing.T) {
	t.Parallel()
	for round := range long.Rounds(1, 3) {
		rng := rand.New(rand.NewPCG(round, 21))
		budget := []string{"60%", "70%", "80%"}[rng.IntN(3)]
		p, found := startRun(t, "--iterations", forever, "--budget", budget, "--checkpoint", "none")
		for range rng.IntN(3) {
			p.line(`^  lenet\.[12] .* it/s `)
		}
		what := (int(round) + rng.IntN(2)) % 4
		t.Logf("round %d: kind %d", round, what)
		switch what {
		case 0:
			kill(t, found[[]string{"x1", "x2"}[rng.IntN(2)]])
			p.ends(1, `^tensile: job lenet\.[12] failed .*its executor ended: signal: killed`)
		case 1:
			p.signal(syscall.SIGKILL)
			p.ends(-1, "")
		case 2:
			p.signal(syscall.SIGINT)
			p.ends(130, "^tensile: interrupted: ")
		case 3:
			p.signal(syscall.SIGTERM)
			p.ends(130, "^tensile: interrupted: ")
		}
		if p.nothing(); t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// killSeed is for tests of processes that are killed at random.
var killSeed = flag.Uint64("kill-seed", 1, "what tests of processes kill, and when")

// Executors and the controller are killed again and again, while three jobs train that take checkpoints. All end, with
// the bits of one that nothing disturbs, and at no time do they claim more than the budget.
func TestClusterKills(t *testing.T) {
	t.Parallel()
	long.Only(t)
	const iterations = 4000
	left := long.Rounds(0, 6) // kills
	want := becalmed(t, iterations)
	rng := rand.New(rand.NewPCG(*killSeed, 22))
	c := startCluster(t, 8*graph.MiB, "--threshold", "100")
	saved := make(map[string]string)
	fill := func(jobs map[string]wire.Record) { // three jobs that are not over, if there is to be more
		for n := countActive(jobs); n < 3; n++ {
			name := fmt.Sprint("job", len(saved)+1)
			saved[name] = c.saves(name, fmt.Sprint(iterations), "--checkpoint", "50it", "--restarts", "20")
		}
	}
	fill(nil)
	kills := make(map[string]int)
	begin := time.Now()
	for ; left > 0; left-- {
		before := c.jobs()
		c.until("a job to train", func(now map[string]wire.Record) bool {
			return slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(name string) bool {
				return now[name].State == wire.JobRunning && now[name].Iteration > before[name].Iteration
			}) || countActive(now) == 0
		})
		victims := executors(t, c.dir)
		names := append(slices.Sorted(maps.Keys(victims)), "controller")
		victim := names[rng.IntN(len(names))]
		t.Logf("%v: kill -9 of %s of %q", time.Since(begin).Round(time.Second), victim, names)
		if victim == "controller" {
			c.signal(syscall.SIGKILL)
			c.ends(-1, "")
			c = c.restart("--threshold", "100")
			kills["controller"]++
		} else {
			syscall.Kill(victims[victim], syscall.SIGKILL) // it may have ended by itself just now
			kills["executors"]++
		}
		if long.Soak() {
			fill(c.jobs())
		}
	}
	jobs := c.until("all jobs to be over", func(jobs map[string]wire.Record) bool { return countActive(jobs) == 0 })
	starts := int64(0)
	for name, path := range saved {
		c.whole(jobs[name], path, want)
		starts += jobs[name].Incarnation
	}
	t.Logf("seed %d: %d jobs in %d incarnations, after kills of %v", *killSeed, len(saved), starts, kills)
	c.end()
}

// countActive is the number of jobs that are not over.
func countActive(jobs map[string]wire.Record) (n int) {
	for _, r := range jobs {
		if !r.State.Over() {
			n++
		}
	}
	return n
}
