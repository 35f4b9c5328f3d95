package kernels

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
)

// torchCase is an op with what the kernels made of it, for testdata/torch_kinds.py.
type torchCase struct {
	Kind  graph.Kind    `json:"kind"`
	Attrs graph.Attrs   `json:"attrs"`
	In    []torchTensor `json:"in"`
	Out   []torchTensor `json:"out"`   // the first of torch's
	DOut  []torchTensor `json:"dout"`  // gradients of the outputs, of the first ones
	Grads []torchTensor `json:"grads"` // of the inputs; no shape: it is not compared
	Steps []torchTensor `json:"steps"` // of an optimizer: the gradients of one iteration after the other
}

type torchTensor struct {
	Shape graph.Shape `json:"shape"`
	Data  []float64   `json:"data"`
}

func (o operand) torch(dtype graph.DType) torchTensor {
	x := torchTensor{o.shape, []float64{}}
	if dtype == graph.Int64 {
		for i := range o.shape.Elements() {
			x.Data = append(x.Data, float64(int64(wordOf(o.bytes[8*i:]))))
		}
		return x
	}
	for _, v := range floatsOf(o.bytes) {
		x.Data = append(x.Data, float64(v))
	}
	return x
}

func wordOf(b []byte) (word uint64) {
	for i := range 8 {
		word |= uint64(b[i]) << (8 * i)
	}
	return word
}

// run executes an op by the text and returns its outputs.
func (e example) run(t *testing.T) (out []operand) {
	t.Helper()
	p := e.interpreted(t)
	for i, b := range p.results() {
		out = append(out, operand{p.call.OutShapes[i], b})
	}
	return out
}

// A torchKind completes a case with what the kernels make of x; dy returns a random gradient of an output.
type torchKind func(t *testing.T, c *torchCase, x example, dy func(y operand) operand)

// doer executes an op.
type doer = func(graph.Kind, graph.Attrs, ...operand) []operand

// withGradients is a kind whose outputs, the first so many, have gradients by other ops. grads returns those of the
// inputs, the zero operand where there is none.
func withGradients(outputs int, grads func(do doer, a graph.Attrs, in, out, dy []operand) []operand) torchKind {
	return func(t *testing.T, c *torchCase, x example, dy func(operand) operand) {
		out := x.run(t)
		var douts []operand
		for _, y := range out[:outputs] {
			c.Out = append(c.Out, y.torch(graph.Float32))
			douts = append(douts, dy(y))
			c.DOut = append(c.DOut, douts[len(douts)-1].torch(graph.Float32))
		}
		do := func(kind graph.Kind, a graph.Attrs, in ...operand) []operand {
			return example{kind: kind, attrs: a, in: in}.run(t)
		}
		for i, g := range grads(do, x.attrs, x.in, out, douts) {
			c.Grads = append(c.Grads, torchTensor{Data: []float64{}})
			if g.shape != nil {
				c.Grads[i] = g.torch(graph.Float32)
			}
		}
	}
}

// extended are attributes with the extent of images.
func extended(a graph.Attrs, x operand) graph.Attrs {
	a.Extent = [2]int{x.shape[2], x.shape[3]}
	return a
}

var torchKinds = map[graph.Kind]torchKind{
	graph.Conv2D: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		grads := []operand{do(graph.Conv2DDX, extended(a, in[0]), dy[0], in[1])[0],
			do(graph.Conv2DDW, a, in[0], dy[0])[0]}
		if len(in) == 3 {
			grads = append(grads, do(graph.BiasDB, graph.Attrs{}, dy[0])[0])
		}
		return grads
	}),
	graph.Linear: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		grads := []operand{do(graph.LinearDX, a, dy[0], in[1])[0], do(graph.LinearDW, a, in[0], dy[0])[0]}
		if len(in) == 3 {
			grads = append(grads, do(graph.BiasDB, graph.Attrs{}, dy[0])[0])
		}
		return grads
	}),
	graph.MatMul: withGradients(1, func(doer, graph.Attrs, []operand, []operand, []operand) []operand { return nil }),
	graph.MaxPool: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.MaxPoolDX, a, in[0], out[0], dy[0])
	}),
	graph.MaxPoolIndices: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.MaxPoolIndicesDX, extended(a, in[0]), out[1], dy[0])
	}),
	graph.AvgPool: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.AvgPoolDX, a, in[0], out[0], dy[0])
	}),
	graph.BatchNorm: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		d := do(graph.BatchNormGrad, a, in[0], in[1], in[2], in[3], dy[0])
		return []operand{d[0], {}, {}, d[1], d[2]}
	}),
	graph.LayerNorm: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.LayerNormGrad, graph.Attrs{}, in[0], out[1], out[2], in[1], dy[0])
	}),
	graph.LRN: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.LRNDX, a, in[0], out[0], dy[0])
	}),
	graph.GELU: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.GELUDX, a, in[0], dy[0])
	}),
	graph.Sigmoid: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.SigmoidDX, a, out[0], dy[0])
	}),
	graph.Tanh: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.TanhDX, a, out[0], dy[0])
	}),
	graph.Blend: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.BlendGrad, a, in[0], in[1], in[2], dy[0])
	}),
	graph.Softmax: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.SoftmaxDX, graph.Attrs{Factor: a.Factor}, out[0], dy[0])
	}),
	graph.AdditiveScores: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.AdditiveScoresGrad, a, in[0], in[1], in[2], dy[0])
	}),
	graph.LSTM: withGradients(2, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		d := do(graph.LSTMGrad, a, append(in[:len(in):len(in)], dy...)...)
		if len(in) == 1 {
			return d[:1]
		}
		return []operand{d[0], d[0], d[1]}
	}),
	graph.Embedding: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.EmbeddingDW, graph.Attrs{Extent: [2]int{in[0].shape[0]}}, in[1], dy[0])
	}),
	graph.SoftmaxXent: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.SoftmaxXentDX, a, out[1], in[1])
	}),
	graph.MeanSquare: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.MeanSquareDX, a, in[0], in[1])
	}),
	graph.SigmoidXent: withGradients(1, func(do doer, a graph.Attrs, in, out, dy []operand) []operand {
		return do(graph.SigmoidXentDX, a, in[0], in[1])
	}),
	graph.Momentum: optimized,
	graph.Adam:     optimized,
}

// optimized updates weights for some iterations, beginning without moments.
func optimized(t *testing.T, c *torchCase, x example, dy func(operand) operand) {
	state := append([]operand{x.in[0]}, x.in[2:]...)
	for _, moment := range state[1:] {
		clear(moment.bytes)
	}
	for iteration := range 7 {
		dw := dy(x.in[0])
		c.Steps = append(c.Steps, dw.torch(graph.Float32))
		e := example{kind: x.kind, attrs: x.attrs, in: append([]operand{state[0], dw}, state[1:]...),
			iteration: int64(iteration)}
		state = e.run(t)
	}
	c.Out = append(c.Out, state[0].torch(graph.Float32))
}

// isLoss reports whether a kind's output is a loss, whose gradient is 1.
func isLoss(kind graph.Kind) bool {
	return kind == graph.SoftmaxXent || kind == graph.MeanSquare || kind == graph.SigmoidXent
}

// adapted is an example as torch has it: pads of average pools up to half of the window, no NaN, a row that counts, and
// the statistics of a normalisation are those of its input.
func adapted(t *testing.T, e example) (example, bool) {
	for i, o := range e.in {
		if inputTypes[e.kind][i] == graph.Float32 {
			values := floatsOf(o.bytes)
			j := -1
			e.in[i] = floatOperand(o.shape, func() float64 {
				j++
				if values[j] != values[j] {
					return 0
				}
				return float64(values[j])
			})
		}
	}
	switch e.kind {
	case graph.AvgPool:
		return e, 2*e.attrs.Pad[0] <= e.attrs.Kernel[0] && 2*e.attrs.Pad[1] <= e.attrs.Kernel[1]
	case graph.BatchNorm:
		x := e.in[0]
		copy(e.in[1:3], example{kind: graph.BatchNormStats, in: []operand{x}}.run(t))
		return e, x.shape[0]*x.shape[2]*x.shape[3] > 2
	case graph.SoftmaxXent:
		clear(e.in[1].bytes[:4])
	}
	return e, true
}

// TestTorch compares the text's results, and those of its gradients and optimizers, with PyTorch's in float64.
func TestTorch(t *testing.T) {
	python := needs.Torch(t)
	step := long.Or(5, 1)
	var cases []torchCase
	for _, family := range generators {
		for kind, g := range family {
			made := torchKinds[kind]
			if made == nil {
				continue
			}
			for round := 1; round < rounds; round += step {
				rng := rand.New(rand.NewPCG(uint64(round), 11))
				attrs, in := g.make(rng, round)
				x, ok := adapted(t, example{kind: kind, attrs: attrs, in: in})
				if !ok {
					continue
				}
				c := torchCase{Kind: kind, Attrs: attrs}
				for i, o := range x.in {
					c.In = append(c.In, o.torch(inputTypes[kind][i]))
				}
				made(t, &c, x, func(y operand) operand {
					if isLoss(kind) {
						return floatOperand(y.shape, func() float64 { return 1 })
					}
					return normalOperand(rng, y.shape...)
				})
				cases = append(cases, c)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "cases.json")
	text, err := json.Marshal(cases)
	if err == nil {
		err = os.WriteFile(path, text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(python, filepath.Join("testdata", "torch_kinds.py"), path)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(cases) {
		t.Fatalf("%d lines for %d cases", len(lines), len(cases))
	}
	worst := make(map[graph.Kind]float64)
	for i, line := range lines {
		var what string
		var far float64
		if _, err := fmt.Sscan(line, &far, &what); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		c := cases[i]
		worst[c.Kind] = max(worst[c.Kind], far)
		if !(far <= tolerable) {
			var shapes []graph.Shape
			for _, x := range c.In {
				shapes = append(shapes, x.Shape)
			}
			t.Errorf("%s %+v of %v: %s is %.2g away from torch's", c.Kind, c.Attrs, shapes, what, far)
		}
	}
	for kind := range torchKinds {
		if worst[kind] == 0 || math.IsNaN(worst[kind]) {
			t.Errorf("%s: nothing was compared", kind)
		}
	}
	t.Logf("%d cases, farthest: %v", len(cases), worst)
}

// tolerable is how far a result may be from torch's in float64, relative to the larger of 1 and the largest element.
const tolerable = 5e-6
