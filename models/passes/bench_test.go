package passes_test

import (
	"testing"

	"tensile/models"
	"tensile/models/passes"
)

// BenchmarkApply rewrites networks by all passes.
func BenchmarkApply(b *testing.B) {
	for _, name := range []string{"resnet50", "tacotron2", "resnet:580,580,580,575"} {
		g, err := models.Build(name, models.Config{Batch: 4})
		if err != nil {
			b.Fatal(err)
		}
		b.Run("model="+name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := passes.Apply(g, passes.Names()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(g.Ops)), "ops")
		})
	}
}
