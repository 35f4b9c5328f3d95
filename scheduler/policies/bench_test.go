package policies_test

import (
	"fmt"
	"testing"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/jobtest"
	"tensile/scheduler/policies"
)

// BenchmarkSchedule plans and packs under several budgets.
func BenchmarkSchedule(b *testing.B) {
	for _, model := range []string{"resnet50", "vgg16"} {
		r := jobtest.Network(b, model, 16)
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
