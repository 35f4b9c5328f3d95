package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"tensile/graph"
)

// This file writes down in plain Go in which order the kernels with barriers add up, and compares bits. A product that
// is added to something is converted to its own type first, so that Go does not fuse the two.

// blockSum is the sum of n terms by a block: thread t adds up terms t, t+threads and so on; then halves are added.
func blockSum(threads, n int, term func(i int) float64) float64 {
	parts := make([]float64, threads)
	for i := range n {
		parts[i%threads] += term(i)
	}
	for half := threads / 2; half > 0; half /= 2 {
		for t := range half {
			parts[t] += parts[t+half]
		}
	}
	return parts[0]
}

// chunkSums are the sums of the chunks of count terms.
func chunkSums(count int, term func(chunk, i int) float64) []float64 {
	sums := make([]float64, chunksOf(count))
	for chunk := range sums {
		first := chunk * chunkSize
		sums[chunk] = blockSum(threadsForChunk(count), min(chunkSize, count-first),
			func(i int) float64 { return term(chunk, first+i) })
	}
	return sums
}

// total adds up the sums of chunks.
func total(sums []float64) float64 {
	return blockSum(threadsFor(len(sums)), len(sums), func(i int) float64 { return sums[i] })
}

// columnSum adds up a term per row, part by part.
func columnSum(rows int, term func(r int) float64) (sum float64) {
	for first := 0; first < rows; first += partRows {
		part := 0.0
		for r := first; r < min(first+partRows, rows); r++ {
			part += term(r)
		}
		sum += part
	}
	return sum
}

// at is where element i of channel k stands, elements being counted image by image.
func (ch channels) at(k, i int) int { return (i/ch.size*ch.c+k)*ch.size + i%ch.size }

// exp is exp32 of src/functions.h, and the other names follow the same rule.
func exp(x float32) float32 {
	k, r := reduce(min(max(x, -105), 89))
	half := k / 2
	return (1 + aboveOne(r)) * float32(math.Ldexp(1, half)) * float32(math.Ldexp(1, k-half))
}

func reduce(x float32) (k int, rest float32) {
	const big = 12582912
	n := fma(x, 1.44269504, big) - big
	return int(n), fma(n, -1.42860682e-6, fma(n, -0.693145752, x))
}

func aboveOne(r float32) float32 {
	p := float32(1) / 5040
	for _, c := range []float32{1. / 720, 1. / 120, 1. / 24, 1. / 6, 0.5} {
		p = fma(p, r, c)
	}
	return fma(p, r*r, r)
}

func log1pexp(x float32) float32 {
	e := exp(x)
	s := e / (2 + e)
	z, p := s*s, float32(1)/15
	for _, c := range []float32{1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3} {
		p = fma(p, z, c)
	}
	return 2 * fma(p, z*s, s)
}

func logarithm(x float64) float64 {
	const root = 0x3fe6a09e667f3bcd
	b := int64(math.Float64bits(x)) - root
	e, m := float64(b>>52), math.Float64frombits(uint64(b&0xfffffffffffff+root))
	s, p := (m-1)/(m+1), 0.0
	z := s * s
	for n := 23; n >= 3; n -= 2 {
		p = float64((p + 1/float64(n)) * z)
	}
	return float64(e*0.6931471805599453) + float64(2*math.FMA(p, s, s))
}

// summation is what an op makes: its outputs, and the float64 that its scratch begins with, in which an order shows
// that float32 would hide.
type summation struct {
	out  [][]float32
	sums []float64
}

// orders computes ops of kinds whose kernels have barriers. x are the inputs.
var orders = map[graph.Kind]func(e example, x [][]float32) summation{
	graph.BiasDB: func(e example, x [][]float32) summation {
		ch := channelsOf(e.in[0].shape)
		db, all := make([]float32, ch.c), []float64(nil)
		for k := range ch.c {
			if ch.size == 1 {
				db[k] = float32(columnSum(ch.n, func(r int) float64 { return float64(x[0][r*ch.c+k]) }))
				continue
			}
			sums := chunkSums(ch.count(), func(_, i int) float64 { return float64(x[0][ch.at(k, i)]) })
			db[k], all = float32(total(sums)), append(all, sums...)
		}
		return summation{[][]float32{db}, all}
	},
	graph.BatchNormStats: func(e example, x [][]float32) summation {
		ch := channelsOf(e.in[0].shape)
		mean, variance, all := make([]float32, ch.c), make([]float32, ch.c), []float64(nil)
		for k := range ch.c {
			element := func(i int) float64 { return float64(x[0][ch.at(k, i)]) }
			length := func(chunk int) float64 { return float64(min(chunkSize, ch.count()-chunk*chunkSize)) }
			sums := chunkSums(ch.count(), func(_, i int) float64 { return element(i) })
			squares := chunkSums(ch.count(), func(chunk, i int) float64 {
				d := element(i) - sums[chunk]/length(chunk)
				return float64(d * d)
			})
			centre := total(sums) / float64(ch.count())
			for i, s := range sums {
				all = append(all, s, squares[i])
				d := s/length(i) - centre
				squares[i] += float64(length(i) * d * d)
			}
			mean[k], variance[k] = float32(centre), float32(total(squares)/float64(ch.count()))
		}
		return summation{[][]float32{mean, variance}, all}
	},
	graph.BatchNormGrad: func(e example, in [][]float32) summation {
		x, mean, variance, gamma, dy := in[0], in[1], in[2], in[3], in[4]
		ch, count := channelsOf(e.in[0].shape), float64(channelsOf(e.in[0].shape).count())
		dx, dgamma, dbeta := make([]float32, len(x)), make([]float32, ch.c), make([]float32, ch.c)
		var all []float64
		for k := range ch.c {
			sums := chunkSums(ch.count(), func(_, i int) float64 { return float64(dy[ch.at(k, i)]) })
			products := chunkSums(ch.count(), func(_, i int) float64 {
				return float64((float64(x[ch.at(k, i)]) - float64(mean[k])) * float64(dy[ch.at(k, i)]))
			})
			for i, s := range sums {
				all = append(all, s, products[i])
			}
			sum, product := total(sums), total(products)
			inverse := 1 / math.Sqrt(float64(variance[k])+e.attrs.Epsilon)
			dgamma[k], dbeta[k] = float32(product*inverse), float32(sum)
			factor, shift := float32(float64(gamma[k])*inverse), float32(sum/count)
			slope := float32(product * inverse * inverse / count)
			for i := range ch.count() {
				at := ch.at(k, i)
				dx[at] = factor * (dy[at] - shift - float32((x[at]-mean[k])*slope))
			}
		}
		return summation{[][]float32{dx, dgamma, dbeta}, all}
	},
	graph.LayerNorm: func(e example, in [][]float32) summation {
		rows, width := e.in[0].shape[0], e.in[0].shape[1]
		y, mean, scale := make([]float32, rows*width), make([]float32, rows), make([]float32, rows)
		for r := range rows {
			x := in[0][r*width:][:width]
			centre := blockSum(threadsFor(width), width, func(i int) float64 { return float64(x[i]) }) / float64(width)
			squares := blockSum(threadsFor(width), width, func(i int) float64 {
				d := float64(x[i]) - centre
				return float64(d * d)
			})
			inverse := 1 / math.Sqrt(squares/float64(width)+e.attrs.Epsilon)
			mean[r], scale[r] = float32(centre), float32(inverse)
			for i, v := range x {
				y[r*width+i] = float32(float32((float64(v)-centre)*inverse)*in[1][i]) + in[2][i]
			}
		}
		return summation{[][]float32{y, mean, scale}, nil}
	},
	graph.LayerNormGrad: func(e example, in [][]float32) summation {
		x, mean, scale, gamma, dy := in[0], in[1], in[2], in[3], in[4]
		rows, width := e.in[0].shape[0], e.in[0].shape[1]
		dx, dgamma, dbeta := make([]float32, rows*width), make([]float32, width), make([]float32, width)
		for r := range rows {
			centre, by := float64(mean[r]), float64(scale[r])
			g := func(i int) float64 { return float64(gamma[i]) * float64(dy[r*width+i]) }
			sum := blockSum(threadsFor(width), width, func(i int) float64 { return float64(g(i)) }) / float64(width)
			product := blockSum(threadsFor(width), width, func(i int) float64 {
				return float64(g(i) * (float64(x[r*width+i]) - centre) * by)
			}) / float64(width)
			for i := range width {
				normal := float64((float64(x[r*width+i]) - centre) * by * product)
				dx[r*width+i] = float32(by * (float64(g(i)) - sum - normal))
			}
		}
		for i := range width {
			dgamma[i] = float32(columnSum(rows, func(r int) float64 {
				return float64(dy[r*width+i] * ((x[r*width+i] - mean[r]) * scale[r]))
			}))
			dbeta[i] = float32(columnSum(rows, func(r int) float64 { return float64(dy[r*width+i]) }))
		}
		return summation{[][]float32{dx, dgamma, dbeta}, nil}
	},
	graph.Softmax: func(e example, in [][]float32) summation {
		s := e.in[0].shape
		y := make([]float32, s.Elements())
		for r := range s[0] * s[1] {
			seen := s[2]
			if e.attrs.Causal {
				seen = r%s[1] + 1
			}
			softmaxRow(y[r*s[2]:][:seen], in[0][r*s[2]:][:seen], float32(e.attrs.Factor), s[2])
		}
		return summation{[][]float32{y}, nil}
	},
	graph.SoftmaxDX: func(e example, in [][]float32) summation {
		s := e.in[0].shape
		dx := make([]float32, s.Elements())
		for r := range s[0] * s[1] {
			y, dy := in[0][r*s[2]:][:s[2]], in[1][r*s[2]:][:s[2]]
			product := blockSum(threadsFor(s[2]), s[2], func(i int) float64 { return float64(y[i]) * float64(dy[i]) })
			for i, v := range y {
				dx[r*s[2]+i] = float32(e.attrs.Factor * float64(v) * (float64(dy[i]) - product))
			}
		}
		return summation{[][]float32{dx}, nil}
	},
	graph.SoftmaxXent: func(e example, in [][]float32) summation {
		rows, classes := e.in[0].shape[0], e.in[0].shape[1]
		probabilities, losses := make([]float32, rows*classes), make([]float64, rows)
		count := 0.0
		for r, label := range in[1] {
			x := in[0][r*classes:][:classes]
			top, sum := softmaxRow(probabilities[r*classes:][:classes], x, 1, classes)
			if label >= 0 {
				count++
				losses[r] = logarithm(sum) - (float64(x[int(label)]) - float64(top))
			}
		}
		return summation{[][]float32{{float32(total(losses) / max(1, count))}, probabilities}, losses}
	},
	graph.MeanSquare: func(_ example, in [][]float32) summation {
		sums := chunkSums(len(in[0]), func(_, i int) float64 {
			d := float64(in[0][i]) - float64(in[1][i])
			return float64(d * d)
		})
		return summation{[][]float32{{float32(total(sums) / float64(len(in[0])))}}, sums}
	},
	graph.SigmoidXent: func(_ example, in [][]float32) summation {
		sums := chunkSums(len(in[0]), func(_, i int) float64 {
			x := in[0][i]
			return float64(max(x, 0)) - float64(float64(x)*float64(in[1][i])) + float64(log1pexp(-max(x, -x)))
		})
		return summation{[][]float32{{float32(total(sums) / float64(len(in[0])))}}, sums}
	},
}

// softmaxRow writes a row's probabilities, as a block for rows of width makes them, and returns its largest element and
// the sum.
func softmaxRow(y, x []float32, factor float32, width int) (top float32, sum float64) {
	top = x[0]
	for _, v := range x {
		top = max(top, v)
	}
	sum = blockSum(threadsFor(width), len(x), func(i int) float64 { return float64(exp(factor * (x[i] - top))) })
	for i, v := range x {
		y[i] = exp(factor*(v-top)) / float32(sum)
	}
	return top, sum
}

// cancelling returns an example in which every other pair of elements of an operand is large and adds up to zero: what
// it is added to loses its last bits, others in each order.
func cancelling(e example, operand int) example {
	large := floatsOf(e.in[operand].bytes)
	for i := 3; i < len(large); i += 4 {
		large[i-1], large[i] = 1<<40, -1<<40
	}
	i := -1
	e.in = slices.Clone(e.in)
	e.in[operand] = floatOperand(e.in[operand].shape, func() float64 { i++; return float64(large[i]) })
	return e
}

// summed are the operands of kinds that are added up as they are.
var summed = map[graph.Kind]int{
	graph.BiasDB: 0, graph.BatchNormStats: 0, graph.BatchNormGrad: 4, graph.LayerNorm: 0, graph.LayerNormGrad: 4,
}

func checkOrder(t *testing.T, e example) {
	t.Helper()
	var in [][]float32
	for _, o := range e.in {
		in = append(in, floatsOf(o.bytes))
	}
	want, got := orders[e.kind](e, in), e.interpreted(t)
	for i, out := range want.out {
		var bytes []byte
		for _, v := range out {
			bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(v))
		}
		sameBits(t, fmt.Sprintf("%v: output %d", e, i), graph.Float32, got.results()[i], bytes)
	}
	if bytes := bytesOf(want.sums); !slices.Equal(got.scratch()[:len(bytes)], bytes) {
		t.Errorf("%v: the sums in scratch have other bits", e)
	}
}

// The kernels with barriers add up in the order that is written down here.
func TestOrderOfBlockSums(t *testing.T) {
	tested := 0
	forEachExample(t, func(t *testing.T, _ generator, e example) {
		if orders[e.kind] == nil {
			return
		}
		tested++
		checkOrder(t, e)
		if operand, ok := summed[e.kind]; ok {
			checkOrder(t, cancelling(e, operand))
		}
	})
	if tested != len(orders)*rounds {
		t.Errorf("%d examples of %d kinds", tested, len(orders))
	}
}
