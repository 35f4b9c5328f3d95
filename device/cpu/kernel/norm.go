package kernel

import (
	"math"

	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// batchNormStats: x -> mean variance (biased). Two passes, in float64: the variance is that of the exact mean.
func batchNormStats[T gemm.Float](c *Call[T]) {
	x, mean, variance := c.In[0], c.Out[0], c.Out[1]
	ch := channelsOf(c.InShapes[0])
	count := float64(ch.n * ch.size)
	c.eachOf(ch.c, ch.n*ch.size, func(k int) {
		total := 0.0
		for n := range ch.n {
			total += vector.Sum(plane(ch, x, n, k))
		}
		centre := total / count
		if mean != nil {
			mean[k] = T(centre)
		}
		if variance == nil {
			return
		}
		squares := 0.0
		for n := range ch.n {
			squares += vector.SumSquares(plane(ch, x, n, k), centre)
		}
		variance[k] = T(squares / count)
	})
}

// batchNorm: x mean variance gamma beta -> y.
func batchNorm[T gemm.Float](c *Call[T]) {
	x, mean, variance, gamma, beta, y := c.In[0], c.In[1], c.In[2], c.In[3], c.In[4], c.Out[0]
	ch := channelsOf(c.InShapes[0])
	c.eachOf(ch.c, ch.n*ch.size, func(k int) {
		factor, centre, shift := T(float64(gamma[k])*inverseDeviation(variance[k], c.Attrs.Epsilon)), mean[k], beta[k]
		for n := range ch.n {
			vector.Normalise(plane(ch, y, n, k), plane(ch, x, n, k), centre, factor, shift)
		}
	})
}

// inverseDeviation is 1/sqrt(variance+epsilon).
func inverseDeviation[T gemm.Float](variance T, epsilon float64) float64 {
	return 1 / math.Sqrt(float64(variance)+epsilon)
}

// batchNormUpdate: mean variance running_mean running_variance -> both running ones, in place. A running statistic
// moves by the share Momentum towards the batch's: its mean, and its unbiased variance, n/(n-1) of the biased one for n
// = Length values, as torch and cuDNN have it.
func batchNormUpdate[T gemm.Float](c *Call[T]) {
	n := float64(c.Attrs.Length)
	share, factors := T(c.Attrs.Momentum), [2]T{1, T(n / (n - 1))}
	for i, factor := range factors {
		batch, running := c.In[i], c.updated(i, i+2)
		for k, v := range batch {
			running[k] = (1-share)*running[k] + share*(factor*v)
		}
	}
}

// batchNormGrad: x mean variance gamma dy -> dx dgamma dbeta, where mean and variance are those of x. With x' the
// normalised input and M elements a channel, dbeta = Σdy, dgamma = Σdy·x' and
// dx = gamma/deviation · (dy - dbeta/M - x'·dgamma/M).
func batchNormGrad[T gemm.Float](c *Call[T]) {
	x, mean, variance, gamma, dy := c.In[0], c.In[1], c.In[2], c.In[3], c.In[4]
	dx, dgamma, dbeta := c.Out[0], c.Out[1], c.Out[2]
	ch := channelsOf(c.InShapes[0])
	count := float64(ch.n * ch.size)
	c.eachOf(ch.c, ch.n*ch.size, func(k int) {
		var total, product float64
		for n := range ch.n {
			t, p := vector.SumProducts(plane(ch, x, n, k), plane(ch, dy, n, k), float64(mean[k]))
			total, product = total+t, product+p
		}
		inverse := inverseDeviation(variance[k], c.Attrs.Epsilon)
		if dgamma != nil {
			dgamma[k] = T(product * inverse)
		}
		if dbeta != nil {
			dbeta[k] = T(total)
		}
		if dx == nil {
			return
		}
		slope, shift := T(product*inverse*inverse/count), T(total/count)
		factor, centre := T(float64(gamma[k])*inverse), mean[k]
		for n := range ch.n {
			vector.NormaliseGrad(plane(ch, dx, n, k), plane(ch, x, n, k), plane(ch, dy, n, k), centre, slope, shift,
				factor)
		}
	})
}
