package live

import (
	"math"
	"math/rand/v2"
	"testing"

	_ "tensile/internal/long" // the flag -long
	"tensile/wire"
)

// A curve begins with the first loss and ends with the newest, has each at its place among the iterations, however many
// are missing between them, and keeps four digits.
func TestCurve(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		var losses []Loss
		for i, iteration := 0, r.IntN(10); i < r.IntN(3*maxCurve); i++ {
			losses = append(losses, Loss{iteration, wire.Loss(r.ExpFloat64())})
			iteration += 1 + r.IntN(1+r.IntN(40))
		}
		curve := curveOf(losses)
		if len(losses) < 2 {
			if curve != nil {
				t.Fatalf("seed %d: a curve of %d losses: %v", seed, len(losses), curve)
			}
			continue
		}
		if len(curve) != min(maxCurve, len(losses)) {
			t.Fatalf("seed %d: %d points of %d losses", seed, len(curve), len(losses))
		}
		first, last := losses[0].Iteration, losses[len(losses)-1].Iteration
		for k, got := range curve {
			var want wire.Loss // the newest up to there, one after the other
			for _, l := range losses {
				if (l.Iteration-first)*(len(curve)-1) <= k*(last-first) {
					want = l.Loss
				}
			}
			if math.Abs(float64(got-want)) > 0.0006*float64(want) {
				t.Fatalf("seed %d: point %d of %d is %v, want about %v", seed, k, len(curve), got, want)
			}
		}
	}
	strange := []wire.Loss{wire.Loss(math.NaN()), wire.Loss(math.Inf(-1)), math.MaxFloat32, 0, 1.23456}
	var losses []Loss
	for i, l := range strange {
		losses = append(losses, Loss{i, l})
	}
	got := curveOf(losses)
	if !math.IsNaN(float64(got[0])) || !math.IsInf(float64(got[1]), -1) || got[2] != math.MaxFloat32 || got[3] != 0 ||
		got[4] != 1.235 {
		t.Errorf("the curve of %v is %v", strange, got)
	}
}
