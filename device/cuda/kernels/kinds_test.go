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
	// of the outputs against the float64 kernels, relative to the larger of 1 and the largest element; 0: elements are
	// moved or compared, and nothing more
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
						iteration: rng.Int64N(1 << rng.IntN(21))})
				}
			})
		}
	}
}

// forEachVariation calls check for an example with an output in place of each operand that it may overwrite, and
// without each set of its fresh outputs.
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
// inputs as they are. The text, executed by the interpreter, computes what gcc makes of the sources, to the bit.
func TestKinds(t *testing.T) {
	var h *host
	if hasHost() {
		h = startHost(t)
	}
	forEachExample(t, func(t *testing.T, g generator, e example) {
		p := e.interpreted(t)
		compareToCPU(t, g, p)
		for i, a := range p.in {
			if !slices.Contains(p.out, a) && !slices.Equal(a.Bytes, e.in[i].bytes) {
				t.Errorf("%v: input %d was written", e, i)
			}
		}
		if h == nil {
			return
		}
		for i, want := range h.outputs(t, e) {
			sameBits(t, fmt.Sprintf("%v: output %d, as gcc has it", e, i), outputType(e.kind, i), p.results()[i], want)
		}
	})
	if h == nil {
		t.Run("gcc", func(t *testing.T) { startHost(t) }) // says what was left out
	}
}

func compareToCPU(t *testing.T, g generator, p *prepared) {
	t.Helper()
	want := p.compute()
	for i, got := range p.results() {
		what := fmt.Sprintf("%v: output %d", p.example, i)
		if outputType(p.kind, i) == graph.Uint8 {
			sameBits(t, what, graph.Uint8, got, bytesOf(want[i])[:len(got)])
		} else {
			near(t, what, got, want[i], g.tolerance)
		}
	}
}

// An output has the same bits in place of an operand, and whatever other outputs are wanted.
func TestVariations(t *testing.T) {
	forEachExample(t, func(t *testing.T, _ generator, e example) {
		var want [][]byte
		forEachVariation(e, func(v example) {
			if want == nil {
				want = e.interpreted(t).results()
			}
			for i, got := range v.interpreted(t).results() {
				if got != nil {
					sameBits(t, fmt.Sprintf("%v: output %d", v, i), outputType(e.kind, i), got, want[i])
				}
			}
		})
	})
}
