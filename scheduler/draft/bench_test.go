package draft

import (
	"fmt"
	"testing"
	"time"

	"tensile/cost"
	"tensile/graph"
	"tensile/models"
	"tensile/scheduler"
)

// network returns a request for one network on an A6000.
func network(b testing.TB, model string, batch int) scheduler.Request {
	b.Helper()
	g, err := models.Build(model, models.Config{Batch: batch})
	if err != nil {
		b.Fatal(err)
	}
	facts, err := cost.Device("a6000")
	if err != nil {
		b.Fatal(err)
	}
	j := scheduler.Job{Name: g.Name, Graph: g}
	for op := range g.Ops {
		j.Latency = append(j.Latency, facts.Roofline(g.Cost(graph.OpID(op))))
	}
	return scheduler.Request{Policy: "tensile", Out: facts.Out, In: facts.In, Align: 512, Jobs: []scheduler.Job{j}}
}

// BenchmarkSwap plans all swaps that cost no time, from the graph on: wiring, order, gaps, swaps.
func BenchmarkSwap(b *testing.B) {
	for _, n := range []struct {
		model string
		batch int
	}{{"resnet50", 16}, {"resnet:6,6,6,6", 4}, {"resnet:66,66,66,66", 4}, {"resnet:580,580,580,575", 4}} {
		s := opened(network(b, n.model, n.batch))
		b.Run(fmt.Sprintf("ops=%d", len(s.Request.Jobs[0].Graph.Ops)), func(b *testing.B) {
			b.ReportAllocs()
			var d *Draft
			var alone time.Duration // SwapFreely without what comes before it
			swaps := 0
			for b.Loop() {
				s.wirings[0] = newWiring(s.Request.Jobs[0].Graph, s.Request.Align)
				d = s.Draft(0, FirstSteps(EarlyUpdates(s.Request.Jobs[0].Graph)), Style{})
				since := time.Now()
				swaps = SwapFreely([]*Draft{d}, 0)
				alone += time.Since(since)
			}
			b.ReportMetric(float64(alone)/float64(b.N), "swapping-ns/op")
			_, peak := d.Peak()
			b.ReportMetric(float64(peak), "peak-B")
			b.ReportMetric(float64(swaps), "swaps")
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(len(d.steps)), "ns/step")
		})
	}
}
