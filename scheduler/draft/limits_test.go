package draft

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/models/graphtest"
	"tensile/scheduler"
	"tensile/scheduler/jobtest"
)

// The bound of plans without a stall stays below the slow one where small storages are taken to be away at no cost.
func TestZeroStallOfSmallTensors(t *testing.T) {
	lower := 0
	for seed := range uint64(300) {
		s, style := unaligned(rand.New(rand.NewPCG(seed, 65)))
		d := s.Drafts(EarlyUpdates, style)[0]
		d.small = 0
		exact := d.zeroStall()
		for _, below := range []graph.Bytes{40, 100, 400} {
			d.small = smallTensor * below
			switch got := d.zeroStall(); {
			case got > exact:
				t.Fatalf("seed %d: with storages below %d bytes away the bound is %d, and %d without", seed, below,
					got, exact)
			case got < exact:
				lower++
			}
		}
	}
	if t.Logf("%d bounds are lower by small storages", lower); lower < 50 {
		t.Errorf("%d bounds are lower by small storages", lower)
	}
}

// Outputs are never made again: what the job is handed is made once.
func TestOutputsAreMadeOnce(t *testing.T) {
	possible, recomputed := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 67))
		g := withOutputs(graphtest.New(rng, graphtest.Options{}))
		r := jobtest.New(rng, 1)
		r.Jobs[0] = scheduler.Job{Name: "a", Graph: g,
			Latency: slices.Repeat([]time.Duration{time.Microsecond}, len(g.Ops))}
		d := opened(r).Drafts(GraphOrder, Style{})[0]
		for _, x := range d.gaps {
			_, ok := d.RecomputeAt(x)
			switch role := d.g.Storages[x.storage].Role; {
			case ok && role == graph.Output:
				t.Fatalf("seed %d: output %s is to be recomputed", seed, d.g.Storages[x.storage].Name)
			case ok:
				recomputed++
			case role == graph.Output && x.kind == keep:
				possible++
			}
		}
	}
	if t.Logf("%d gaps of outputs, %d of others that can be recomputed", possible, recomputed); possible < 100 ||
		recomputed < 100 {
		t.Errorf("%d gaps of outputs, %d of others that can be recomputed", possible, recomputed)
	}
}

// withOutputs returns a graph in which every second activation is an output as well.
func withOutputs(g *graph.Graph) *graph.Graph {
	c := *g
	c.Storages = slices.Clone(g.Storages)
	for i := range c.Storages {
		if c.Storages[i].Role == graph.Activation && i%2 == 0 {
			c.Storages[i].Role = graph.Output
		}
	}
	if err := c.Validate(); err != nil {
		panic(fmt.Sprintf("scheduler: with outputs: %v", err))
	}
	return &c
}
