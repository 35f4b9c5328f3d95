package kernel

import "tensile/device/cpu/gemm"

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
		sumRows(db, dy, ch.n)
		return
	}
	for k := range db {
		total := 0.0
		for n := range ch.n {
			total += sum(plane(ch, dy, n, k))
		}
		db[k] = T(total)
	}
}

// sumRows adds up the n rows of x, in order.
func sumRows[T gemm.Float](total, x []T, n int) {
	copy(total, x)
	for r := 1; r < n; r++ {
		row := item(x, r, n)[:len(total)]
		for i, v := range row {
			total[i] += v
		}
	}
}

// The sums below run in float64 and in four interleaved strands, an order that depends on the length alone: an addition
// then need not wait for the one before it.

// sum is the sum of x.
func sum[T gemm.Float](x []T) float64 {
	var s0, s1, s2, s3 float64
	for ; len(x) >= 4; x = x[4:] {
		s0 += float64(x[0])
		s1 += float64(x[1])
		s2 += float64(x[2])
		s3 += float64(x[3])
	}
	for _, v := range x {
		s0 += float64(v)
	}
	return (s0 + s1) + (s2 + s3)
}

// sumSquares is the sum of (x-centre)².
func sumSquares[T gemm.Float](x []T, centre float64) float64 {
	var s0, s1, s2, s3 float64
	for ; len(x) >= 4; x = x[4:] {
		d0, d1 := float64(x[0])-centre, float64(x[1])-centre
		d2, d3 := float64(x[2])-centre, float64(x[3])-centre
		s0 += d0 * d0
		s1 += d1 * d1
		s2 += d2 * d2
		s3 += d3 * d3
	}
	for _, v := range x {
		d := float64(v) - centre
		s0 += d * d
	}
	return (s0 + s1) + (s2 + s3)
}

// sumProducts is the sum of y and of (x-centre)*y.
func sumProducts[T gemm.Float](x, y []T, centre float64) (total, product float64) {
	var s0, s1, p0, p1 float64
	for ; len(x) >= 2 && len(y) >= 2; x, y = x[2:], y[2:] {
		v0, v1 := float64(y[0]), float64(y[1])
		s0 += v0
		s1 += v1
		p0 += (float64(x[0]) - centre) * v0
		p1 += (float64(x[1]) - centre) * v1
	}
	for i, v := range y {
		s0 += float64(v)
		p0 += (float64(x[i]) - centre) * float64(v)
	}
	return s0 + s1, p0 + p1
}
