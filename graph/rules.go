package graph

import (
	"fmt"
	"math"
	"math/bits"
)

// checkExtents checks that a shape has the given extents; a negative extent matches any.
func checkExtents(what string, s Shape, extents ...int) error {
	ok := len(s) == len(extents)
	for i := 0; ok && i < len(s); i++ {
		ok = extents[i] < 0 || s[i] == extents[i]
	}
	if !ok {
		return fmt.Errorf("%s has shape %v, want %v (-1: any)", what, s, extents)
	}
	return nil
}

// firstError returns the first error there is.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// noArithmetic is the arithmetic of kinds that only copy.
func noArithmetic(Attrs, []Shape, []Shape) int64 { return 0 }

func perInput(n int64) func(Attrs, []Shape, []Shape) int64 {
	return func(_ Attrs, in, _ []Shape) int64 { return times(n, int64(in[0].Elements())) }
}

// perSecond is the arithmetic of kinds that do the same for every element of their second operand.
func perSecond(n int64) func(Attrs, []Shape, []Shape) int64 {
	return func(_ Attrs, in, _ []Shape) int64 { return times(n, int64(in[1].Elements())) }
}

func perOutput(n int64) func(Attrs, []Shape, []Shape) int64 {
	return func(_ Attrs, _, out []Shape) int64 { return times(n, int64(out[0].Elements())) }
}

// times multiplies counts and stays at the largest value there is when the product is beyond it.
func times(factors ...int64) int64 {
	product := int64(1)
	for _, f := range factors {
		high, low := bits.Mul64(uint64(product), uint64(f))
		if high != 0 || low > math.MaxInt64 {
			return math.MaxInt64
		}
		product = int64(low)
	}
	return product
}
