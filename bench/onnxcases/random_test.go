package onnxcases

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/controller/local"
	"tensile/device"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/internal/long"
	"tensile/models/onnx"
)

// Random networks take five steps of SGD as they do in float64, where gradients are differences of losses that an
// interpreter computes: what the loss is at each step agrees to 1e-5, and what the weights are at the end.
func TestRandomTraining(t *testing.T) {
	const steps, rate = 5, 0.05
	count := make(map[string]int)
	for seed := range long.Rounds(12, 100) {
		r := newNetwork(seed)
		for _, n := range r.m.Graph.Nodes {
			count[n.Op]++
		}
		g, contents, err := onnx.Job(r.m, "random", onnx.Training{Optimizer: autodiff.SGD{LearningRate: rate}})
		if err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, r)
		}
		learned := make(map[string][]float32)
		var losses []float64
		err = local.Execute(t.Context(), newCPU(t), local.Execution{Graph: g, Iterations: steps,
			Init: begin(contents),
			Input: func(_ int, s graph.StorageID, to device.Memory) {
				from := r.labels
				if g.Storages[s].Name != "labels" {
					from = r.x.v
				}
				for i, v := range from {
					if g.DTypes()[s] == graph.Int64 {
						to.Int64()[i] = int64(v)
					} else {
						to.Float32()[i] = float32(v)
					}
				}
			},
			Output: func(_ int, _ graph.StorageID, from []float32) { losses = append(losses, float64(from[0])) },
			Ended:  func(s graph.Storage, content []float32) { learned[s.Name] = slices.Clone(content) }})
		if err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, r)
		}
		diverges := false // where each rounding grows
		for step := range steps {
			want := r.loss(t)
			if diverges = want > 50; diverges {
				break
			}
			if !(math.Abs(losses[step]-want) <= 1e-5*math.Abs(want)) {
				t.Errorf("seed %d: loss %d is %v, want %v\n%v", seed, step, losses[step], want, r)
				break
			}
			r.step(t, rate)
		}
		for name, want := range r.trained {
			if diverges {
				break
			}
			if got := learned[name]; got != nil {
				near(t, fmt.Sprintf("seed %d: %s", seed, name), got, want.v, 1e-4)
			} else if !slices.Equal(want.v, r.first[name]) {
				t.Errorf("seed %d: %s is not trained\n%v", seed, name, r)
			}
		}
		if t.Failed() {
			break
		}
	}
	t.Log(count)
}

// network is a random model with an example of what it is fed, and its parameters in float64.
type network struct {
	*rand.Rand
	m       *onnx.Model
	x       *array
	labels  []float64
	shapes  map[string][]int
	trained map[string]*array
	first   map[string][]float64 // what they begin as
	fixed   map[string]*array    // constants
}

const rows, classes = 5, 3

func newNetwork(seed uint64) *network {
	r := &network{Rand: rand.New(rand.NewPCG(seed, 45)), m: &onnx.Model{Opsets: []onnx.Opset{{Version: 18}}},
		shapes: make(map[string][]int), trained: make(map[string]*array), first: make(map[string][]float64),
		fixed: make(map[string]*array)}
	var y string
	switch r.IntN(3) {
	case 0:
		y = r.images(r.input(onnx.Float32, rows, 2+2*r.IntN(2), 5+r.IntN(3), 5+r.IntN(3)))
	case 1:
		y = r.words(r.input(onnx.Int64, rows, 4))
	default:
		y = r.input(onnx.Float32, rows, 3+r.IntN(4))
	}
	for range 2 + r.IntN(5) {
		y = r.row(y)
	}
	y = r.linear(y, classes)
	r.m.Graph.Outputs = []onnx.Value{{Name: y}}
	for range rows {
		r.labels = append(r.labels, float64(r.IntN(classes)))
	}
	return r
}

// words are how many words there are.
const words = 6

func (r *network) input(kind onnx.Type, shape ...int) string {
	v := onnx.Value{Name: "x", Type: kind}
	for _, d := range shape {
		v.Dims = append(v.Dims, onnx.Dim{Extent: int64(d)})
	}
	r.m.Graph.Inputs, r.shapes["x"], r.x = []onnx.Value{v}, shape, newArray(shape...)
	for i := range r.x.v {
		r.x.v[i] = float64(float32(2 * r.NormFloat64()))
		if kind == onnx.Int64 {
			r.x.v[i] = float64(r.IntN(words))
		}
	}
	return "x"
}

// weight is a new parameter.
func (r *network) weight(scale, shift float64, shape ...int) string {
	a := newArray(shape...)
	for i := range a.v {
		a.v[i] = float64(float32(shift + scale*r.NormFloat64()))
	}
	name := r.initializer(onnx.Float32, a)
	r.trained[name], r.first[name] = a, slices.Clone(a.v)
	return name
}

func (r *network) initializer(kind onnx.Type, a *array) string {
	t := onnx.Tensor{Name: fmt.Sprintf("w%d", len(r.shapes)), Type: kind}
	for _, d := range a.shape {
		t.Dims = append(t.Dims, int64(d))
	}
	for _, v := range a.v {
		if kind == onnx.Int64 {
			t.Raw = binary.LittleEndian.AppendUint64(t.Raw, uint64(int64(v)))
		} else {
			t.Raw = binary.LittleEndian.AppendUint32(t.Raw, math.Float32bits(float32(v)))
		}
	}
	r.m.Graph.Initializers, r.shapes[t.Name] = append(r.m.Graph.Initializers, t), a.shape
	return t.Name
}

// whole is a known list of whole numbers, scalar a known number.
func (r *network) whole(v ...float64) string {
	a := &array{[]int{len(v)}, v}
	name := r.initializer(onnx.Int64, a)
	r.fixed[name] = a
	return name
}

func (r *network) scalar(v float64) string {
	a := &array{nil, []float64{float64(float32(v))}}
	name := r.initializer(onnx.Float32, a)
	r.fixed[name] = a
	return name
}

// node adds a node whose output has a shape.
func (r *network) node(op string, shape []int, in []string, attrs ...onnx.Attribute) string {
	out := fmt.Sprintf("%s%d", op, len(r.shapes))
	r.m.Graph.Nodes = append(r.m.Graph.Nodes, onnx.Node{Name: out, Op: op, Inputs: in, Outputs: []string{out},
		Attributes: attrs})
	r.shapes[out] = slices.Clone(shape)
	return out
}

func (r *network) linear(x string, width int) string {
	n := r.shapes[x][1]
	return r.node("Gemm", []int{rows, width}, []string{x, r.weight(1/math.Sqrt(float64(n)), 0, width, n),
		r.weight(0.3, 0, width)}, is("transB", 1))
}

// smooth are functions of each element.
var smooth = []string{"Relu", "Tanh", "Sigmoid", "Softplus", "Elu", "LeakyRelu", "HardSwish", "Sin", "Cos", "Abs",
	"Mish", "Exp", "Erf", "Softsign", "Neg"}

// stepped are those with steps, of what is fed alone: elsewhere a difference of losses may reach over one.
var stepped = []string{"Floor", "Ceil", "Round", "Sign"}

// row adds a few nodes to what has a row for each example.
func (r *network) row(x string) string {
	s := r.shapes[x]
	width := s[1]
	other := func() string { return r.linear(x, width) }
	switch r.IntN(13) {
	case 12:
		return r.gelu(x)
	case 0:
		return r.node(smooth[r.IntN(len(smooth))], s, []string{x})
	case 1:
		scale := 1 / math.Sqrt(float64(width))
		w := r.weight(scale, 0, width, 4)
		if r.IntN(2) == 0 {
			w = r.node("Transpose", []int{width, 4}, []string{r.weight(scale, 0, 4, width)}, is("perm", []int64{1, 0}))
		}
		y := r.node("MatMul", []int{rows, 4}, []string{x, w})
		return r.node("Add", []int{rows, 4}, []string{y, r.weight(0.3, 0, 4)})
	case 2:
		op := []string{"Add", "Sub", "Mul", "Max", "Min"}[r.IntN(5)]
		return r.node(op, s, []string{x, other()})
	case 3:
		return r.node("Concat", []int{rows, 2 * width}, []string{other(), x}, is("axis", 1))
	case 4:
		if width < 3 {
			return other()
		}
		return r.node("LayerNormalization", s, []string{x, r.weight(0.3, 1, width), r.weight(0.3, 0, width)},
			is("axis", -1), is("epsilon", 0.1))
	case 5:
		return r.node("Softmax", s, []string{x}, is("axis", -1))
	case 6:
		return r.norm(other())
	case 7: // x/(1 + x²)
		y := r.node("Add", s, []string{r.node("Mul", s, []string{x, x}), r.scalar(1)})
		return r.node("Div", s, []string{x, y})
	case 8:
		mean := r.node("ReduceMean", []int{rows, 1}, []string{x, r.whole(1)}, is("keepdims", 1))
		return r.node("Sub", s, []string{x, mean})
	case 9: // of what is fed, whole numbers and a comparison
		if len(r.shapes["x"]) != 2 || r.m.Graph.Inputs[0].Type != onnx.Float32 {
			return other()
		}
		fed := r.shapes["x"]
		y := r.linear(x, fed[1])
		steps := r.node(stepped[r.IntN(len(stepped))], fed, []string{"x"})
		if r.IntN(2) == 0 {
			whole := r.node("Cast", fed, []string{"x"}, is("to", int(onnx.Int64)))
			steps = r.node("Cast", fed, []string{whole}, is("to", int(onnx.Float32)))
		}
		more := r.node("Greater", fed, []string{"x", r.scalar(0.25)})
		return r.node("Where", fed, []string{more, y, r.node("Mul", fed, []string{y, steps})})
	case 10: // the weights of an earlier product again, where they fit
		for _, n := range r.m.Graph.Nodes {
			if n.Op == "Gemm" && slices.Equal(r.shapes[n.Inputs[1]], []int{width, width}) {
				return r.node("Gemm", s, []string{x, n.Inputs[1], r.weight(0.3, 0, width)}, is("transB", 1))
			}
		}
		return other()
	}
	return r.linear(x, 2+r.IntN(5))
}

func (r *network) norm(x string) string {
	c := r.shapes[x][1]
	mean, variance := newArray(c), newArray(c)
	for i := range c {
		variance.v[i] = 1
	}
	in := []string{x, r.weight(0.3, 1, c), r.weight(0.3, 0, c)}
	for _, a := range []*array{mean, variance} {
		name := r.initializer(onnx.Float32, a)
		r.fixed[name], in = a, append(in, name)
	}
	return r.node("BatchNormalization", r.shapes[x], in, is("epsilon", 0.1))
}

// images makes rows of images.
func (r *network) images(x string) string {
	for range 1 + r.IntN(4) {
		s := slices.Clone(r.shapes[x])
		small := min(s[2], s[3]) < 3
		switch k := r.IntN(5); {
		case k == 0 && !small:
			s[2], s[3] = s[2]-1, s[3]-1
			x = r.node([]string{"MaxPool", "AveragePool"}[r.IntN(2)], s, []string{x}, is("kernel_shape", []int64{2, 2}),
				is("strides", []int64{1, 1}))
		case k == 1:
			x = r.norm(x)
		case k == 2:
			x = r.node(smooth[r.IntN(4)], s, []string{x})
		case k == 3: // a shortcut
			w := r.weight(0.5, 0, s[1], s[1], 1, 1)
			x = r.node("Sum", s, []string{x, r.node("Conv", s, []string{x, w}, is("kernel_shape", []int64{1, 1}))})
		case !small:
			group, stride := 1+s[1]%2+r.IntN(2), 1+r.IntN(2)
			pad := r.IntN(2)
			w := r.weight(0.3, 0, 4, s[1]/group, 3, 3)
			s[1] = 4
			for d := 2; d < 4; d++ {
				s[d] = (s[d]+2*pad-3)/stride + 1
			}
			p, q := int64(pad), int64(stride)
			x = r.node("Conv", s, []string{x, w, r.weight(0.3, 0, 4)}, is("kernel_shape", []int64{3, 3}),
				is("pads", []int64{p, p, p, p}), is("strides", []int64{q, q}), is("group", group))
		}
	}
	s := r.shapes[x]
	x = r.node("GlobalAveragePool", []int{rows, s[1], 1, 1}, []string{x})
	return r.node("Reshape", []int{rows, s[1]}, []string{x, r.whole(rows, -1)})
}

// gelu is one as exporters write it, in one of several orders, or what is none for a number or an input.
func (r *network) gelu(x string) string {
	s := r.shapes[x]
	op := func(op, a, b string) string { return r.node(op, s, []string{a, b}) }
	of := x
	if r.IntN(4) == 0 {
		of = r.linear(x, s[1])
	}
	scaled := op("Div", of, r.scalar(math.Sqrt2))
	if r.IntN(2) == 0 {
		scaled = op("Mul", of, r.scalar(math.Sqrt(0.5)))
	}
	sum := op("Add", r.node("Erf", s, []string{scaled}), r.scalar([]float64{1, 1, 1, 1.5}[r.IntN(4)]))
	half := r.scalar([]float64{0.5, 0.5, 0.5, 0.75}[r.IntN(4)])
	switch r.IntN(4) {
	case 0:
		return op("Mul", op("Mul", x, sum), half)
	case 1:
		return op("Mul", op("Mul", x, half), sum)
	case 2:
		return op("Mul", x, op("Mul", sum, half))
	}
	return op("Add", op("Mul", op("Mul", x, sum), half), sum) // which something else reads
}

// words makes rows of ids of words.
func (r *network) words(x string) string {
	width := 4 + r.IntN(3)
	table, count := r.weight(1, 0, words, width), r.shapes[x][1]
	s := []int{rows, count, width}
	y := r.node("Gather", s, []string{table, x})
	if r.IntN(2) == 0 {
		square := []int{rows, count, count}
		w := func() string { return r.weight(0.5, 0, width, width) }
		q, k, v := r.node("MatMul", s, []string{y, w()}), r.node("MatMul", s, []string{y, w()}), r.node("MatMul", s,
			[]string{y, w()})
		k = r.node("Transpose", []int{rows, width, count}, []string{k}, is("perm", []int64{0, 2, 1}))
		scores := r.node("Softmax", square, []string{r.node("MatMul", square, []string{q, k})}, is("axis", -1))
		if r.IntN(2) == 0 {
			scores = r.node("Transpose", square, []string{scores}, is("perm", []int64{0, 2, 1}))
		}
		y = r.node("Add", s, []string{y, r.node("MatMul", s, []string{scores, v})})
	}
	if r.IntN(3) == 0 {
		turned := []int{rows, width, count}
		y = r.node("Transpose", turned, []string{y}, is("perm", []int64{0, 2, 1}))
		y = r.node("MatMul", turned, []string{y, r.weight(0.5, 0, count, count)})
		return r.node("ReduceMean", []int{rows, count}, []string{y, r.whole(1)}, is("keepdims", 0))
	}
	if r.IntN(2) == 0 {
		return r.node("ReduceMean", []int{rows, width}, []string{y, r.whole(1)}, is("keepdims", 0))
	}
	return r.node("Reshape", []int{rows, count * width}, []string{y, r.whole(rows, -1)})
}

// String lists the nodes.
func (r *network) String() (text string) {
	for _, n := range r.m.Graph.Nodes {
		text += fmt.Sprintf("%s %v %v\n", n.Outputs[0], r.shapes[n.Outputs[0]], n.Inputs)
	}
	return text
}

// loss is the mean cross-entropy of the scores, in float64.
func (r *network) loss(t *testing.T) float64 {
	t.Helper()
	values := map[string]*array{"x": r.x}
	for _, some := range []map[string]*array{r.trained, r.fixed} {
		for name, a := range some {
			values[name] = a
		}
	}
	for i := range r.m.Graph.Nodes {
		n := &r.m.Graph.Nodes[i]
		var in []*array
		for _, name := range n.Inputs {
			in = append(in, values[name])
		}
		y, err := trainingNode(n, in)
		if err != nil {
			t.Fatalf("%v: %v", n, err)
		}
		if want := r.shapes[n.Outputs[0]]; !slices.Equal(y.shape, want) {
			t.Fatalf("%v has shape %v, want %v", n, y.shape, want)
		}
		values[n.Outputs[0]] = y
	}
	scores, sum := values[r.m.Graph.Outputs[0].Name], 0.0
	for i, label := range r.labels {
		row, all := scores.v[i*classes:(i+1)*classes], 0.0
		for _, v := range row {
			all += math.Exp(v)
		}
		sum += math.Log(all) - row[int(label)]
	}
	return sum / rows
}

// step moves each parameter against the difference of the losses that it makes.
func (r *network) step(t *testing.T, rate float64) {
	t.Helper()
	const h = 1e-6
	slopes := make(map[*float64]float64)
	for _, a := range r.trained {
		for i := range a.v {
			was := a.v[i]
			a.v[i] = was + h
			up := r.loss(t)
			a.v[i] = was - h
			slopes[&a.v[i]] = (up - r.loss(t)) / (2 * h)
			a.v[i] = was
		}
	}
	for v, slope := range slopes {
		*v -= rate * slope
	}
}

// trainingNode is referenceNode for what random networks have beside, with the statistics of the batch.
func trainingNode(n *onnx.Node, in []*array) (*array, error) {
	x := in[0]
	softplus := func(x float64) float64 { return math.Log1p(math.Exp(x)) }
	if of, ok := map[string]func(x float64) float64{"Tanh": math.Tanh, "Sin": math.Sin, "Cos": math.Cos,
		"Abs": math.Abs, "Exp": math.Exp, "Erf": math.Erf, "Floor": math.Floor, "Ceil": math.Ceil,
		"Round": math.RoundToEven, "Softplus": softplus,
		"Sigmoid":   func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
		"Elu":       func(x float64) float64 { return max(x, 0) + math.Expm1(min(x, 0)) },
		"LeakyRelu": func(x float64) float64 { return max(x, 0) + 0.01*min(x, 0) },
		"HardSwish": func(x float64) float64 { return x * max(0, min(1, x/6+0.5)) },
		"Mish":      func(x float64) float64 { return x * math.Tanh(softplus(x)) },
		"Softsign":  func(x float64) float64 { return x / (1 + math.Abs(x)) },
		"Neg":       func(x float64) float64 { return -x },
		"Sign":      func(x float64) float64 { return math.Copysign(min(1, math.Ceil(math.Abs(x))), x) },
		"Cast": func(x float64) float64 {
			if setting(n, "to")[0] == int(onnx.Int64) {
				return math.Trunc(x)
			}
			return x
		}}[n.Op]; ok {
		y := newArray(x.shape...)
		for i, v := range x.v {
			y.v[i] = of(v)
		}
		return y, nil
	}
	if of, ok := map[string]func(a, b float64) float64{
		"Add": func(a, b float64) float64 { return a + b }, "Sub": func(a, b float64) float64 { return a - b },
		"Mul": func(a, b float64) float64 { return a * b }, "Div": func(a, b float64) float64 { return a / b },
		"Max": func(a, b float64) float64 { return max(a, b) }, "Min": func(a, b float64) float64 { return min(a, b) },
		"Greater": func(a, b float64) float64 { return max(0, min(1, math.Ceil(a-b))) },
	}[n.Op]; ok { // the second is a number, a row, a column, or of the shape of the first
		y, b := newArray(x.shape...), in[1]
		for i, v := range x.v {
			at := i % len(b.v)
			if len(b.shape) == 2 && b.shape[1] == 1 && b.shape[0] > 1 {
				at = i / x.shape[1]
			}
			y.v[i] = of(v, b.v[at])
		}
		return y, nil
	}
	width := x.shape[len(x.shape)-1]
	y := newArray(x.shape...)
	switch n.Op {
	case "Where":
		for i, v := range x.v {
			if y.v[i] = in[2].v[i]; v != 0 {
				y.v[i] = in[1].v[i]
			}
		}
	case "MatMul": // of two, or of three with as many matrices or one
		b, rows := in[1], x.shape[len(x.shape)-2]
		columns := b.shape[len(b.shape)-1]
		y = newArray(append(slices.Clone(x.shape[:len(x.shape)-1]), columns)...)
		for i := range y.v {
			matrix, row, column := i/columns/rows, i/columns, i%columns
			if len(b.shape) == 2 {
				matrix = 0
			}
			for k := range width {
				y.v[i] += x.v[row*width+k] * b.v[(matrix*width+k)*columns+column]
			}
		}
	case "Softmax":
		for i, v := range x.v {
			sum := 0.0
			for _, w := range x.v[i/width*width : (i/width+1)*width] {
				sum += math.Exp(w)
			}
			y.v[i] = math.Exp(v) / sum
		}
	case "LayerNormalization":
		for i, v := range x.v {
			mean, variance := moments(x.v[i/width*width : (i/width+1)*width])
			y.v[i] = (v-mean)/math.Sqrt(variance+number(n, "epsilon", 0))*in[1].v[i%width] + in[2].v[i%width]
		}
	case "BatchNormalization":
		inner := elements(x.shape[2:])
		for c := range x.shape[1] {
			var all []float64
			for i, v := range x.v {
				if i/inner%x.shape[1] == c {
					all = append(all, v)
				}
			}
			mean, variance := moments(all)
			for i, v := range x.v {
				if i/inner%x.shape[1] == c {
					y.v[i] = (v-mean)/math.Sqrt(variance+number(n, "epsilon", 0))*in[1].v[c] + in[2].v[c]
				}
			}
		}
	case "ReduceMean": // over dimension 1
		inner := elements(x.shape[2:])
		y = newArray(append([]int{x.shape[0]}, x.shape[2:]...)...)
		for i, v := range x.v {
			y.v[i/(inner*x.shape[1])*inner+i%inner] += v / float64(x.shape[1])
		}
		if setting(n, "keepdims")[0] == 1 {
			y.shape = slices.Insert(y.shape, 1, 1)
		}
	case "Gather":
		width := elements(x.shape[1:])
		y = &array{shape: slices.Concat(in[1].shape, x.shape[1:])}
		for _, id := range in[1].v {
			y.v = append(y.v, x.v[int(id)*width:(int(id)+1)*width]...)
		}
	default:
		return referenceNode(n, in)
	}
	return y, nil
}

func moments(v []float64) (mean, variance float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		variance += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, variance
}
