package policies

import (
	"math/rand/v2"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler"
)

// slowZeroStall tries, in steps of a byte, how much each job has away at its peak.
func slowZeroStall(jobs []scheduler.Scheduled, kept []graph.Bytes, in cost.Link, busy float64) graph.Bytes {
	if len(jobs) == 0 {
		return 0
	}
	lowest := graph.Bytes(1 << 60)
	for away := range max(0, kept[0]-jobs[0].Bounds.ZeroStall) + 1 {
		used := busy
		if in.Rate > 0 {
			used += float64(away) / (float64(in.Rate) / 1e9 * float64(jobs[0].Unplanned))
		}
		if used > 1+1e-9 {
			break
		}
		peak := max(kept[0]-away, jobs[0].Bounds.ZeroStall)
		lowest = min(lowest, peak+slowZeroStall(jobs[1:], kept[1:], in, used))
	}
	return lowest
}

// TestZeroStallTogether compares the bound with the slow one, which it is below by no more than a byte per job, and
// with the sum of the jobs' own. A link without a limit makes it that sum.
func TestZeroStallTogether(t *testing.T) {
	above := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 8))
		in := cost.Link{Rate: cost.BytesPerSecond(r.IntN(4) * 1e9)}
		jobs, kept := make([]scheduler.Scheduled, 1+r.IntN(3)), make([]graph.Bytes, 3)[:0]
		var sum graph.Bytes
		for i := range jobs {
			jobs[i].Unplanned = time.Duration(1 + r.IntN(20))
			jobs[i].Bounds.ZeroStall = graph.Bytes(1 + r.IntN(20))
			kept = append(kept, jobs[i].Bounds.ZeroStall+graph.Bytes(r.IntN(30)))
			sum += jobs[i].Bounds.ZeroStall
		}
		got, want := zeroStall(jobs, kept, in), slowZeroStall(jobs, kept, in, 0)
		if got > want || got < want-graph.Bytes(len(jobs)) || got < sum || in.Rate == 0 && got != sum {
			t.Errorf("seed %d: %v that keep %v have a bound of %d together, want %d; the sum of theirs is %d", seed,
				jobs,
				kept, got, want, sum)
		}
		if got > sum {
			above++
		}
	}
	if above < 100 {
		t.Errorf("only %d bounds are above the sum of those of the jobs", above)
	}
}
