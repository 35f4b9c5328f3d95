package bench

import (
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/plan/compile"
	"tensile/plan/pool"
	"tensile/scheduler/planner"
)

// A residual network of some 1,000 layers is packed to 0.2 % of its load in the 16 rounds of tensile pool, also within
// 40 % of its memory.
func TestDeepNetworkPacks(t *testing.T) {
	long.Only(t)
	n, err := openNetwork(t.Context(), "resnet:84,83,83,83")
	if err != nil {
		t.Fatal(err)
	}
	defer n.device.Close()
	for policy, percent := range map[string]graph.Bytes{"none-live": 0, "tensile": 40} {
		n.request.Policy, n.request.Budget = policy, n.live*percent/100
		planned, err := planner.Plan(t.Context(), n.request)
		if err != nil {
			t.Fatal(err)
		}
		buffers := compile.Buffers(n.request.Jobs[0].Graph, planned.Jobs[0].Plan, n.device.Align())
		l, err := pool.Pack(buffers, pool.Options{Rounds: 16})
		if err != nil {
			t.Fatal(err)
		}
		if err := pool.Validate(buffers, l); err != nil {
			t.Fatal(err)
		}
		ratio := float64(l.Height) / float64(l.LowerBound)
		if t.Logf("%s: %d buffers at %.5f", policy, len(buffers), ratio); ratio > 1.002 {
			t.Errorf("%s: %d buffers at %.5f of the lower bound, want at most 1.002", policy, len(buffers), ratio)
		}
	}
}
