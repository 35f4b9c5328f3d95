package graph

import (
	"fmt"
	"math"
)

// check tells whether the numbers that a kind needs are such that its kernel computes something.
func (a Attrs) check(k Kind) error {
	for _, f := range []struct {
		name string
		v    float64
	}{{"rate", a.Rate}, {"factor", a.Factor}, {"exponent", a.Exponent}, {"learning rate", a.LearningRate}, {"momentum", a.Momentum},
		{"beta1", a.Beta1}, {"beta2", a.Beta2}, {"epsilon", a.Epsilon}} {
		if math.IsNaN(f.v) || math.IsInf(f.v, 0) {
			return fmt.Errorf("%s %v is not finite", f.name, f.v)
		}
	}
	share := func(name string, v float64) error {
		if v < 0 || v >= 1 {
			return fmt.Errorf("%s %v must be at least 0 and below 1", name, v)
		}
		return nil
	}
	positive := func(name string, v float64) error {
		if v <= 0 {
			return fmt.Errorf("%s %v must be positive", name, v)
		}
		return nil
	}
	switch k {
	case Dropout, DropoutDX:
		return share("rate", a.Rate)
	case LRN, LRNDX:
		if a.Length < 1 || a.Length%2 == 0 || a.Factor < 0 || a.Exponent < 0 {
			return fmt.Errorf("length %d must be odd and positive, factor %v and exponent %v not negative", a.Length, a.Factor, a.Exponent)
		}
		return positive("epsilon", a.Epsilon)
	case BatchNorm, BatchNormGrad, LayerNorm:
		return positive("epsilon", a.Epsilon)
	case Softmax, SoftmaxDX:
		return positive("factor", a.Factor)
	case Momentum:
		return share("momentum", a.Momentum)
	case BatchNormUpdate:
		if a.Length < 2 {
			return fmt.Errorf("length %d must be the number of values that the statistics are of, at least 2: one value has no unbiased variance", a.Length)
		}
		return share("momentum", a.Momentum)
	case Adam:
		return first(share("beta1", a.Beta1), share("beta2", a.Beta2), positive("epsilon", a.Epsilon))
	}
	return nil
}
