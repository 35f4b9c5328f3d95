package onnx

import (
	"math"

	"tensile/graph"
)

// Functions with steps, through which no gradient goes, and those with periods, of what graphs have.

// stop is x, through which no gradient goes.
func (c *call) stop(x graph.TensorID) graph.TensorID {
	x = c.affine(x, 1, 0)
	c.stops = append(c.stops, x)
	return x
}

// parts applies a function of what is not below zero to x, and to -x where x is below it.
func (c *call) parts(x graph.TensorID, of func(x graph.TensorID) graph.TensorID) graph.TensorID {
	below := of(c.relu(c.affine(x, -1, 0)))
	return c.stop(c.sumOf(of(c.relu(x)), c.affine(below, -1, 0)))
}

// rounded is the nearest whole number, of two the even one.
func (c *call) rounded(x graph.TensorID) graph.TensorID {
	const whole = 1 << 23 // from here on floats of 32 bits are whole numbers, up to twice that all of them
	return c.parts(x, func(x graph.TensorID) graph.TensorID {
		beyond := c.relu(c.affine(x, 1, -whole))
		within := c.sumOf(x, c.affine(beyond, -1, 0))
		return c.sumOf(c.affine(c.affine(within, 1, whole), 1, -whole), beyond)
	})
}

// greater is 1 where a is above b, and 0 elsewhere.
func (c *call) greater(a, b graph.TensorID) graph.TensorID {
	is, err := c.positive(c.sumOf(a, c.affine(b, -1, 0)), c.b.Shape(a))
	if err != nil {
		c.b.Fail(err)
	}
	return is
}

func (c *call) floor(x graph.TensorID) graph.TensorID {
	n := c.rounded(x)
	return c.sumOf(n, c.affine(c.greater(n, x), -1, 0))
}

func (c *call) ceiling(x graph.TensorID) graph.TensorID {
	n := c.rounded(x)
	return c.sumOf(n, c.greater(x, n))
}

// truncated is x without what is behind its point.
func (c *call) truncated(x graph.TensorID) graph.TensorID { return c.parts(x, c.floor) }

func (c *call) sign(x graph.TensorID) graph.TensorID {
	zero := c.affine(x, 0, 0)
	return c.sumOf(c.greater(x, zero), c.affine(c.greater(zero, x), -1, 0))
}

func (c *call) sine(x graph.TensorID) graph.TensorID { return c.wave(x, 0) }

func (c *call) cosine(x graph.TensorID) graph.TensorID { return c.wave(x, 0.5) }

// wave is the sine of x, or with a half of a half period the cosine: of what is left of x when whole half periods are
// taken away, by its series (its error is below 1e-8), with the sign of that half period.
func (c *call) wave(x graph.TensorID, half float64) graph.TensorID {
	n := c.rounded(c.affine(x, 1/math.Pi, half))
	turns := c.affine(n, 1, -half)
	rest := x
	for left, k := math.Pi, 0; k < 4; k++ { // pieces of which products with numbers up to 4096 are floats of 32 bits
		piece := left
		if k < 3 {
			unit := math.Ldexp(1, -7-11*k)
			piece = math.Trunc(left/unit) * unit
		}
		rest = c.sumOf(rest, c.affine(turns, -piece, 0))
		left -= piece
	}
	square := c.product(rest, rest)
	series := c.affine(square, 1.0/6227020800, -1.0/39916800)
	for _, factor := range []float64{1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1} {
		series = c.affine(c.product(series, square), 1, factor)
	}
	odd := c.sumOf(n, c.affine(c.rounded(c.affine(n, 0.5, 0)), -2, 0)) // 0, 1 or -1
	sign := c.affine(c.product(odd, odd), -2, 1)
	return c.product(c.product(series, rest), sign)
}
