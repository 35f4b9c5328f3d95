package policies_test

import (
	"fmt"
	"testing"

	"tensile/cost"
	"tensile/graph"
	"tensile/models"
	"tensile/scheduler"
	"tensile/scheduler/policies"
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

// BenchmarkSchedule plans and packs under several budgets.
func BenchmarkSchedule(b *testing.B) {
	for _, model := range []string{"resnet50", "vgg16"} {
		r := network(b, model, 16)
		live := r
		live.Policy = "none-live"
		plain, err := policies.Schedule(live, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, percent := range []graph.Bytes{85, 70, 50} {
			r.Budget = plain.SlotPeak * percent / 100
			b.Run(fmt.Sprintf("model=%s/budget=%d%%", model, percent), func(b *testing.B) {
				var result scheduler.Result
				for b.Loop() {
					if result, err = policies.Schedule(r, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(result.SlotPeak), "peak-B")
				b.ReportMetric(float64(result.Rounds), "rounds")
			})
		}
	}
}
