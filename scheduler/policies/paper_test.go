package policies_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"tensile/graph"
	"tensile/internal/randjobs"
	"tensile/scheduler"
	"tensile/scheduler/policies"
)

// TestPaperSwapsFirst plans random jobs by the paper's method: swapping loses no time, however the budget; storages are
// recomputed only where swapping was not enough (IV-D, Algorithm 3), from inputs that stay.
func TestPaperSwapsFirst(t *testing.T) {
	alone, recomputed, refused := 0, 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 81))
		request := randjobs.New(rng, 1+rng.IntN(2))
		request.Policy = "tensile-paper"
		lowest, err := policies.Schedule(request, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, j := range lowest.Jobs {
			for _, d := range j.Decisions {
				if d.Kind != scheduler.Swap || d.Cost != 0 {
					t.Fatalf("seed %d: without a budget: %+v", seed, d)
				}
			}
		}
		for _, percent := range []graph.Bytes{60, 80, 95, 100} {
			request.Budget = lowest.Arena * percent / 100
			result, err := policies.Schedule(request, nil)
			if errors.Is(err, scheduler.ErrNoPlan) {
				refused++
				continue
			} else if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			again := 0
			for _, j := range result.Jobs {
				for _, d := range j.Decisions {
					if d.Kind == scheduler.Recompute {
						again++
					}
				}
			}
			switch {
			case percent == 100 && again > 0:
				t.Fatalf("seed %d: swapping is enough, but %d storages are recomputed", seed, again)
			case percent < 90 && again == 0: // a little less than what was packed may fit, with luck
				t.Fatalf("seed %d: %d %% of what swapping reaches, and nothing is recomputed", seed, percent)
			case again > 0:
				recomputed++
			default:
				alone++
			}
		}
	}
	t.Logf("%d plans swap alone, %d recompute, %d refusals", alone, recomputed, refused)
	if alone < 300 || recomputed < 30 {
		t.Errorf("%d plans swap alone, %d recompute", alone, recomputed)
	}
}
