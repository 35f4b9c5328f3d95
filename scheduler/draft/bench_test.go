package draft

import (
	"fmt"
	"testing"
	"time"

	_ "tensile/internal/long" // the flag -long
	"tensile/scheduler/jobtest"
)

// BenchmarkSwap plans all swaps that cost no time, from the graph on: wiring, order, gaps, swaps.
func BenchmarkSwap(b *testing.B) {
	for _, n := range []struct {
		model string
		batch int
	}{{"resnet50", 16}, {"resnet:6,6,6,6", 4}, {"resnet:66,66,66,66", 4}, {"resnet:580,580,580,575", 4}} {
		s := opened(jobtest.Network(b, n.model, n.batch))
		b.Run(fmt.Sprintf("ops=%d", len(s.Request.Jobs[0].Graph.Ops)), func(b *testing.B) {
			b.ReportAllocs()
			var d *Draft
			var alone time.Duration // SwapFreely without what comes before it
			swaps := 0
			for b.Loop() {
				s.wirings[0] = newWiring(s.Request.Jobs[0].Graph, s.Request.Align, s.meter.tick)
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
