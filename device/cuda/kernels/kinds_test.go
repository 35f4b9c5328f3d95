package kernels

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/graph"
)

// generator makes random ops of a kind. Round 0 has the smallest shapes, the other rounds ragged ones.
type generator struct {
	// of the outputs against the float64 kernels, relative to the largest element; 0: they only move or compare elements
	tolerance float64
	make      func(rng *rand.Rand, round int) (graph.Attrs, []operand)
}

// generators are by family, as the kinds are.
var generators = []map[graph.Kind]generator{
	elementwiseGenerators, moveGenerators, optimizerGenerators, poolingGenerators, normGenerators, sequenceGenerators,
	productGenerators, convolutionGenerators,
}

const rounds = 20

// forEachExample calls check for every kind and round.
func forEachExample(t *testing.T, check func(t *testing.T, g generator, e example)) {
	for _, family := range generators {
		for kind, g := range family {
			t.Run(string(kind), func(t *testing.T) {
				for round := range rounds {
					rng := rand.New(rand.NewPCG(uint64(round), 7))
					attrs, in := g.make(rng, round)
					check(t, g, example{kind: kind, attrs: attrs, in: in, seed: rng.Uint64(),
						iteration: rng.Int64N(50)})
				}
			})
		}
	}
}

// forEachVariation calls check for an example with an output in place of each operand that it may overwrite, and without
// each set of its fresh outputs.
func forEachVariation(e example, check func(e example)) {
	for _, operand := range graph.MayOverwrite(e.kind) {
		v := e
		v.attrs.InPlace = 1 + operand
		check(v)
	}
	if outputs := freshOutputs(e); outputs > 1 {
		for set := range 1<<outputs - 1 {
			v := e
			for i := range outputs {
				if set>>i&1 == 1 {
					v.unwanted = append(v.unwanted, i)
				}
			}
			check(v)
		}
	}
}

// freshOutputs is the number of outputs that are not in place: all, or none.
func freshOutputs(e example) int {
	if e.place(0) >= 0 {
		return 0
	}
	var shapes []graph.Shape
	for _, o := range e.in {
		shapes = append(shapes, o.shape)
	}
	out, err := graph.Infer(e.kind, e.attrs, shapes)
	if err != nil {
		panic(err)
	}
	return len(out)
}

// Every kind computes what the CPU's kernels compute in float64, within the tolerance of its generator, and leaves its
// inputs as they are.
func TestAgainstCPU(t *testing.T) {
	h := startHost(t)
	forEachExample(t, func(t *testing.T, g generator, e example) {
		p := e.prepare(t)
		h.execute(t, p.memory, Launches(&p.call))
		want := e.compute()
		for i, got := range p.results() {
			what := fmt.Sprintf("%v: output %d", e, i)
			if outputType(e.kind, i) == graph.Uint8 {
				sameBits(t, what, graph.Uint8, got, bytesOf(want[i])[:len(got)])
			} else {
				near(t, what, got, want[i], g.tolerance)
			}
		}
		for i, a := range p.in {
			if !slices.Contains(p.out, a) && !slices.Equal(a.Bytes, e.in[i].bytes) {
				t.Errorf("%v: input %d was written", e, i)
			}
		}
	})
}

// An output has the same bits in place of an operand, and whatever other outputs are wanted.
func TestVariations(t *testing.T) {
	h := startHost(t)
	forEachExample(t, func(t *testing.T, _ generator, e example) {
		want := h.outputs(t, e)
		forEachVariation(e, func(v example) {
			for i, got := range h.outputs(t, v) {
				if got != nil {
					sameBits(t, fmt.Sprintf("%v: output %d", v, i), outputType(e.kind, i), got, want[i])
				}
			}
		})
	})
}
