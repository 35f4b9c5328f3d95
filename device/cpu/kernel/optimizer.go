package kernel

import (
	"math"

	"tensile/device/cpu/gemm"
)

// sgd: w dw -> w, in place.
func sgd[T gemm.Float](c *Call[T]) {
	w, dw, rate := c.updated(0, 0), c.In[1], T(c.Attrs.LearningRate)
	w = w[:len(dw)]
	for i, g := range dw {
		w[i] -= rate * g
	}
}

// sgdMomentum: w dw m -> w m, in place. m = Momentum·m + dw, w -= LearningRate·m.
func sgdMomentum[T gemm.Float](c *Call[T]) {
	w, dw, m := c.updated(0, 0), c.In[1], c.updated(1, 2)
	rate, momentum := T(c.Attrs.LearningRate), T(c.Attrs.Momentum)
	w, m = w[:len(dw)], m[:len(dw)]
	for i, g := range dw {
		v := momentum*m[i] + g
		m[i] = v
		w[i] -= rate * v
	}
}

// adam: w dw m v -> w m v, in place. Algorithm 1 of Kingma and Ba (ICLR 2015) at step t = Iteration+1, epsilon outside
// of the root; the corrections of both moments are constants of the step, worked into the factors.
func adam[T gemm.Float](c *Call[T]) {
	w, dw, m, v := c.updated(0, 0), c.In[1], c.updated(1, 2), c.updated(2, 3)
	a, step := c.Attrs, float64(c.Iteration+1)
	beta1, beta2, epsilon := T(a.Beta1), T(a.Beta2), T(a.Epsilon)
	fresh1, fresh2 := T(1-a.Beta1), T(1-a.Beta2)
	rate := T(a.LearningRate / (1 - math.Pow(a.Beta1, step)))
	root := T(1 / math.Sqrt(1-math.Pow(a.Beta2, step)))
	w, m, v = w[:len(dw)], m[:len(dw)], v[:len(dw)]
	for i, g := range dw {
		m1 := beta1*m[i] + fresh1*g
		v1 := beta2*v[i] + fresh2*g*g
		m[i], v[i] = m1, v1
		w[i] -= rate * m1 / (T(math.Sqrt(float64(v1)))*root + epsilon)
	}
}
