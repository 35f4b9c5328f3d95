package kernel

import (
	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// channels shows [N,C,...] as n*c planes of size elements, so that a channel is every c-th plane.
type channels struct{ n, c, size int }

func channelsOf(shape []int) channels {
	ch := channels{n: shape[0], c: shape[1], size: 1}
	for _, d := range shape[2:] {
		ch.size *= d
	}
	return ch
}

// plane returns the plane of image n and channel c of x.
func plane[T gemm.Float](ch channels, x []T, n, c int) []T {
	return x[(n*ch.c+c)*ch.size:][:ch.size]
}

// biasDB: dy -> db, the sum over every dimension but the second.
func biasDB[T gemm.Float](c *Call[T]) {
	dy, db, ch := c.In[0], c.Out[0], channelsOf(c.InShapes[0])
	if ch.size == 1 {
		c.split(ch.c, ch.n, func(from, to int) { sumRows(db[from:to], dy[from:], ch.n, ch.c) })
		return
	}
	c.eachOf(ch.c, ch.n*ch.size, func(k int) {
		total := 0.0
		for n := range ch.n {
			total += vector.Sum(plane(ch, dy, n, k))
		}
		db[k] = T(total)
	})
}

// sumRows adds up n rows, which begin stride elements apart, in order.
func sumRows[T gemm.Float](total, x []T, n, stride int) {
	copy(total, x)
	for r := 1; r < n; r++ {
		vector.Add(total, total, x[r*stride:][:len(total)])
	}
}
