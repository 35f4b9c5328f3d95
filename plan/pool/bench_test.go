package pool

import (
	"fmt"
	"math"
	"testing"

	_ "tensile/internal/long" // the flag -long
)

func benchmarkPack(b *testing.B, buffers []Buffer) {
	l, err := Pack(buffers, Options{})
	if err != nil {
		b.Fatal(err)
	}
	if len(buffers) <= 10_000 {
		if err := Validate(buffers, l); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if l, err = Pack(buffers, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(l.Height)/float64(l.LowerBound), "height/bound")
}

func BenchmarkPack(b *testing.B) {
	for _, n := range []int{300, 1200, 3000, 20_000, 100_000} {
		b.Run(fmt.Sprintf("shape=training/n=%d", n), func(b *testing.B) { benchmarkPack(b, trainingStep(n, 2)) })
		b.Run(fmt.Sprintf("shape=scattered/n=%d", n), func(b *testing.B) { benchmarkPack(b, scattered(n, 2)) })
	}
	for _, name := range []string{"resnet50", "tiny_bert", "bert_base"} {
		b.Run("shape="+name, func(b *testing.B) {
			benchmarkPack(b, readInstance(b, "somas/"+name+".csv"))
		})
	}
}

// One order, placed in full, by each way to keep what is placed.
func BenchmarkPlace(b *testing.B) {
	for _, n := range []int{300, 1200, 3000, 20_000} {
		p := newProblem(trainingStep(n, 2))
		order := sizeOrder.of(p.items)
		for _, kind := range []string{"flat", "index"} {
			for i, fit := range []string{"first", "best"} {
				b.Run(fmt.Sprintf("placed=%s/fit=%s/n=%d", kind, fit, n), func(b *testing.B) {
					g := newGreedy(p)
					if g.placed = newIndex(p.columns); kind == "flat" {
						g.placed = &flat{}
					}
					var height int64
					for b.Loop() {
						height, _ = g.place(run{order: order, fit: fits[i], limit: math.MaxInt64, steps: math.MaxInt})
					}
					b.ReportMetric(float64(height)/float64(p.load), "height/bound")
				})
			}
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	for _, n := range []int{1000, 10_000, 62_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			buffers := trainingStep(n, 2)
			l, err := Pack(buffers, Options{Method: "size"})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := Validate(buffers, l); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{1200, 100_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			buffers := trainingStep(n, 2)
			for b.Loop() {
				Load(buffers)
			}
		})
	}
}
