package kernels

import (
	"testing"

	"tensile/device/ptx"
	"tensile/graph"
)

// In the loop of the largest tile, where operands are aligned, at least so many of 100 instructions of the text are
// fma. The package comment has the exact numbers.
func TestShareOfFMA(t *testing.T) {
	least := map[string]int64{"product_nn_128": 84, "product_nt_128": 83, "product_tn_128": 85, "product_tt_128": 84,
		"conv_128": 75, "conv_dw_128": 78, "conv_dx_128": 72}
	window := graph.Attrs{Kernel: [2]int{3, 3}, Stride: [2]int{1, 1}, Pad: [2]int{1, 1}}
	onto := window
	onto.Extent = [2]int{16, 16}
	call := func(k int) []Call {
		flip := func(a, b bool) graph.Attrs { return graph.Attrs{TransposeA: a, TransposeB: b} }
		wide, tall := graph.Shape{1, 128, k}, graph.Shape{1, k, 128}
		return []Call{
			{Kind: graph.MatMul, Attrs: flip(false, false), InShapes: []graph.Shape{wide, tall}},
			{Kind: graph.MatMul, Attrs: flip(false, true), InShapes: []graph.Shape{wide, wide}},
			{Kind: graph.MatMul, Attrs: flip(true, false), InShapes: []graph.Shape{tall, tall}},
			{Kind: graph.MatMul, Attrs: flip(true, true), InShapes: []graph.Shape{tall, wide}},
			{Kind: graph.Conv2D, Attrs: window, InShapes: []graph.Shape{{1, k / 8, 8, 16}, {128, k / 8, 3, 3}}},
			{Kind: graph.Conv2DDW, Attrs: window,
				InShapes: []graph.Shape{{k / 256, 15, 16, 16}, {k / 256, 128, 16, 16}}},
			{Kind: graph.Conv2DDX, Attrs: onto, InShapes: []graph.Shape{{1, k / 8, 16, 16}, {k / 8, 128, 3, 3}}},
		}
	}
	kernels, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	count := func(c Call) (kernel string, k, threads int, instructions int64) {
		e := example{kind: c.Kind, attrs: c.Attrs}
		for _, s := range c.InShapes {
			e.in = append(e.in, floatOperand(s, func() float64 { return 1 }))
		}
		p := e.prepare(t)
		q := productsOf(&p.call)[0]
		l := q.launchSplit(splitOf(tiles[0], q.k, 1), 0)[0]
		f, err := kernels[l.Kernel].Run(ptx.Launch{Grid: l.Grid, Block: l.Block, Args: l.Args, Memory: p.memory})
		if err != nil {
			t.Fatal(err)
		}
		return l.Kernel, q.k, int(l.Grid[0] * l.Block[0]), f.Instructions
	}
	long := call(512)
	for i, c := range call(256) {
		kernel, k, threads, few := count(c)
		_, more, _, many := count(long[i])
		share := int64(100*(more-k)*64*threads) / (many - few) // a thread has 64 elements of c
		t.Logf("%s: %d", kernel, share)
		if want, ok := least[kernel]; !ok || share < want {
			t.Errorf("%s: %d of 100 instructions are fma, want %d", kernel, share, want)
		}
		delete(least, kernel)
	}
	for kernel := range least {
		t.Errorf("%s was not tried", kernel)
	}
}
