package graph

import "fmt"

// Normalisation over a batch, a layer, or neighbouring channels. Operand orders are part of a kind's meaning.
const (
	BatchNormStats Kind = "batch_norm_stats" // x -> mean[C] variance[C] (biased)
	BatchNorm      Kind = "batch_norm"       // x mean variance gamma beta -> y; Epsilon
	// mean variance running_mean running_variance -> both running ones, in place; Momentum; Length values had that mean
	// and variance
	BatchNormUpdate Kind = "batch_norm_update"
	BatchNormGrad   Kind = "batch_norm_grad" // x mean variance gamma dy -> dx dgamma dbeta; Epsilon
	// x[N,D] gamma[D] beta[D] -> y mean[N] scale[N] (1/deviation, of the biased variance); Epsilon
	LayerNorm     Kind = "layer_norm"
	LayerNormGrad Kind = "layer_norm_grad" // x mean scale gamma dy -> dx dgamma dbeta
	// x[N,C,H,W] -> y = x·(Epsilon + Factor·Σx²)^-Exponent, the sum over Length channels around
	LRN   Kind = "lrn"
	LRNDX Kind = "lrn_dx" // x y dy -> dx
)

var norms = map[Kind]kind{
	BatchNormStats: {inputs: [2]int{1, 1}, outputs: []int{fresh, fresh}, shapes: statsShapes, flops: perInput(4)},
	BatchNorm: {inputs: [2]int{5, 5}, outputs: []int{fresh}, shapes: normShapes, flops: perOutput(5),
		attrs: names("epsilon"), check: epsilonCheck},
	BatchNormUpdate: {inputs: [2]int{4, 4}, outputs: []int{2, 3}, shapes: updateShapes, flops: perOutput(3),
		attrs: names("momentum", "length"), check: runningCheck},
	BatchNormGrad: {inputs: [2]int{5, 5}, outputs: []int{fresh, fresh, fresh}, shapes: normGradShapes,
		flops: perInput(11), attrs: names("epsilon"), check: epsilonCheck},
	LayerNorm: {inputs: [2]int{3, 3}, outputs: []int{fresh, fresh, fresh}, shapes: layerNormShapes,
		flops: perInput(8), attrs: names("epsilon"), check: epsilonCheck},
	LayerNormGrad: {inputs: [2]int{5, 5}, outputs: []int{fresh, fresh, fresh}, shapes: layerNormGradShapes,
		flops: perInput(14)},
	LRN: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: lrnShapes, flops: lrnFLOPs,
		attrs: names("length", "factor", "exponent", "epsilon"), check: lrnCheck},
	LRNDX: {inputs: [2]int{3, 3}, outputs: []int{fresh}, shapes: lrnDXShapes, flops: lrnDXFLOPs,
		attrs: names("length", "factor", "exponent", "epsilon"), check: lrnCheck},
}

func statsShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if err := checkExtents("x", in[0], -1, -1, -1, -1); err != nil {
		return nil, err
	}
	c := in[0][1]
	return []Shape{{c}, {c}}, nil
}

func normShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := checkExtents("x", x, -1, -1, -1, -1); err != nil {
		return nil, err
	}
	for i, what := range []string{"mean", "variance", "gamma", "beta"} {
		if err := checkExtents(what, in[i+1], x[1]); err != nil {
			return nil, err
		}
	}
	return []Shape{x}, nil
}

func updateShapes(_ Attrs, in []Shape) ([]Shape, error) {
	for _, s := range in[1:] {
		if err := checkExtents("statistic", s, in[0]...); err != nil {
			return nil, err
		}
	}
	return []Shape{in[2], in[3]}, nil
}

func normGradShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := checkExtents("x", x, -1, -1, -1, -1); err != nil {
		return nil, err
	}
	for i, what := range []string{"mean", "variance", "gamma"} {
		if err := checkExtents(what, in[i+1], x[1]); err != nil {
			return nil, err
		}
	}
	if err := checkExtents("dy", in[4], x...); err != nil {
		return nil, err
	}
	return []Shape{x, {x[1]}, {x[1]}}, nil
}

func layerNormShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := checkExtents("x", x, -1, -1); err != nil {
		return nil, err
	}
	return []Shape{x, {x[0]}, {x[0]}}, firstError(checkExtents("gamma", in[1], x[1]), checkExtents("beta", in[2], x[1]))
}

func layerNormGradShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := checkExtents("x", x, -1, -1); err != nil {
		return nil, err
	}
	return []Shape{x, {x[1]}, {x[1]}}, firstError(checkExtents("mean", in[1], x[0]), checkExtents("scale", in[2], x[0]),
		checkExtents("gamma", in[3], x[1]), checkExtents("dy", in[4], x...))
}

func lrnShapes(_ Attrs, in []Shape) ([]Shape, error) {
	return []Shape{in[0]}, checkExtents("x", in[0], -1, -1, -1, -1)
}

func lrnDXShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	return []Shape{x}, firstError(checkExtents("x", x, -1, -1, -1, -1), checkExtents("y", in[1], x...),
		checkExtents("dy", in[2], x...))
}

// A square root or two count as one operation each.
func lrnFLOPs(a Attrs, _, out []Shape) int64 {
	return times(2*int64(a.Length)+6, int64(out[0].Elements()))
}

func lrnDXFLOPs(a Attrs, _, out []Shape) int64 {
	return times(3*int64(a.Length)+12, int64(out[0].Elements()))
}

func lrnCheck(a Attrs) error {
	if a.Length < 1 || a.Length%2 == 0 || a.Factor < 0 || a.Exponent < 0 {
		return fmt.Errorf("length %d must be odd and positive, factor %v and exponent %v not negative", a.Length,
			a.Factor, a.Exponent)
	}
	return positive("epsilon", a.Epsilon)
}

func epsilonCheck(a Attrs) error { return positive("epsilon", a.Epsilon) }

func runningCheck(a Attrs) error {
	if a.Length < 2 {
		return fmt.Errorf("length %d must be the number of values that the statistics are of, at least 2: one value "+
			"has no unbiased variance", a.Length)
	}
	return momentumCheck(a)
}

func momentumCheck(a Attrs) error { return share("momentum", a.Momentum) }
