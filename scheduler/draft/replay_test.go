package draft

import (
	"math/rand/v2"
	"testing"
	"time"

	"tensile/graph"
)

// TestReplay compares what a replay says of stretched drafts with what their programs take. Programs wait where bytes
// are used again, a replay wherever something is dropped, so neither is always the longer one.
func TestReplay(t *testing.T) {
	var takes, off, offByWaits time.Duration
	equal := 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 67))
		d := withoutOutputs(rng)
		_, peak := d.Peak()
		d.Stretch(peak * graph.Bytes(30+rng.IntN(60)) / 100)
		planned := d.Period()
		for _, step := range d.Steps() {
			planned += step.Wait
		}
		p, timing := proven(t, seed, d)
		replayed := d.Replay()
		if replayed == timing.Iteration {
			equal++
		} else if (replayed - timing.Iteration).Abs() > timing.Iteration/4 {
			t.Errorf("seed %d: takes %v, by a replay %v\n%s", seed, timing.Iteration, replayed, p.Text(d.g))
		}
		takes += timing.Iteration
		off += (replayed - timing.Iteration).Abs()
		offByWaits += (planned - timing.Iteration).Abs()
	}
	t.Logf("%d of 600 as replayed; of %v in all, off by %v, planned waits by %v", equal, takes, off, offByWaits)
	if equal < 200 || off > takes/40 || 3*off > 2*offByWaits {
		t.Errorf("%d of 600 as replayed; of %v in all, off by %v, planned waits by %v", equal, takes, off, offByWaits)
	}
}
