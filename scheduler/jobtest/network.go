package jobtest

import (
	"testing"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/scheduler"
)

// Network returns a request for one network on an A6000, with roofline latencies.
func Network(t testing.TB, model string, batch int) scheduler.Request {
	t.Helper()
	g, err := models.Build(model, models.Config{Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	return Of(t, g)
}

// Of returns a request for a graph on an A6000, with roofline latencies.
func Of(t testing.TB, g *graph.Graph) scheduler.Request {
	t.Helper()
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	j := scheduler.Job{Name: g.Name, Graph: g}
	for op := range g.Ops {
		j.Latency = append(j.Latency, facts.Roofline(g.Cost(graph.OpID(op))))
	}
	return scheduler.Request{Policy: "tensile", Out: facts.Out, In: facts.In, Align: 512, Jobs: []scheduler.Job{j}}
}
