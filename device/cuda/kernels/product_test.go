package kernels

import (
	"math/rand/v2"

	"tensile/graph"
)

var productGenerators = map[graph.Kind]generator{
	graph.Linear: {3e-6, func(rng *rand.Rand, round int) (a graph.Attrs, in []operand) {
		n, i, o := extents(rng, round)
		in = []operand{normalOperand(rng, n, i), normalOperand(rng, o, i)}
		if round%2 == 1 {
			in = append(in, normalOperand(rng, o))
		}
		return a, in
	}},
	graph.LinearDW: {3e-6, func(rng *rand.Rand, round int) (a graph.Attrs, in []operand) {
		i, n, o := extents(rng, round)
		if round%3 == 2 {
			a.Begin = rng.IntN(o)
			a.Length = 1 + rng.IntN(o-a.Begin)
		}
		return a, []operand{normalOperand(rng, n, i), normalOperand(rng, n, o)}
	}},
	graph.LinearDX: {3e-6, func(rng *rand.Rand, round int) (a graph.Attrs, in []operand) {
		n, o, i := extents(rng, round)
		return a, []operand{normalOperand(rng, n, o), normalOperand(rng, o, i)}
	}},
	graph.MatMul: {3e-6, func(rng *rand.Rand, round int) (a graph.Attrs, in []operand) {
		m, k, n := extents(rng, round)
		batch := upTo(rng, round, 3)
		x, y := graph.Shape{batch, m, k}, graph.Shape{batch, k, n}
		if a.TransposeA = round%2 == 1; a.TransposeA {
			x[1], x[2] = x[2], x[1]
		}
		if a.TransposeB = round/2%2 == 1; a.TransposeB {
			y[1], y[2] = y[2], y[1]
		}
		return a, []operand{normalOperand(rng, x...), normalOperand(rng, y...)}
	}},
}

// extents are m, k and n of a product: 1 in round 0, else ragged or multiples of four. Some are longer than every tile,
// some have a k that is split.
func extents(rng *rand.Rand, round int) (m, k, n int) {
	all := [3]int{1, 1, 1}
	if round > 0 {
		for i := range all {
			all[i] = 1 + rng.IntN(60)
			if rng.IntN(3) == 0 {
				all[i] = 4 * (1 + rng.IntN(16))
			}
		}
		switch long := round % 5; long {
		case 0, 2:
			all[long] = 129 + rng.IntN(60)
		case 1:
			all[long] = 260 + rng.IntN(200)
		}
	}
	return all[0], all[1], all[2]
}

var convolutionGenerators = map[graph.Kind]generator{
	graph.Conv2D: {3e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		a, x, w, _ := randomConvolution(rng, round)
		in := []operand{normalOperand(rng, x...), normalOperand(rng, w...)}
		if round%2 == 1 {
			in = append(in, normalOperand(rng, w[0]))
		}
		return a, in
	}},
	graph.Conv2DDW: {3e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		a, x, _, y := randomConvolution(rng, round)
		return a, []operand{normalOperand(rng, x...), normalOperand(rng, y...)}
	}},
	graph.Conv2DDX: {3e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		a, x, w, y := randomConvolution(rng, round)
		a.Extent = [2]int{x[2], x[3]}
		return a, []operand{normalOperand(rng, y...), normalOperand(rng, w...)}
	}},
}

// randomConvolution returns a convolution and the shapes of its operands.
func randomConvolution(rng *rand.Rand, round int) (a graph.Attrs, x, w, y graph.Shape) {
	for {
		one := func(n int) int { return upTo(rng, round, n) }
		a = graph.Attrs{Kernel: [2]int{one(4), one(4)}, Stride: [2]int{one(3), one(3)}}
		a.Pad = [2]int{rng.IntN(a.Kernel[0]), rng.IntN(a.Kernel[1])}
		if round%4 == 1 { // of pixels
			a = graph.Attrs{Kernel: [2]int{1, 1}, Stride: [2]int{1, 1}}
		}
		c, k := one(20), one(40)
		switch round % 5 {
		case 2: // depthwise, perhaps with several filters a group
			a.Groups = 1 + one(5)
			c, k = a.Groups, a.Groups*one(2)
		case 3: // groups, narrow or not
			a.Groups = 1 + one(2)
			c, k = a.Groups*one(10), a.Groups*one(10)
		}
		x = graph.Shape{one(3), c, one(14), one(14)}
		w = graph.Shape{k, c / max(1, a.Groups), a.Kernel[0], a.Kernel[1]}
		if out, err := graph.Infer(graph.Conv2D, a, []graph.Shape{x, w}); err == nil {
			return a, x, w, out[0]
		}
	}
}
