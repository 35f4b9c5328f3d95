package kernel

import (
	"fmt"

	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// dropout: x -> y, and dy -> dx for the gradient: the same mask and scale. The mask has no state: element i is kept by
// a hash of (seed, iteration, key, i), so that a repeated execution, or the gradient, makes the same one again.
func dropout[T gemm.Float](c *Call[T]) {
	x, y, rate := c.In[0], c.Out[0], c.Attrs.Rate
	if !(rate >= 0 && rate < 1) {
		panic(fmt.Sprintf("kernel: %s with rate %v, want 0 <= rate < 1", c.Kind, rate))
	}
	state := mix(mix(mix(c.Seed+golden)^uint64(c.Iteration))^c.Attrs.Key) + uint64(c.first)*golden
	threshold, factor := uint64(rate*(1<<53)), T(1/(1-rate))
	y = y[:len(x)]
	for i, v := range x {
		state += golden
		y[i] = vector.KeepIf(mix(state)>>11 >= threshold, v*factor)
	}
}

// golden is 2⁶⁴ divided by the golden ratio, made odd.
const golden = 0x9e3779b97f4a7c15

// mix is the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit of z reaches every bit.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
