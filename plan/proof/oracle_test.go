package proof_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan/plantest"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// raceFree is the slow oracle of Check: for every two commands that use the same byte, one of them to write it, it
// looks for a path from the first to the second along lanes, waits and drains.
func raceFree(g *graph.Graph, p *program.Program, iterations ...*program.Section) bool {
	nodes := plantest.Unroll(g, p, iterations)
	for i := range nodes {
		var reached []bool
		for j := range i {
			if !plantest.Conflict(nodes[j].Uses, nodes[i].Uses) {
				continue
			}
			if reached == nil {
				reached = make([]bool, i+1)
				plantest.Reach(nodes, i, reached)
			}
			if !reached[j] {
				return false
			}
		}
	}
	return true
}

// TestCheckAgainstOracle changes the waits of random programs at random and compares Check's verdict on races with the
// oracle's, for two bodies and for three: the third is like the second. With snapshots among them it does so for the
// runs that Check goes through and for longer ones.
func TestCheckAgainstOracle(t *testing.T) {
	seeds := long.Rounds(150, 1500)
	racy, snapshots := 0, 0
	for seed := range seeds {
		s := random(t, seed, graphtest.Options{Ops: 14})
		if err := check(s); err != nil {
			t.Fatalf("%s: %v\n%s", s.name, err, s.p.Text(s.g))
		}
		rng := rand.New(rand.NewPCG(seed, 5))
		for change := range 3 {
			bad := s.withProgram()
			for range change {
				bad.shake(rng)
			}
			got := !errors.Is(check(bad), proof.ErrRace)
			if !got {
				racy++
			}
			body, snapshot := &bad.c.Body, &bad.c.Snapshot
			short, long := []*program.Section{body, body}, []*program.Section{body, body, body}
			alone := true
			if len(snapshot.Commands) > 0 {
				snapshots++
				short = append(short, snapshot, body)
				long = append(long, snapshot, body, body, snapshot, body)
				alone = raceFree(bad.g, bad.c, snapshot, body)
			}
			for _, run := range [][]*program.Section{short, long} {
				if want := alone && raceFree(bad.g, bad.c, run...); got != want {
					t.Fatalf("%s, %d changes: Check says race-free %v, the oracle over %d iterations %v\n%s", s.name,
						change, got, len(run), want, bad.c.Text())
				}
			}
		}
	}
	t.Logf("%d of %d programs race, %d have snapshots", racy, 3*seeds, snapshots)
	if racy < int(seeds)/2 || snapshots < int(seeds) {
		t.Errorf("%d of %d programs race, %d have snapshots", racy, 3*seeds, snapshots)
	}
}

// shake removes a wait of the body or the snapshot, or lets it be reached a little earlier.
func (s subject) shake(rng *rand.Rand) {
	for range 100 {
		section := &s.c.Body
		if len(s.c.Snapshot.Commands) > 0 && rng.IntN(2) == 0 {
			section = &s.c.Snapshot
		}
		cmd := &section.Commands[rng.IntN(len(section.Commands))]
		if len(cmd.Waits) == 0 {
			continue
		}
		i := rng.IntN(len(cmd.Waits))
		if rng.IntN(2) == 0 {
			cmd.Waits = append(cmd.Waits[:i:i], cmd.Waits[i+1:]...)
		} else {
			cmd.Waits[i].Count -= 1 + rng.IntN(2)
		}
		return
	}
}
