package autodiff_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/data/weights"
	"tensile/device/cpu/gemm"
	"tensile/device/cpu/kernel"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/internal/long"
	"tensile/models"
)

// step is how far the weights go along a direction, each way, as a share of their size. The difference of the losses
// has six digits or more then, and curvature adds nothing to them. Relu and max_pool have kinks, and each that lies
// within a step changes the slope by the share of one element, about 1e-3 in the residual network. A step of 1e-7 meets
// some of its kinks along most directions; one of 1e-8 along few, which the median over several directions leaves out.
const step = 1e-8

// smoothStep is the step in networks without kinks, where the gradients of some parameters are small beside the loss.
const smoothStep = 1e-6

const tolerance = 1e-5

// TestDerivatives compares the gradients of whole networks with the slope of the loss along random directions.
func TestDerivatives(t *testing.T) {
	tests := []struct {
		name       string
		g          *graph.Graph
		directions int
		each       bool // every parameter alone too
		step       float64
	}{
		{"everything", everything(t, autodiff.SGD{}), 9, true, step},
		{"sequences", sequences(t), 9, true, smoothStep},
		{"bert", build(t, "bert:2,8,2", models.Config{Sequence: 4, Vocabulary: 9, Batch: 3}), 3, false, smoothStep},
		{"gpt", build(t, "gpt:2,8,2", models.Config{Sequence: 4, Vocabulary: 9, Batch: 3}), 3, false, smoothStep},
		{"gnmt", build(t, "gnmt:3,4", models.Config{Sequence: 3, Vocabulary: 9, Batch: 2}), 3, false, smoothStep},
		{"rhn", build(t, "rhn:2,4", models.Config{Sequence: 3, Vocabulary: 9, Batch: 2}), 3, false, smoothStep},
		{"tacotron", build(t, "tacotron:1,16", models.Config{Sequence: 2, Vocabulary: 9, Batch: 2}), 9, false, step},
		{"lenet", build(t, "lenet", models.Config{Image: 16, Batch: 3}), 9, true, step},
		{"mlp", build(t, "mlp", models.Config{Image: 5, Batch: 2}), 3, false, step},
		{"resnet", build(t, "resnet:1,1,1,1", models.Config{Image: 32, Batch: 2}), 3, false, step},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.g.Parameters() > 1e6 { // one goroutine, and 10 times the arithmetic of the other networks
				long.Only(t)
			}
			m := newInterpreter(t, test.g)
			m.step = test.step
			m.run(graph.Forward, graph.Backward)
			gradients := m.gradients()
			if got := len(gradients); got != count(test.g, graph.Parameter) {
				t.Errorf("%d of %d parameters have a gradient", got, count(test.g, graph.Parameter))
			}
			m.check(gradients, "all parameters", test.directions)
			if test.each {
				for _, d := range gradients {
					m.check([]gradient{d}, test.g.Storages[d.parameter].Name, 3)
				}
			}
		})
	}
}

func build(t *testing.T, name string, c models.Config) *graph.Graph {
	t.Helper()
	g, err := models.Build(name, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func count(g *graph.Graph, role graph.Role) (n int) {
	for _, s := range g.Storages {
		if s.Role == role {
			n++
		}
	}
	return n
}

// everything is a small network with an op of every kind that has a gradient, a parameter with several uses among them,
// a branch, and views.
func everything(t *testing.T, o autodiff.Optimizer) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("everything")
	normal := func(name string, shape ...int) graph.TensorID {
		return b.Persistent(name, graph.Parameter, shape, graph.Init{Kind: graph.InitNormal, Scale: 0.4})
	}
	one := func(name string, kind graph.Kind, a graph.Attrs, in ...graph.TensorID) graph.TensorID {
		return b.Op(name, kind, a, in...)[0]
	}
	conv := graph.Attrs{Kernel: [2]int{3, 3}, Stride: [2]int{1, 1}, Pad: [2]int{1, 1}}
	pool := graph.Attrs{Kernel: [2]int{3, 2}, Stride: [2]int{2, 2}, Pad: [2]int{1, 0}}
	x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{3, 2, 8, 6})
	labels := b.Input("labels", graph.Anything, graph.Float32, graph.Shape{3})
	y := one("conv1", graph.Conv2D, conv, x, normal("w1", 4, 2, 3, 3), normal("b1", 4))
	stats := b.Op("stats", graph.BatchNormStats, graph.Attrs{}, y)
	n := one("norm", graph.BatchNorm, graph.Attrs{Epsilon: 1e-3}, y, stats[0], stats[1], normal("gamma", 4),
		normal("beta", 4))
	n = one("drop", graph.Dropout, graph.Attrs{Rate: 0.3, Key: 5}, n)
	y = one("sum", graph.Add, graph.Attrs{}, y, one("relu", graph.ReLU, graph.Attrs{}, n)) // y has two readers
	y = one("chosen", graph.Add, graph.Attrs{}, y, one("keep", graph.ReLUYDX, graph.Attrs{}, n, n))
	y = one("gate", graph.Mul, graph.Attrs{}, y, one("conv2", graph.Conv2D, conv, y, normal("w2", 4, 4, 3, 3)))
	y = images(b, ranges(b, y))
	y = one("avg", graph.AvgPool, pool, one("max", graph.MaxPool, pool, y))
	shape := b.Shape(y)
	z := b.View("flat", y, 0, graph.Shape{3, shape.Elements() / 3})
	square := normal("w3", 8, 8)
	z = one("fc1", graph.Linear, graph.Attrs{}, z, normal("w0", 8, shape.Elements()/3), normal("b0", 8))
	z = one("fc2", graph.Linear, graph.Attrs{}, z, square)
	z = one("fc3", graph.Linear, graph.Attrs{}, z, square) // the same weights again
	loss := one("loss", graph.SoftmaxXent, graph.Attrs{}, z, labels)
	b.Output(loss)
	grads, err := autodiff.Backward(b, loss)
	if err == nil {
		err = autodiff.Optimize(b, grads, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Graph()
	if err == nil {
		err = g.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// images puts x[N,C,H,W] through the kinds of image networks, in groups of channels and one by one, padded and cropped.
func images(b *graph.Builder, x graph.TensorID) graph.TensorID {
	one := func(name string, kind graph.Kind, a graph.Attrs, in ...graph.TensorID) graph.TensorID {
		return b.Op(name, kind, a, in...)[0]
	}
	normal := func(name string, shape ...int) graph.TensorID {
		return b.Persistent(name, graph.Parameter, shape, graph.Init{Kind: graph.InitNormal, Scale: 0.4})
	}
	s := b.Shape(x)
	c := s[1]
	split := graph.Attrs{Kernel: [2]int{1, 3}, Stride: [2]int{1, 1}, Pad: [2]int{0, 1}, Groups: c}
	x = one("depthwise", graph.Conv2D, split, x, normal("wd", 2*c, 1, 1, 3))
	split.Groups = 2
	x = one("groups", graph.Conv2D, split, x, normal("wg", 4, c, 1, 3), normal("bg", 4))
	x = one("lrn", graph.LRN, graph.Attrs{Length: 3, Factor: 0.2, Exponent: 0.75, Epsilon: 1}, x)
	up := graph.Attrs{Kernel: [2]int{3, 2}, Stride: [2]int{2, 1}, Pad: [2]int{1, 0}, Groups: 2,
		Extent: [2]int{2 * s[2], s[3] + 1}}
	x = one("transposed", graph.Conv2DDX, up, x, normal("wt", 4, 3, 3, 2))
	x = one("less", graph.Slice, graph.Attrs{Dim: 1, Begin: 1, Length: 4}, x)
	x = one("fewer", graph.Pad, graph.Attrs{Pad: [2]int{-1, -1}, Extent: [2]int{s[2], s[3]}}, x)
	x = one("more", graph.SliceDX, graph.Attrs{Dim: 1, Begin: 1, Length: 4, Extent: [2]int{6}}, x)
	x = one("padded", graph.Pad, graph.Attrs{Pad: [2]int{1, -1}, Extent: [2]int{s[2] + 1, s[3]}}, x)
	return one("mean", graph.AvgPool, graph.Attrs{Kernel: [2]int{3, 3}, Stride: [2]int{1, 1}, Pad: [2]int{1, 1},
		Inside: true}, x)
}

// ranges cuts x[N,C,H,W] into overlapping parts along several dimensions, also as a view, and joins them again.
func ranges(b *graph.Builder, x graph.TensorID) graph.TensorID {
	s := b.Shape(x)
	cut := func(name string, t graph.TensorID, dim, begin, length int) graph.TensorID {
		return b.Op(name, graph.Slice, graph.Attrs{Dim: dim, Begin: begin, Length: length}, t)[0]
	}
	flat := b.View("rows", x, 0, graph.Shape{s[0], s.Elements() / s[0]})
	some := b.View("planes", cut("some", flat, 1, 3, 2*s[2]*s[3]), 0, graph.Shape{s[0], 2, s[2], s[3]})
	low := cut("low", x, 1, 0, s[1]-1)
	low = b.Op("low2", graph.Concat, graph.Attrs{Dim: 3}, cut("right", low, 3, 2, s[3]-2), cut("left", low, 3, 0, 2))[0]
	return b.Op("joined", graph.Concat, graph.Attrs{Dim: 1}, some, low, x)[0]
}

// interpreter runs ops of a graph in float64 and in graph order, each storage in memory of its own.
type interpreter struct {
	t         *testing.T
	g         *graph.Graph
	engine    *gemm.Engine
	random    *rand.Rand
	storages  [][]float64 // of int64, the memory that they are
	types     []graph.DType
	iteration int     // that of dropout's masks and of Adam's step
	step      float64 // of differences
}

func newInterpreter(t *testing.T, g *graph.Graph) *interpreter {
	t.Helper()
	engine := gemm.New(nil)
	m := &interpreter{t: t, g: g, engine: engine, step: step, random: rand.New(rand.NewPCG(1, 2)),
		storages: make([][]float64, len(g.Storages)), types: g.DTypes(), iteration: 3}
	for _, s := range g.Storages {
		m.storages[s.ID] = make([]float64, s.Bytes/m.types[s.ID].Bytes())
		m.fill(s)
	}
	for _, op := range g.Ops {
		switch op.Kind {
		case graph.SoftmaxXent:
			m.choose(op.Inputs[1], g.Tensors[op.Inputs[0]].Shape[1])
		case graph.Embedding:
			m.choose(op.Inputs[1], g.Tensors[op.Inputs[0]].Shape[0])
		case graph.SigmoidXent:
			m.choose(op.Inputs[1], 2)
		}
	}
	return m
}

// choose fills a tensor with numbers below count.
func (m *interpreter) choose(t graph.TensorID, count int) {
	to := m.at(t)
	for i := range to {
		n := m.random.IntN(count)
		if to[i] = float64(n); m.g.Tensors[t].DType == graph.Int64 {
			to[i] = math.Float64frombits(uint64(n))
		}
	}
}

// fill gives a storage its content before the first iteration. Parameters that begin at zero or one are moved away from
// there, where a gradient is hardly tested.
func (m *interpreter) fill(s graph.Storage) {
	to := m.storages[s.ID]
	if s.Role.Persistent() {
		single := make([]float32, len(to))
		weights.Initialise(s, 7, single)
		for i, v := range single {
			to[i] = float64(v)
		}
	}
	for i := range to {
		switch s.Role {
		case graph.Parameter:
			to[i] += 0.05 * m.random.NormFloat64()
		case graph.Input:
			to[i] = m.random.NormFloat64()
		case graph.Activation, graph.Gradient, graph.Output:
			to[i] = math.NaN() // read by nobody before it is made
		}
	}
}

func (m *interpreter) at(t graph.TensorID) []float64 {
	tensor := m.g.Tensors[t]
	from := int(tensor.Offset / tensor.DType.Bytes())
	return m.storages[tensor.Storage][from : from+tensor.Shape.Elements()]
}

// run executes the ops of some phases.
func (m *interpreter) run(phases ...graph.Phase) {
	for i := range m.g.Ops {
		op := &m.g.Ops[i]
		if slices.Contains(phases, op.Phase) {
			m.op(op)
		}
	}
}

// op executes an op.
func (m *interpreter) op(op *graph.Op) {
	c := &kernel.Call[float64]{Kind: op.Kind, Attrs: op.Attrs, InShapes: m.g.Shapes(op.Inputs),
		OutShapes: m.g.Shapes(op.Outputs),
		Seed:      11, Iteration: m.iteration, GEMM: m.engine}
	for _, t := range op.Inputs {
		c.In = append(c.In, m.at(t))
	}
	for _, t := range op.Outputs {
		c.Out = append(c.Out, m.at(t))
	}
	c.Scratch = make([]float64, kernel.Scratch(op.Kind, op.Attrs, c.InShapes, c.OutShapes))
	kernel.Run(c)
}

func (m *interpreter) loss() float64 {
	m.run(graph.Forward)
	return m.storages[m.g.OutputStorage()][0]
}

// gradient is a parameter's gradient as the optimizer reads it.
type gradient struct {
	parameter graph.StorageID
	elements  []float64
}

func (m *interpreter) gradients() []gradient {
	var all []gradient
	for _, op := range m.g.Ops {
		if op.Phase == graph.Optimize {
			all = append(all, gradient{m.g.Tensors[op.Inputs[0]].Storage, slices.Clone(m.at(op.Inputs[1]))})
		}
	}
	return all
}

// check moves some parameters along random directions, each in proportion to its size. The error is relative to the
// slope, or to what the slope of such a direction typically is where that is larger.
func (m *interpreter) check(gradients []gradient, what string, directions int) {
	m.t.Helper()
	errors := make([]float64, directions)
	for i := range errors {
		var slope, squares float64
		var before, direction [][]float64
		for _, d := range gradients {
			v, scale := make([]float64, len(d.elements)), meanSquare(m.storages[d.parameter])
			for j := range v {
				v[j] = scale * m.random.NormFloat64()
				slope += d.elements[j] * v[j]
				squares += d.elements[j] * v[j] * d.elements[j] * v[j]
			}
			before, direction = append(before, slices.Clone(m.storages[d.parameter])), append(direction, v)
		}
		at := func(h float64) float64 {
			for k, d := range gradients {
				for j, v := range direction[k] {
					m.storages[d.parameter][j] = before[k][j] + h*v
				}
			}
			return m.loss()
		}
		measured := (at(m.step) - at(-m.step)) / (2 * m.step)
		for k, d := range gradients {
			copy(m.storages[d.parameter], before[k])
		}
		errors[i] = math.Abs(measured-slope) / max(math.Abs(slope), math.Sqrt(squares))
	}
	slices.Sort(errors)
	if median := errors[directions/2]; !(median <= tolerance) {
		m.t.Errorf("%s: the slopes along %d directions differ by %.1e to %.1e of the gradient's, median %.1e", what,
			directions,
			errors[0], errors[directions-1], median)
	}
}

// meanSquare is the root of the mean square.
func meanSquare(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum / float64(len(x)))
}

// scalar is one step of an optimizer for one weight, as the papers write it. m and v are its moments.
var scalar = map[graph.Kind]func(a graph.Attrs, step int, w, g float64, m, v *float64) float64{
	graph.SGD: func(a graph.Attrs, _ int, w, g float64, _, _ *float64) float64 { return w - a.LearningRate*g },
	graph.Momentum: func(a graph.Attrs, _ int, w, g float64, m, _ *float64) float64 {
		*m = a.Momentum**m + g
		return w - a.LearningRate**m
	},
	graph.Adam: func(a graph.Attrs, step int, w, g float64, m, v *float64) float64 {
		*m = a.Beta1**m + (1-a.Beta1)*g
		*v = a.Beta2**v + (1-a.Beta2)*g*g
		mean := *m / (1 - math.Pow(a.Beta1, float64(step)))
		square := *v / (1 - math.Pow(a.Beta2, float64(step)))
		return w - a.LearningRate*mean/(math.Sqrt(square)+a.Epsilon)
	},
}

// TestTraining trains a network for a few iterations with each optimizer and follows every weight by hand.
func TestTraining(t *testing.T) {
	for _, o := range []autodiff.Optimizer{autodiff.SGD{}, autodiff.Momentum{Momentum: 0.7},
		autodiff.Adam{LearningRate: 0.02}} {
		t.Run(fmt.Sprintf("%T", o), func(t *testing.T) {
			m := newInterpreter(t, everything(t, o))
			first := m.loss()
			moments := make([][2][]float64, len(m.g.Storages))
			for m.iteration = range 5 {
				m.run(graph.Forward, graph.Backward)
				want := m.follow(moments)
				m.run(graph.Optimize)
				for s, elements := range want {
					for i := range elements {
						if got := m.storages[s][i]; math.Abs(got-elements[i]) > 1e-12*max(1, math.Abs(elements[i])) {
							t.Fatalf("iteration %d: %s[%d] is %v, want %v", m.iteration, m.g.Storages[s].Name, i, got,
								elements[i])
						}
					}
				}
			}
			m.iteration = 3 // the mask of the first loss
			if last := m.loss(); !(last < first) {
				t.Errorf("the loss went from %v to %v", first, last)
			}
		})
	}
}

// follow returns the parameters as they must be after the optimizer's ops.
func (m *interpreter) follow(moments [][2][]float64) map[graph.StorageID][]float64 {
	want := map[graph.StorageID][]float64{}
	for _, op := range m.g.Ops {
		if op.Phase != graph.Optimize {
			continue
		}
		s := m.g.Tensors[op.Inputs[0]].Storage
		w, dw, mv := slices.Clone(m.storages[s]), m.at(op.Inputs[1]), &moments[s]
		for i := range mv {
			if mv[i] == nil {
				mv[i] = make([]float64, len(w))
			}
		}
		for i := range w {
			w[i] = scalar[op.Kind](op.Attrs, m.iteration+1, w[i], dw[i], &mv[0][i], &mv[1][i])
		}
		want[s] = w
	}
	return want
}
