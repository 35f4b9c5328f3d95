package models

import (
	"math"
	"testing"

	"tensile/graph"
	"tensile/graph/autodiff"
)

// TestVanillaPeaks holds the unoptimised graphs to reference figures from an independent prototype, within 5 %, so
// that no saving is measured against an inflated baseline: batch 16, 224 pixels, 1000 classes, nothing in place. The
// reference counts a batch norm as one op; here it is three, of which two are left out of the count.
func TestVanillaPeaks(t *testing.T) {
	sgd := autodiff.SGD{}
	tests := []struct {
		model     string
		optimizer autodiff.Optimizer
		ops       int
		keepAll   float64 // MB of 1e6 bytes
		live      float64
		single    float64 // largest working set of one op
		ms        float64 // roofline of an A6000
	}{
		{"vgg16", nil, 142, 5891, 4030, 1644, 90.0},
		{"vgg16", sgd, 142, 4784, 2923, 822, 86.6},
		{"resnet50", nil, 566, 5239, 2292, 206, 40.6},
		{"resnet50", sgd, 566, 5035, 2087, 206, 40.0},
		{"inceptionv3", nil, 1070, 5435, 2380, 354, 50.1},
		{"inceptionv3", sgd, 1070, 5245, 2190, 354, 49.5},
		{"inceptionv4", nil, 1684, 10282, 4207, 354, 97.5},
		{"inceptionv4", sgd, 1684, 9941, 3865, 354, 96.5},
		{"densenet121", nil, 1456, 7546, 3169, 206, 49.0},
		{"densenet121", sgd, 1456, 7483, 3106, 206, 48.8},
	}
	for _, test := range tests {
		g := build(t, test.model, Config{Optimizer: test.optimizer})
		var all, single graph.Bytes
		ops := len(g.Ops)
		for _, s := range g.Storages {
			all += s.Bytes
		}
		for _, op := range g.Ops {
			single = max(single, g.WorkingSet(op.ID))
			if op.Kind == graph.BatchNormStats || op.Kind == graph.BatchNormUpdate {
				ops--
			}
		}
		near := func(what string, got, want float64) {
			t.Helper()
			t.Logf("%s %T %s: %.1f, reference %.1f", test.model, test.optimizer, what, got, want)
			if math.Abs(got-want) > 0.05*want {
				t.Errorf("%s %T: %s is %.1f, want %.1f within 5 %%", test.model, test.optimizer, what, got, want)
			}
		}
		near("ops", float64(ops), float64(test.ops))
		near("keep-all MB", float64(all)/1e6, test.keepAll)
		near("live MB", float64(slowLivePeak(g))/1e6, test.live)
		near("working set MB", float64(single)/1e6, test.single)
		near("roofline ms", 1e3*roofline(g), test.ms)
	}
}

// slowLivePeak is the largest sum of bytes alive at an op. Persistent storages are alive throughout, inputs from the
// start to their last reader, the others from their maker to their last user.
func slowLivePeak(g *graph.Graph) graph.Bytes {
	from, to := make([]int, len(g.Storages)), make([]int, len(g.Storages))
	for s := range g.Storages {
		from[s] = len(g.Ops)
	}
	for at := range g.Ops {
		for _, s := range g.Touches(graph.OpID(at)) {
			from[s], to[s] = min(from[s], at), at
		}
	}
	var peak graph.Bytes
	for at := range g.Ops {
		var sum graph.Bytes
		for _, s := range g.Storages {
			begun := s.Role.FromHost() || from[s.ID] <= at
			needed := s.Role.Persistent() || to[s.ID] >= at
			if begun && needed {
				sum += s.Bytes
			}
		}
		peak = max(peak, sum)
	}
	return peak
}

// roofline is the sum of the ops' times in seconds on 38.7 TFLOP/s and 768 GB/s at usual efficiencies.
func roofline(g *graph.Graph) float64 {
	var sum float64
	for _, op := range g.Ops {
		c := g.Cost(op.ID)
		sum += max(float64(c.FLOPs)/(0.55*38.7e12), float64(c.Bytes)/(0.85*768e9)) + 5e-6
	}
	return sum
}
