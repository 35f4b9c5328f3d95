package kernel

import (
	"math"

	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// sgd: w dw -> w, in place.
func sgd[T gemm.Float](c *Call[T]) {
	vector.SGD(c.updated(0, 0), c.In[1], T(c.Attrs.LearningRate))
}

// sgdMomentum: w dw m -> w m, in place. m = Momentum·m + dw, w -= LearningRate·m.
func sgdMomentum[T gemm.Float](c *Call[T]) {
	vector.Momentum(c.updated(0, 0), c.In[1], c.updated(1, 2), T(c.Attrs.LearningRate), T(c.Attrs.Momentum))
}

// adam: w dw m v -> w m v, in place. Algorithm 1 of Kingma and Ba (ICLR 2015) at step t = Iteration+1, epsilon outside
// of the root; the corrections of both moments are constants of the step, worked into the factors.
func adam[T gemm.Float](c *Call[T]) {
	a, step := c.Attrs, float64(c.Iteration+1)
	vector.Adam(c.updated(0, 0), c.In[1], c.updated(1, 2), c.updated(2, 3), &vector.AdamStep[T]{
		Rate: T(a.LearningRate / (1 - math.Pow(a.Beta1, step))), Root: T(1 / math.Sqrt(1-math.Pow(a.Beta2, step))),
		Epsilon: T(a.Epsilon), Beta1: T(a.Beta1), Fresh1: T(1 - a.Beta1), Beta2: T(a.Beta2), Fresh2: T(1 - a.Beta2)})
}
