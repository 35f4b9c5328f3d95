package scheduler

import (
	"fmt"
	"testing"
	"time"

	"tensile/cost"
	"tensile/graph"
	"tensile/models"
)

// network returns a request for one network on an A6000, prepared as Schedule does.
func network(b testing.TB, model string, batch int) *Request {
	b.Helper()
	g, err := models.Build(model, models.Config{Batch: batch})
	if err != nil {
		b.Fatal(err)
	}
	facts, err := cost.Device("a6000")
	if err != nil {
		b.Fatal(err)
	}
	j := Job{Name: g.Name, Graph: g, Scratch: make([]graph.Bytes, len(g.Ops))}
	for op := range g.Ops {
		j.Latency = append(j.Latency, facts.Roofline(g.Cost(graph.OpID(op))))
	}
	r := &Request{Policy: "tensile", Out: facts.Out, In: facts.In, Align: 512, Jobs: []Job{j}}
	r.shares, r.rounds = divide(nil, make([]demand, 1)), new(int)
	r.meter = newMeter(nil)
	r.prepare()
	return r
}

// BenchmarkSwap plans all swaps that cost no time, from the graph on: wiring, order, gaps, swaps.
func BenchmarkSwap(b *testing.B) {
	for _, n := range []struct {
		model string
		batch int
	}{{"resnet50", 16}, {"resnet:6,6,6,6", 4}, {"resnet:66,66,66,66", 4}, {"resnet:580,580,580,575", 4}} {
		r := network(b, n.model, n.batch)
		b.Run(fmt.Sprintf("ops=%d", len(r.Jobs[0].Graph.Ops)), func(b *testing.B) {
			b.ReportAllocs()
			var d *draft
			var alone time.Duration // swapFreely without what comes before it
			swaps := 0
			for b.Loop() {
				r.wirings[0] = newWiring(r.Jobs[0].Graph, r.Align)
				d = r.draft(0, firstSteps(earlyUpdates(r.Jobs[0].Graph)))
				since := time.Now()
				swaps = swapFreely([]*draft{d}, 0)
				alone += time.Since(since)
			}
			b.ReportMetric(float64(alone)/float64(b.N), "swapping-ns/op")
			_, peak := d.peak()
			b.ReportMetric(float64(peak), "peak-B")
			b.ReportMetric(float64(swaps), "swaps")
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(len(d.steps)), "ns/step")
		})
	}
}

// BenchmarkSchedule plans and packs under several budgets.
func BenchmarkSchedule(b *testing.B) {
	for _, model := range []string{"resnet50", "vgg16"} {
		r := *network(b, model, 16)
		live := r
		live.Policy = "none-live"
		plain, err := Schedule(live, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, percent := range []graph.Bytes{85, 70, 50} {
			r.Budget = plain.SlotPeak * percent / 100
			b.Run(fmt.Sprintf("model=%s/budget=%d%%", model, percent), func(b *testing.B) {
				var result Result
				for b.Loop() {
					if result, err = Schedule(r, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(result.SlotPeak), "peak-B")
				b.ReportMetric(float64(result.Rounds), "rounds")
			})
		}
	}
}
