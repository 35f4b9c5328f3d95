package models

import (
	"runtime"
	"testing"

	"tensile/graph"
)

// tenThousand is a residual network of 10,000 convolutions in its blocks.
const tenThousand = "resnet:1000,1000,1000,333"

// A graph takes less than 1 KB an op, however many it has: all that is on the heap for it, names included.
func TestMemoryOfGraphs(t *testing.T) {
	for _, name := range []string{"vgg16", "nasnet-large", tenThousand} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		g := build(t, name, Config{})
		runtime.GC()
		runtime.ReadMemStats(&after)
		bytes := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		t.Logf("%s: %d ops, %d bytes an op", name, len(g.Ops), bytes/int64(len(g.Ops)))
		if bytes > 1000*int64(len(g.Ops)) {
			t.Errorf("%s: %d bytes for %d ops", name, bytes, len(g.Ops))
		}
		runtime.KeepAlive(g)
	}
}

// BenchmarkBuild builds and validates networks at their own size.
func BenchmarkBuild(b *testing.B) {
	for _, name := range append(Names(), tenThousand) {
		b.Run("model="+name, func(b *testing.B) {
			b.ReportAllocs()
			var g *graph.Graph
			for b.Loop() {
				var err error
				if g, err = Build(name, Config{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(g.Ops)), "ops")
		})
	}
}
