package plans

import (
	"math/rand/v2"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/graphtest"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// newTestWorker returns a worker for a small device.
func newTestWorker(s Settings) *Worker {
	link := cost.Link{Rate: 100e6, Latency: time.Microsecond}
	return &Worker{Settings: s, Device: planner.Device{Identity: "d", Align: 64, Out: link, In: link, Page: s.Page,
		Profile: testProfile, Gates: s.MemorySharing.Gated(), Turns: s.MemorySharing == wire.Slices}}
}

// testProfile is a profile whose latencies differ from op to op.
func testProfile(g *graph.Graph) (planner.Profile, error) {
	var p planner.Profile
	for op := range g.Ops {
		p.Latency = append(p.Latency, time.Duration(1+op%7)*10*time.Microsecond)
	}
	return p, nil
}

// someGraphs are three graphs that differ.
func someGraphs() []*graph.Graph {
	rng := rand.New(rand.NewPCG(4, 91))
	var graphs []*graph.Graph
	for range 3 {
		graphs = append(graphs, graphtest.New(rng, graphtest.Options{Ops: 8 + rng.IntN(12)}))
	}
	return graphs
}
