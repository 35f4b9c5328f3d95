package kernel

import (
	"math"

	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// meanSquare: a b -> loss, the mean of (a-b)².
func meanSquare[T gemm.Float](c *Call[T]) {
	a, b, total := c.In[0], c.In[1], 0.0
	for i, v := range a {
		d := float64(v) - float64(b[i])
		total += d * d
	}
	c.Out[0][0] = T(total / float64(len(a)))
}

// meanSquareDX: a b -> da, 2(a-b)/N.
func meanSquareDX[T gemm.Float](c *Call[T]) {
	a, b, da := c.In[0], c.In[1], c.Out[0]
	factor := T(2 / float64(len(a)))
	for i, v := range a {
		da[i] = factor * (v - b[i])
	}
}

// sigmoidXent: logits targets -> loss, the mean of -target·log σ(x) - (1-target)·log(1-σ(x)), in a form in which
// nothing overflows.
func sigmoidXent[T gemm.Float](c *Call[T]) {
	logits, targets, total := c.In[0], c.In[1], 0.0
	for i, v := range logits {
		x := float64(v)
		total += max(x, 0) - x*float64(targets[i]) + math.Log1p(math.Exp(-math.Abs(x)))
	}
	c.Out[0][0] = T(total / float64(len(logits)))
}

// sigmoidXentDX: logits targets -> dlogits, (σ(x) - target)/N.
func sigmoidXentDX[T gemm.Float](c *Call[T]) {
	logits, targets, dx := c.In[0], c.In[1], c.Out[0]
	n := float64(len(logits))
	vector.Sigmoid(dx, logits)
	for i, v := range dx {
		dx[i] = T((float64(v) - float64(targets[i])) / n)
	}
}
