//go:build linux

package main

import (
	"flag"
	"math/rand/v2"
	"syscall"
	"testing"
)

var kills = flag.Int("kills", 3, "rounds of TestKills")

// Whenever the command of a run or one of its executors is killed or told to end, every process ends and nothing is
// left behind.
func TestKills(t *testing.T) {
	t.Parallel()
	for round := range *kills {
		rng := rand.New(rand.NewPCG(uint64(round), 21))
		budget := []string{"60%", "70%", "80%"}[rng.IntN(3)]
		p, found := startRun(t, "--iterations", "1000000", "--budget", budget, "--checkpoint", "none")
		for range rng.IntN(3) {
			p.line(`^  lenet\.[12] .* it/s `)
		}
		what := (round + rng.IntN(2)) % 4
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
