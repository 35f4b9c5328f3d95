package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/graph"
)

// special returns an example some of whose floats are NaN, infinite, tiny, huge or negative zero.
func special(e example, rng *rand.Rand) example {
	specials := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, 1e-45, -1e-40, 3e38, -3e38,
		100, -100}
	e.in = slices.Clone(e.in)
	for i, o := range e.in {
		if inputTypes[e.kind][i] != graph.Float32 {
			continue
		}
		values, at := floatsOf(o.bytes), -1
		e.in[i] = floatOperand(o.shape, func() float64 {
			if at++; rng.IntN(5) == 0 {
				return specials[rng.IntN(len(specials))]
			}
			return float64(values[at])
		})
	}
	return e
}

// The text computes what gcc makes of the sources from special numbers too.
func TestSpecialNumbers(t *testing.T) {
	h := startHost(t)
	for _, family := range generators {
		for kind, g := range family {
			t.Run(string(kind), func(t *testing.T) {
				for round := range 4 {
					rng := rand.New(rand.NewPCG(uint64(round), 8))
					attrs, in := g.make(rng, round)
					e := special(example{kind: kind, attrs: attrs, in: in}, rng)
					got := e.interpreted(t).results()
					for i, want := range h.outputs(t, e) {
						sameBits(t, fmt.Sprintf("%v: output %d", e, i), outputType(kind, i), got[i], want)
					}
				}
			})
		}
	}
}

// An id that is no row of the table, and a label that is no class, make NaN, and touch nothing that is not theirs.
func TestOutOfRange(t *testing.T) {
	nan := func(x []float32) (is []bool) {
		for _, v := range x {
			is = append(is, v != v)
		}
		return is
	}
	rng := rand.New(rand.NewPCG(3, 3))
	ids := []int64{-1, 2, 3, math.MaxInt64, math.MinInt64, 0}
	at := -1
	in := indexOperand(graph.Shape{6}, func() int64 { at++; return ids[at] })
	y := example{kind: graph.Embedding, in: []operand{normalOperand(rng, 3, 1), in}}.interpreted(t).results()[0]
	if got := nan(floatsOf(y)); !slices.Equal(got, []bool{true, false, true, true, true, false}) {
		t.Errorf("embedding of %v in a table of 3 rows is NaN: %v", ids, got)
	}
	dy := positiveOperand(rng, 6, 1)
	dtable := example{kind: graph.EmbeddingDW, attrs: graph.Attrs{Extent: [2]int{3}},
		in: []operand{in, dy}}.interpreted(t).results()[0]
	if got, of := floatsOf(dtable), floatsOf(dy.bytes); !slices.Equal(got, []float32{of[5], 0, of[1]}) {
		t.Errorf("the gradient of the table is %v", got)
	}
	for _, label := range []float64{2, 0.5, math.NaN(), math.Inf(1), 1e30} {
		labels := floatOperand(graph.Shape{1}, func() float64 { return label })
		both := []operand{normalOperand(rng, 1, 2), labels}
		loss := floatsOf(example{kind: graph.SoftmaxXent, in: both}.interpreted(t).results()[0])
		if loss[0] == loss[0] {
			t.Errorf("the loss with label %v of 2 classes is %v", label, loss)
		}
		dx := floatsOf(example{kind: graph.SoftmaxXentDX, in: both}.interpreted(t).results()[0])
		if !slices.Equal(nan(dx), []bool{true, true}) {
			t.Errorf("the gradient with label %v of 2 classes is %v", label, dx)
		}
	}
}

// Rows of a table's gradient that are made by themselves have the bits that they have in the whole.
func TestEmbeddingTile(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const n, rows, width = 40, 11, 5
	in := []operand{anyIDs(rng, n, rows), normalOperand(rng, n, width)}
	all := graph.Attrs{Extent: [2]int{rows}}
	whole := example{kind: graph.EmbeddingDW, attrs: all, in: in}.interpreted(t).results()[0]
	for begin := 0; begin < rows; begin += 3 {
		a := graph.Attrs{Extent: [2]int{rows}, Begin: begin, Length: min(3, rows-begin)}
		tile := example{kind: graph.EmbeddingDW, attrs: a, in: in}.interpreted(t).results()[0]
		sameBits(t, fmt.Sprintf("rows from %d on", begin), graph.Float32, tile, whole[4*width*begin:][:len(tile)])
	}
}
