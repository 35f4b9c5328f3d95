package jobtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/graphtest"
	"tensile/scheduler"
)

// Align is the alignment of all requests.
const Align = 64

// New returns a request of policy tensile, without a budget, for some jobs of 8 to 39 ops each.
func New(rng *rand.Rand, count int) scheduler.Request {
	link := func() cost.Link {
		return cost.Link{Rate: cost.BytesPerSecond(1e6 * (1 + rng.Float64()*200)),
			Latency: time.Duration(rng.IntN(3000))}
	}
	r := scheduler.Request{Policy: "tensile", Out: link(), In: link(), Align: Align}
	for i := range count {
		j := scheduler.Job{Name: fmt.Sprint(i), Graph: graphtest.New(rng, graphtest.Options{Ops: 8 + rng.IntN(32)}),
			Weight: 1 + rng.IntN(3)}
		for range j.Graph.Ops {
			j.Latency = append(j.Latency, time.Duration(rng.IntN(10000)))
			scratch := max(0, 4*graph.Bytes(rng.IntN(64)-32))
			j.Variants = append(j.Variants, []scheduler.Variant{{Scratch: scratch}})
		}
		if rng.IntN(4) == 0 {
			j.MaxSwapRate = rng.Float64()
		}
		r.Jobs = append(r.Jobs, j)
	}
	return r
}
