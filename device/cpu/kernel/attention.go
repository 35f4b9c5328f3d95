package kernel

import (
	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// matmul: a b -> y, a product per entry of the batch.
func matmul[T gemm.Float](c *Call[T]) {
	batch, k := c.OutShapes[0][0], c.InShapes[0][2]
	if c.Attrs.TransposeA {
		k = c.InShapes[0][1]
	}
	for i := range batch {
		gemm.Multiply(c.GEMM, gemm.Product[T]{
			M: c.OutShapes[0][1], N: c.OutShapes[0][2], K: k,
			A: gemm.Matrix[T]{Data: item(c.In[0], i, batch), Stride: c.InShapes[0][2], Transposed: c.Attrs.TransposeA},
			B: gemm.Matrix[T]{Data: item(c.In[1], i, batch), Stride: c.InShapes[1][2], Transposed: c.Attrs.TransposeB},
			C: gemm.Matrix[T]{Data: item(c.Out[0], i, batch), Stride: c.OutShapes[0][2]},
		})
	}
}

// transpose: x[A,M,N,D] -> y[A,N,M,D].
func transpose[T gemm.Float](c *Call[T]) {
	s := c.InShapes[0]
	for a := range s[0] {
		x, y := item(c.In[0], a, s[0]), item(c.Out[0], a, s[0])
		if s[3] == 1 {
			c.split(s[2], s[1], func(from, to int) { turnRows(y, x, s[1], s[2], from, to) })
			continue
		}
		for n := range s[2] {
			for m := range s[1] {
				copy(y[(n*s[1]+m)*s[3]:][:s[3]], x[(m*s[2]+n)*s[3]:])
			}
		}
	}
}

// turnRows writes the rows [from, to) of the transpose of m by n elements, a few at a time, so that what is read lies
// in the first-level cache.
func turnRows[T gemm.Float](y, x []T, m, n, from, to int) {
	const few = 16
	for row := from; row < to; row += few {
		rows := min(few, to-row)
		for at := range m {
			for i, v := range x[at*n+row:][:rows] {
				y[(row+i)*m+at] = v
			}
		}
	}
}

// softmaxRows: x -> y, the softmax of each row, times Factor; of the columns up to the row's own if it is causal.
func softmaxRows[T gemm.Float](c *Call[T]) {
	s := c.InShapes[0]
	n := s[0] * s[1]
	for r := range n {
		x, y := item(c.In[0], r, n), item(c.Out[0], r, n)
		if c.Attrs.Causal {
			seen := r%s[1] + 1
			clear(y[seen:])
			x, y = x[:seen], y[:seen]
		}
		softmax(y, x, c.Attrs.Factor)
	}
}

// softmaxDX: y dy -> dx, Factor·y·(dy - Σ y·dy). It is zero where y is, so causal rows need no care.
func softmaxDX[T gemm.Float](c *Call[T]) {
	n := c.InShapes[0][0] * c.InShapes[0][1]
	for r := range n {
		y, dy, dx := item(c.In[0], r, n), item(c.In[1], r, n), item(c.Out[0], r, n)
		_, product := vector.SumProducts(y, dy, 0)
		for i, v := range y {
			dx[i] = T(c.Attrs.Factor * float64(v) * (float64(dy[i]) - product))
		}
	}
}

// additiveScores: q k v -> e, the sum of v·tanh(q+k) over the features.
func additiveScores[T gemm.Float](c *Call[T]) {
	v, e := c.In[2], c.Out[0]
	forEachScore(c, func(at int, q, k []T, _, _ []T) {
		total := 0.0
		var y [part]T
		for first := 0; first < len(v); first += part {
			w := v[first:min(first+part, len(v))]
			tanhSum(y[:len(w)], q[first:], k[first:])
			for i, w := range w {
				total += float64(w) * float64(y[i])
			}
		}
		e[at] = T(total)
	})
}

// additiveScoresGrad: q k v de -> dq dk dv. The tanh is computed again. Contributions are added in the order of e.
func additiveScoresGrad[T gemm.Float](c *Call[T]) {
	v, de, dv := c.In[2], c.In[3], c.Out[2]
	for _, out := range c.Out {
		clear(out)
	}
	forEachScore(c, func(at int, q, k, dq, dk []T) {
		d := float64(de[at])
		var squashed [part]T
		for i, w := range v {
			if i%part == 0 {
				tanhSum(squashed[:min(part, len(v)-i)], q[i:], k[i:])
			}
			y := float64(squashed[i%part])
			if dv != nil {
				dv[i] += T(d * y)
			}
			g := T(d * float64(w) * (1 - y*y))
			if dq != nil {
				dq[i] += g
			}
			if dk != nil {
				dk[i] += g
			}
		}
	})
}

// tanhSum writes to y the hyperbolic tangents of as many elements of q+k.
func tanhSum[T gemm.Float](y, q, k []T) {
	vector.Add(y, q[:len(y)], k[:len(y)])
	vector.Tanh(y, y)
}

// forEachScore calls visit for every energy, in order, with its query and key and, in the gradient, theirs.
func forEachScore[T gemm.Float](c *Call[T], visit func(at int, q, k, dq, dk []T)) {
	batch, queries, keys, features := c.InShapes[0][0], c.InShapes[0][1], c.InShapes[1][1], c.InShapes[0][2]
	var allDQ, allDK []T
	if len(c.Out) == 3 {
		allDQ, allDK = c.Out[0], c.Out[1]
	}
	row := func(x []T, r int) []T {
		if x == nil {
			return nil
		}
		return x[r*features:][:features]
	}
	for n := range batch {
		for t := range queries {
			for s := range keys {
				q, k := n*queries+t, n*keys+s
				visit(q*keys+s, row(c.In[0], q), row(c.In[1], k), row(allDQ, q), row(allDK, k))
			}
		}
	}
}
