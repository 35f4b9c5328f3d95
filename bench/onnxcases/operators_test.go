package onnxcases

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"tensile/device"
	"tensile/models/onnx"
)

// one is a model of a single node, whose inputs are fed unless they are known.
type one struct {
	op      string
	version int64
	inputs  []numbers
	attrs   []onnx.Attribute
	outputs int
}

// numbers is an input or a result.
type numbers struct {
	dims  []int64
	v     []float64
	whole bool // whole numbers, known before the training
	known bool // floats that are
}

func is(name string, v any) onnx.Attribute {
	a := onnx.Attribute{Name: name}
	switch v := v.(type) {
	case int:
		a.Type, a.Int = onnx.AttributeInt, int64(v)
	case float64:
		a.Type, a.Float = onnx.AttributeFloat, float32(v)
	case string:
		a.Type, a.String = onnx.AttributeString, v
	case []string:
		a.Type, a.Strings = onnx.AttributeStrings, v
	case []int64:
		a.Type, a.Ints = onnx.AttributeInts, v
	default:
		panic(fmt.Sprintf("attribute %s is a %T", name, v))
	}
	return a
}

func ints(v ...int64) numbers {
	a := numbers{dims: []int64{int64(len(v))}, whole: true}
	for _, x := range v {
		a.v = append(a.v, float64(x))
	}
	return a
}

// counting are n numbers of both signs that do not repeat soon.
func counting(dims ...int64) numbers {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	a := numbers{dims: dims}
	for i := range n {
		a.v = append(a.v, float64((i*37)%23-11)/8)
	}
	return a
}

func (a numbers) copied() numbers { return numbers{dims: a.dims, v: slices.Clone(a.v)} }

func of(dims []int64, v ...float64) numbers { return numbers{dims: dims, v: v} }

func (a numbers) tensor(name string) *onnx.Tensor {
	t := &onnx.Tensor{Name: name, Type: onnx.Float32, Dims: a.dims}
	for _, x := range a.v {
		if a.whole {
			t.Type, t.Raw = onnx.Int64, binary.LittleEndian.AppendUint64(t.Raw, uint64(int64(x)))
		} else {
			t.Raw = binary.LittleEndian.AppendUint32(t.Raw, math.Float32bits(float32(x)))
		}
	}
	return t
}

func (o one) model() (*onnx.Model, map[string]*onnx.Tensor) {
	m := &onnx.Model{Opsets: []onnx.Opset{{Version: o.version}}}
	g := &m.Graph
	n := onnx.Node{Op: o.op, Attributes: o.attrs}
	inputs := make(map[string]*onnx.Tensor)
	for i, in := range o.inputs {
		name := fmt.Sprintf("in%d", i)
		if in.dims == nil {
			n.Inputs = append(n.Inputs, "")
			continue
		}
		n.Inputs = append(n.Inputs, name)
		if x := in.tensor(name); in.whole || in.known {
			g.Initializers = append(g.Initializers, *x)
		} else {
			v := onnx.Value{Name: name, Type: x.Type, Dims: []onnx.Dim{}}
			for _, d := range in.dims {
				v.Dims = append(v.Dims, onnx.Dim{Extent: d})
			}
			g.Inputs, inputs[name] = append(g.Inputs, v), x
		}
	}
	for i := range max(1, o.outputs) {
		name := fmt.Sprintf("out%d", i)
		n.Outputs = append(n.Outputs, name)
		g.Outputs = append(g.Outputs, onnx.Value{Name: name})
	}
	g.Nodes = []onnx.Node{n}
	return m, inputs
}

// check compares all outputs of a node with what they are to be, to 2e-6 of the largest.
func (o one) check(t *testing.T, d device.Device, want ...numbers) {
	t.Helper()
	o.outputs = len(want)
	m, inputs := o.model()
	net, err := onnx.Import(m, "one", onnx.Options{Known: inputs})
	if err != nil {
		t.Errorf("%s %v: %v", o.op, o.attrs, err)
		return
	}
	got, err := evaluate(t.Context(), d, net, inputs)
	if err != nil {
		t.Errorf("%s %v: %v", o.op, o.attrs, err)
		return
	}
	for i, w := range want {
		var dims []int64
		for _, d := range net.Outputs[i].Shape {
			dims = append(dims, int64(d))
		}
		if !slices.Equal(dims, w.dims) || len(got[i]) != len(w.v) {
			t.Errorf("%s %v: output %d has shape %v, want %v", o.op, o.attrs, i, dims, w.dims)
			continue
		}
		largest := 0.0
		for _, v := range w.v {
			largest = max(largest, math.Abs(v))
		}
		for k, v := range w.v {
			if !(math.Abs(float64(got[i][k])-v) <= 2e-6*largest) {
				t.Errorf("%s %v: output %d has %v at %d, want %v", o.op, o.attrs, i, got[i][k], k, v)
				break
			}
		}
	}
}

// Functions of each element are what the specification says, far from zero too.
func TestFunctions(t *testing.T) {
	d := newCPU(t)
	x := of([]int64{9}, -90, -3, -1, -0.25, 0, 0.25, 1, 3, 90)
	elu := func(x, alpha, scale, width float64) float64 {
		if x >= 0 {
			return scale * x
		}
		return scale * alpha * math.Expm1(x/width)
	}
	softplus := func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
	for _, c := range []struct {
		op    string
		attrs []onnx.Attribute
		want  func(x float64) float64
	}{
		{"Elu", nil, func(x float64) float64 { return elu(x, 1, 1, 1) }},
		{"Elu", []onnx.Attribute{is("alpha", 0.5)}, func(x float64) float64 { return elu(x, 0.5, 1, 1) }},
		{"Selu", nil, func(x float64) float64 { return elu(x, 1.6732632, 1.050701, 1) }},
		{"Selu", []onnx.Attribute{is("alpha", 2.0), is("gamma", 3.0)}, func(x float64) float64 {
			return elu(x, 2, 3,
				1)
		}},
		{"Celu", []onnx.Attribute{is("alpha", 2.0)}, func(x float64) float64 { return elu(x, 2, 1, 2) }},
		{"LeakyRelu", nil, func(x float64) float64 { return max(x, 0.01*x) }},
		{"LeakyRelu", []onnx.Attribute{is("alpha", 0.3)}, func(x float64) float64 { return max(x, 0.3*x) }},
		{"Softplus", nil, softplus},
		{"Softsign", nil, func(x float64) float64 { return x / (1 + math.Abs(x)) }},
		{"Mish", nil, func(x float64) float64 { return x * math.Tanh(softplus(x)) }},
		{"Swish", nil, func(x float64) float64 { return x / (1 + math.Exp(-x)) }},
		{"Swish", []onnx.Attribute{is("alpha", 0.5)}, func(x float64) float64 { return x / (1 + math.Exp(-x/2)) }},
		{"Abs", nil, math.Abs},
		{"HardSigmoid", nil, func(x float64) float64 { return max(0, min(1, 0.2*x+0.5)) }},
		{"HardSigmoid", []onnx.Attribute{is("alpha", 0.1), is("beta", 0.7)}, func(x float64) float64 {
			return max(0, min(1, 0.1*x+0.7))
		}},
		{"HardSwish", nil, func(x float64) float64 { return x * max(0, min(1, x/6+0.5)) }},
		{"Gelu", nil, func(x float64) float64 { return x * 0.5 * math.Erfc(-x/math.Sqrt2) }},
		{"Sin", nil, math.Sin}, {"Cos", nil, math.Cos}, {"Floor", nil, math.Floor}, {"Ceil", nil, math.Ceil},
		{"Round", nil, math.RoundToEven}, {"Cast", []onnx.Attribute{is("to", int(onnx.Int64))}, math.Trunc},
		{"Sign", nil, func(x float64) float64 { return math.Copysign(min(1, math.Ceil(math.Abs(x))), x) }},
	} {
		x := of(x.dims, x.v...)
		if slices.Contains([]string{"Sin", "Cos", "Floor", "Ceil", "Round", "Cast"}, c.op) {
			x = of([]int64{17}, append(x.v, 0.5, -0.5, 1.5, 2.75, -2.75, math.Pi/2, 12345.5, -9999)...)
		}
		// Halves end with 1 << 23, and not all whole numbers are floats from 1 << 24 on.
		if slices.Contains([]string{"Floor", "Ceil", "Round", "Cast"}, c.op) {
			x.v = append(x.v, 1<<22+0.5, 1<<23-0.5, -(1<<23 + 1), 1<<24-1, 1<<40)
			x.dims = []int64{int64(len(x.v))}
		}
		want := of(x.dims)
		for i, v := range x.v {
			x.v[i] = float64(float32(v))
			want.v = append(want.v, c.want(x.v[i]))
		}
		one{op: c.op, version: 22, inputs: []numbers{x}, attrs: c.attrs}.check(t, d, want)
	}
	one{op: "PRelu", version: 16, inputs: []numbers{of([]int64{1, 2, 2}, -1, 2, -3, 4), of([]int64{2, 1}, 0.5, 0.1)}}.
		check(t, d, of([]int64{1, 2, 2}, -0.5, 2, -0.3, 4))
	a, b := of([]int64{2, 2}, 1, 5, -3, 2), of([]int64{2}, 2, -1e9)
	one{op: "Max", version: 13, inputs: []numbers{a, b}}.check(t, d, of([]int64{2, 2}, 2, 5, 2, 2))
	one{op: "Min", version: 13, inputs: []numbers{a, b, of([]int64{}, 0)}}.check(t, d, of([]int64{2, 2}, 0, -1e9, -3,
		-1e9))
}

// Sums and extremes over dimensions.
func TestReductions(t *testing.T) {
	d := newCPU(t)
	x := of([]int64{2, 3, 2}, 1, 20, -3, 4, 5, 60, 7, -8, 9, 1, -11, 12)
	over := func(op string, version int64, axes []int64, keep int, want numbers) {
		o := one{op: op, version: version, inputs: []numbers{x}, attrs: []onnx.Attribute{is("keepdims", keep)}}
		if version >= 18 {
			o.inputs = append(o.inputs, ints(axes...))
		} else {
			o.attrs = append(o.attrs, is("axes", axes))
		}
		o.check(t, d, want)
	}
	over("ReduceMax", 13, []int64{1}, 1, of([]int64{2, 1, 2}, 5, 60, 9, 12))
	over("ReduceMax", 18, []int64{0, -1}, 0, of([]int64{3}, 20, 9, 60))
	over("ReduceMin", 13, []int64{1, 2}, 0, of([]int64{2}, -3, -11))
	over("ReduceL1", 18, []int64{0}, 0, of([]int64{3, 2}, 8, 28, 12, 5, 16, 72))
	over("ReduceL2", 18, []int64{2}, 0, of([]int64{2, 3}, math.Sqrt(401), 5, math.Sqrt(3625), math.Sqrt(113),
		math.Sqrt(82), math.Sqrt(265)))
	over("ReduceSumSquare", 18, []int64{2}, 0, of([]int64{2, 3}, 401, 25, 3625, 113, 82, 265))
	over("ReduceMean", 18, []int64{1}, 0, of([]int64{2, 2}, 1, 28, 5.0/3, 5.0/3))
	over("ReduceLogSum", 18, []int64{0, 1, 2}, 0, of(nil, math.Log(97)))
	over("ReduceLogSumExp", 18, []int64{2}, 0, of([]int64{2, 3}, 20, 4+math.Log1p(math.Exp(-7)), 60, 7,
		9+math.Log1p(math.Exp(-8)), 12))
	all := one{op: "ReduceSum", version: 13, inputs: []numbers{x}, attrs: []onnx.Attribute{is("noop_with_empty_axes",
		1)}}
	all.check(t, d, x)
	for _, c := range []struct {
		reverse, exclusive int
		want               []float64
	}{{0, 0, []float64{1, 3, 6}}, {0, 1, []float64{0, 1, 3}}, {1, 0, []float64{6, 5, 3}}, {1, 1, []float64{5, 3, 0}}} {
		one{op: "CumSum", version: 14, inputs: []numbers{of([]int64{1, 3}, 1, 2, 3), {dims: []int64{}, v: []float64{-1},
			whole: true}}, attrs: []onnx.Attribute{is("reverse", c.reverse), is("exclusive", c.exclusive)}}.
			check(t, d, of([]int64{1, 3}, c.want...))
	}
}

// Images of another size, as the specification's examples have them.
func TestResizes(t *testing.T) {
	d := newCPU(t)
	two := of([]int64{1, 1, 2, 2}, 1, 2, 3, 4)
	wide := of([]int64{1, 1, 2, 4}, 1, 2, 3, 4, 5, 6, 7, 8)
	four := counting(1, 1, 4, 4)
	for i := range four.v {
		four.v[i] = float64(i + 1)
	}
	scales := func(v ...float64) numbers { return numbers{dims: []int64{int64(len(v))}, v: v, known: true} }
	type attrs = []onnx.Attribute
	for _, c := range []struct {
		x     numbers
		by    numbers
		attrs attrs
		want  numbers
	}{
		{two, scales(1, 1, 2, 3), nil, of([]int64{1, 1, 4, 6}, 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4,
			3, 3,
			3, 4, 4, 4)},
		{wide, scales(1, 1, 0.6, 0.6), nil, of([]int64{1, 1, 1, 2}, 1, 3)},
		{wide, scales(1, 1, 0.6, 0.6), attrs{is("mode", "linear")}, of([]int64{1, 1, 1, 2}, 2.6666665, 4.3333331)},
		{wide, scales(1, 1, 0.6, 0.6), attrs{is("mode", "linear"), is("coordinate_transformation_mode",
			"align_corners")},
			of([]int64{1, 1, 1, 2}, 1, 4)},
		{two, scales(1, 1, 2, 2), attrs{is("mode", "linear")}, of([]int64{1, 1, 4, 4}, 1, 1.25, 1.75, 2, 1.5, 1.75,
			2.25,
			2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4)},
		{two, scales(1, 1, 2, 2), attrs{is("mode", "linear"), is("coordinate_transformation_mode", "align_corners")},
			of([]int64{1, 1, 4, 4}, 1, 4.0/3, 5.0/3, 2, 5.0/3, 2, 7.0/3, 8.0/3, 7.0/3, 8.0/3, 3, 10.0/3, 3, 10.0/3,
				11.0/3,
				4)},
		{four, scales(1, 1, 0.8, 0.8), attrs{is("mode", "cubic")}, of([]int64{1, 1, 3, 3}, 1.47119141, 2.78125,
			4.08251953,
			6.71142578, 8.02148438, 9.32275391, 11.91650391, 13.2265625, 14.52783203)},
		{four, scales(1, 1, 0.8, 0.8), attrs{is("mode", "cubic"), is("cubic_coeff_a", -0.5), is("exclude_outside", 1)},
			of([]int64{1, 1, 3, 3}, 1.36812675, 2.6695014, 4.0133367, 6.57362535, 7.875, 9.2188353, 11.94896657,
				13.25034122, 14.59417652)},
		{four, ints(1, 1, 3, 1), attrs{is("mode", "linear"), is("coordinate_transformation_mode",
			"pytorch_half_pixel")},
			of([]int64{1, 1, 3, 1}, 5.0/3, 7, 37.0/3)},
		{four, ints(1, 1, 8, 8), attrs{is("nearest_mode", "ceil")}, of([]int64{1, 1, 8, 8}, 1, 2, 2, 3, 3, 4, 4, 4, 5,
			6, 6,
			7, 7, 8, 8, 8, 5, 6, 6, 7, 7, 8, 8, 8, 9, 10, 10, 11, 11, 12, 12, 12, 9, 10, 10, 11, 11, 12, 12, 12, 13, 14,
			14, 15, 15, 16, 16, 16, 13, 14, 14, 15, 15, 16, 16, 16, 13, 14, 14, 15, 15, 16, 16, 16)},
		{four, ints(1, 1, 8, 2), attrs{is("nearest_mode", "floor"), is("coordinate_transformation_mode",
			"align_corners")},
			of([]int64{1, 1, 8, 2}, 1, 4, 1, 4, 1, 4, 5, 8, 5, 8, 9, 12, 9, 12, 13, 16)},
		{four, ints(1, 1, 2, 2), attrs{is("nearest_mode", "round_prefer_ceil")}, of([]int64{1, 1, 2, 2}, 6, 8, 14, 16)},
		{four, ints(1, 1, 2, 2), nil, of([]int64{1, 1, 2, 2}, 1, 3, 9, 11)},
	} {
		o := one{op: "Resize", version: 13, inputs: []numbers{c.x, {}, c.by}, attrs: c.attrs}
		if c.by.whole {
			o.inputs = []numbers{c.x, {}, {}, c.by}
		}
		o.check(t, d, c.want)
	}
	one{op: "Resize", version: 19, inputs: []numbers{wide, {}, {}, ints(2)}, attrs: attrs{is("axes", []int64{-1})}}.
		check(t, d, of([]int64{1, 1, 2, 2}, 1, 3, 5, 7))
	asymmetric := of([]int64{1, 1, 1, 4}, 1, 1.5, 2, 2)
	line := of([]int64{1, 1, 1, 2}, 1, 2)
	one{op: "Upsample", version: 9, inputs: []numbers{line, scales(1, 1, 1, 2)}, attrs: attrs{is("mode", "linear")}}.
		check(t, d, asymmetric)
	one{op: "Resize", version: 10, inputs: []numbers{line, scales(1, 1, 1, 2)}, attrs: attrs{is("mode", "linear")}}.
		check(t, d, asymmetric)
	one{op: "Upsample", version: 7, inputs: []numbers{line}, attrs: attrs{{Name: "scales", Type: onnx.AttributeFloats,
		Floats: []float32{1, 1, 2, 2}}}}.check(t, d, of([]int64{1, 1, 2, 4}, 1, 1, 2, 2, 1, 1, 2, 2))
}

// Padding, also of less than nothing, and blocks of pixels.
func TestPads(t *testing.T) {
	d := newCPU(t)
	x := of([]int64{2, 3}, 1, 2, 3, 4, 5, 6)
	value := numbers{dims: []int64{}, v: []float64{9}, known: true}
	type attrs = []onnx.Attribute
	for _, c := range []struct {
		attrs  attrs
		inputs []numbers
		want   numbers
	}{
		{nil, []numbers{x, ints(0, 1, 1, 0)}, of([]int64{3, 4}, 0, 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0)},
		{nil, []numbers{x, ints(0, 1, 1, -1), value}, of([]int64{3, 3}, 9, 1, 2, 9, 4, 5, 9, 9, 9)},
		{nil, []numbers{x, ints(1, -1), value, ints(1)}, of([]int64{2, 3}, 9, 1, 2, 9, 4, 5)},
		{nil, []numbers{x, ints(-1, -1, 0, -1), value}, of([]int64{1, 1}, 5)},
		{attrs{is("mode", "reflect")}, []numbers{x, ints(1, 2, 0, 1)}, of([]int64{3, 6}, 6, 5, 4, 5, 6, 5, 3, 2, 1, 2,
			3, 2, 6,
			5, 4, 5, 6, 5)},
		{attrs{is("mode", "edge")}, []numbers{x, ints(0, 2, 1, -1)}, of([]int64{3, 4}, 1, 1, 1, 2, 4, 4, 4, 5, 4, 4,
			4, 5)},
		{attrs{is("mode", "wrap")}, []numbers{x, ints(0, 1, 0, 2)}, of([]int64{2, 6}, 3, 1, 2, 3, 1, 2, 6, 4, 5, 6, 4,
			5)},
	} {
		one{op: "Pad", version: 19, inputs: c.inputs, attrs: c.attrs}.check(t, d, c.want)
	}
	image := of([]int64{1, 1, 1, 2}, 1, 2)
	one{op: "Pad", version: 2, inputs: []numbers{image}, attrs: attrs{is("pads", []int64{0, 0, 1, 0, 0, 0, 0, 1}),
		is("value", 5.0)}}.check(t, d, of([]int64{1, 1, 2, 3}, 5, 5, 5, 1, 2, 5))
	depth := counting(1, 8, 1, 2)
	for i := range depth.v {
		depth.v[i] = float64(i)
	}
	dcr := of([]int64{1, 2, 2, 4}, 0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15)
	one{op: "DepthToSpace", version: 13, inputs: []numbers{depth}, attrs: attrs{is("blocksize", 2)}}.check(t, d, dcr)
	one{op: "DepthToSpace", version: 13, inputs: []numbers{depth}, attrs: attrs{is("blocksize", 2), is("mode", "CRD")}}.
		check(t, d, of([]int64{1, 2, 2, 4}, 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15))
	one{op: "SpaceToDepth", version: 13, inputs: []numbers{dcr}, attrs: attrs{is("blocksize", 2)}}.check(t, d, depth)
	one{op: "Tile", version: 13, inputs: []numbers{x, ints(2, 2)}}.check(t, d, of([]int64{4, 6}, 1, 2, 3, 1, 2, 3, 4,
		5, 6, 4, 5,
		6, 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6))
	one{op: "Slice", version: 13, inputs: []numbers{x, ints(-1), ints(-4), ints(1), ints(-2)}}.
		check(t, d, of([]int64{2, 2}, 3, 1, 6, 4))
}

// A transposed convolution puts each pixel's part of the filters where it belongs; padding is cut off.
func TestTransposedConvolutions(t *testing.T) {
	d := newCPU(t)
	type attrs = []onnx.Attribute
	for _, c := range []struct {
		x, w       numbers
		groups     int
		stride     [2]int
		begin, out [2]int
		bias       bool
		attrs      attrs
	}{
		{counting(2, 2, 3, 3), counting(2, 2, 3, 3), 1, [2]int{1, 1}, [2]int{0, 0}, [2]int{5, 5}, true, nil},
		{counting(1, 4, 3, 2), counting(4, 3, 2, 3), 2, [2]int{2, 3}, [2]int{1, 1}, [2]int{5, 5}, true,
			attrs{is("strides", []int64{2, 3}), is("pads", []int64{1, 1, 0, 0}), is("group", 2)}},
		{counting(1, 1, 3, 3), counting(1, 2, 3, 3), 1, [2]int{3, 2}, [2]int{0, 0}, [2]int{10, 8}, false,
			attrs{is("strides", []int64{3, 2}), is("output_shape", []int64{10, 8}), is("output_padding", []int64{1,
				1})}},
		{counting(1, 1, 3, 3), counting(1, 2, 3, 3), 1, [2]int{2, 2}, [2]int{1, 1}, [2]int{6, 6}, false,
			attrs{is("strides", []int64{2, 2}), is("pads", []int64{1, 1, 1, 1}), is("output_padding", []int64{1, 1})}},
		{counting(1, 1, 3, 3), counting(1, 2, 3, 3), 1, [2]int{2, 2}, [2]int{0, 0}, [2]int{6, 6}, false,
			attrs{is("strides", []int64{2, 2}), is("auto_pad", "SAME_UPPER")}},
		{counting(1, 1, 3, 3), counting(1, 2, 3, 3), 1, [2]int{2, 2}, [2]int{1, 1}, [2]int{6, 6}, false,
			attrs{is("strides", []int64{2, 2}), is("auto_pad", "SAME_LOWER")}},
		{counting(1, 1, 3, 3), counting(1, 2, 3, 3), 1, [2]int{2, 2}, [2]int{1, 1}, [2]int{6, 6}, false,
			attrs{is("strides", []int64{2, 2}), is("output_shape", []int64{6, 6})}},
		{counting(1, 1, 2, 2), counting(1, 1, 1, 1), 1, [2]int{2, 2}, [2]int{0, 0}, [2]int{4, 4}, false,
			attrs{is("strides", []int64{2, 2}), is("output_padding", []int64{1, 1})}},
	} {
		n, in, h, w := int(c.x.dims[0]), int(c.x.dims[1]), int(c.x.dims[2]), int(c.x.dims[3])
		each, r, s := int(c.w.dims[1]), int(c.w.dims[2]), int(c.w.dims[3])
		channels := each * c.groups
		want := numbers{dims: []int64{int64(n), int64(channels), int64(c.out[0]), int64(c.out[1])}}
		want.v = make([]float64, n*channels*c.out[0]*c.out[1])
		inputs := []numbers{c.x, c.w}
		if c.bias {
			b := counting(int64(channels))
			inputs = append(inputs, b)
			for i := range want.v {
				want.v[i] = b.v[i/(c.out[0]*c.out[1])%channels]
			}
		}
		for i, v := range c.x.v {
			image, from, p, q := i/(in*h*w), i/(h*w)%in, i/w%h, i%w
			for k := range each * r * s {
				to, row, column := from/(in/c.groups)*each+k/(r*s), p*c.stride[0]+k/s%r-c.begin[0],
					q*c.stride[1]+k%s-c.begin[1]
				if row >= 0 && row < c.out[0] && column >= 0 && column < c.out[1] {
					want.v[((image*channels+to)*c.out[0]+row)*c.out[1]+column] += v * c.w.v[from*each*r*s+k]
				}
			}
		}
		one{op: "ConvTranspose", version: 11, inputs: inputs, attrs: c.attrs}.check(t, d, want)
	}
	one{op: "ConvTranspose", version: 11, inputs: []numbers{of([]int64{1, 1, 2}, 1, 2), of([]int64{1, 1, 3}, 1, 10,
		100)},
		attrs: attrs{is("strides", []int64{2}), is("pads", []int64{1, 0})}}.check(t, d, of([]int64{1, 1, 4}, 10, 102,
		20, 200))
}

// Each image is normalised by itself.
func TestGroupNormalization(t *testing.T) {
	d := newCPU(t)
	x := counting(2, 4, 3)
	normal := func(groups int, scale func(channel int) (factor, shift float64)) numbers {
		y := numbers{dims: x.dims}
		n := 4 / groups * 3
		for i, v := range x.v {
			part := x.v[i/n*n : (i/n+1)*n]
			mean, variance := 0.0, 0.0
			for _, u := range part {
				mean += u / float64(n)
			}
			for _, u := range part {
				variance += (u - mean) * (u - mean) / float64(n)
			}
			factor, shift := scale(i / 3 % 4)
			y.v = append(y.v, (v-mean)/math.Sqrt(variance+0.01)*factor+shift)
		}
		return y
	}
	scale, shift := of([]int64{4}, 1, 2, -3, 4), of([]int64{4}, 0.5, -1, 0, 2)
	each := func(c int) (float64, float64) { return scale.v[c], shift.v[c] }
	epsilon := is("epsilon", 0.01)
	one{op: "InstanceNormalization", version: 6, inputs: []numbers{x, scale, shift}, attrs: []onnx.Attribute{epsilon}}.
		check(t, d, normal(4, each))
	one{op: "GroupNormalization", version: 21, inputs: []numbers{x, scale, shift}, attrs: []onnx.Attribute{epsilon,
		is("num_groups", 2)}}.check(t, d, normal(2, each))
	one{op: "GroupNormalization", version: 18, inputs: []numbers{x, of([]int64{2}, 1, 2), of([]int64{2}, 3, 4)},
		attrs: []onnx.Attribute{epsilon, is("num_groups", 2)}}.check(t, d, normal(2, func(c int) (float64, float64) {
		return float64(1 + c/2), float64(3 + c/2)
	}))
}

// Recurrent layers step by step, in plain loops: gates in ONNX's order, both directions, with and without biases and a
// first h.
func TestRecurrent(t *testing.T) {
	d := newCPU(t)
	const steps, batch, width, hidden = 3, 2, 3, 2
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	functions := map[string]func(float64) float64{"Sigmoid": sigmoid, "Tanh": math.Tanh,
		"Relu": func(x float64) float64 {
			return max(0, x)
		}}
	for _, c := range []struct {
		op          string
		gates       int64
		directions  int64
		way         string
		bias, first bool
		before      int
		names       []string
	}{
		{"RNN", 1, 1, "forward", true, true, 0, nil}, {"RNN", 1, 1, "reverse", false, true, 0, []string{"Relu"}},
		{"RNN", 1, 2, "bidirectional", true, false, 0, []string{"Tanh", "Relu"}},
		{"GRU", 3, 1, "forward", true, true, 1, nil}, {"GRU", 3, 1, "reverse", true, true, 0, nil},
		{"GRU", 3, 2, "bidirectional", false, true, 0, nil}, {"GRU", 3, 2, "bidirectional", true, false, 1,
			[]string{"Sigmoid", "Tanh", "Tanh", "Relu"}},
	} {
		x, w, r := counting(steps, batch, width), counting(c.directions, c.gates*hidden, width),
			counting(c.directions, c.gates*hidden, hidden)
		b, first := numbers{v: make([]float64, c.directions*2*c.gates*hidden)}, numbers{v: make([]float64,
			c.directions*batch*hidden)}
		if c.bias {
			b = counting(c.directions, 2*c.gates*hidden)
		}
		if c.first {
			first = counting(c.directions, batch, hidden)
		}
		y := numbers{dims: []int64{steps, c.directions, batch, hidden}, v: make([]float64,
			steps*c.directions*batch*hidden)}
		last := numbers{dims: []int64{c.directions, batch, hidden}, v: slices.Clone(first.v)}
		h := last.v
		g := int(c.gates)
		for dir := range int(c.directions) {
			names := []string{"Sigmoid", "Tanh"}[2-min(g, 2):]
			if c.names != nil {
				names = c.names[dir*len(names) : (dir+1)*len(names)]
			}
			// of a gate: what comes from below, and what comes from h, which reset may scale before the product
			gate := func(k, step, image, unit int, reset func(from int) float64) (below, back float64) {
				row := dir*g*hidden + k*hidden + unit
				below = b.v[dir*2*g*hidden+k*hidden+unit]
				for i := range width {
					below += w.v[row*width+i] * x.v[(step*batch+image)*width+i]
				}
				back = b.v[dir*2*g*hidden+(g+k)*hidden+unit]
				for i := range hidden {
					back += r.v[row*hidden+i] * reset(i) * h[(dir*batch+image)*hidden+i]
				}
				return below, back
			}
			same := func(int) float64 { return 1 }
			for step := range steps {
				if c.way == "reverse" || dir == 1 {
					step = steps - 1 - step
				}
				next := make([]float64, batch*hidden)
				for i := range next {
					image, unit := i/hidden, i%hidden
					f := functions[names[0]]
					sum := func(k, unit int) float64 {
						below, back := gate(k, step, image, unit, same)
						return f(below + back)
					}
					if c.op == "RNN" {
						next[i] = sum(0, unit)
						continue
					}
					z, fresh := sum(0, unit), 0.0
					if c.before != 0 {
						below, back := gate(2, step, image, unit, same)
						fresh = below + sum(1, unit)*back
					} else {
						below, back := gate(2, step, image, unit, func(from int) float64 { return sum(1, from) })
						fresh = below + back
					}
					next[i] = z*h[(dir*batch+image)*hidden+unit] + (1-z)*functions[names[1]](fresh)
				}
				copy(h[dir*batch*hidden:], next)
				copy(y.v[(step*int(c.directions)+dir)*batch*hidden:], next)
			}
		}
		o := one{op: c.op, version: 14, inputs: []numbers{x, w, r, {}, {}, {}},
			attrs: []onnx.Attribute{is("direction", c.way),
				is("hidden_size", hidden)}}
		if c.bias {
			o.inputs[3] = b
		}
		if c.first {
			o.inputs[5] = first
		}
		if c.op == "GRU" {
			o.attrs = append(o.attrs, is("linear_before_reset", c.before))
		}
		if c.names != nil {
			o.attrs = append(o.attrs, is("activations", c.names))
		}
		o.check(t, d, y, last)
		// the same with the batch first
		o.attrs = append(o.attrs, is("layout", 1))
		o.inputs[0] = swapped(x)
		if c.first {
			o.inputs[5] = swapped(first)
		}
		turned := swapped(numbers{dims: []int64{steps * c.directions, batch, hidden}, v: y.v})
		turned.dims = []int64{batch, steps, c.directions, hidden}
		o.check(t, d, turned, swapped(last))
	}
}

// An LSTM step by step: gates input, output, forget and cell, each with a peephole of its own, in both directions.
func TestLSTM(t *testing.T) {
	d := newCPU(t)
	const steps, batch, width, hidden = 3, 2, 3, 2
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for _, c := range []struct {
		way        string
		directions int
		peep, h, c bool
	}{{"forward", 1, true, true, true}, {"reverse", 1, false, true, false}, {"bidirectional", 2, true, false, false},
		{"bidirectional", 2, false, false, true}, {"bidirectional", 2, false, false, false}} {
		n := int64(c.directions)
		x, w, r := counting(steps, batch, width), counting(n, 4*hidden, width), counting(n, 4*hidden, hidden)
		b, first, memory, p := counting(n, 8*hidden), counting(n, batch, hidden), counting(n, batch, hidden),
			counting(n, 3*hidden)
		slices.Reverse(memory.v)
		o := one{op: "LSTM", version: 14, inputs: []numbers{x, w, r, b, {}, first.copied(), memory.copied(), p},
			attrs: []onnx.Attribute{is("direction", c.way), is("hidden_size", hidden)}}
		for k, has := range []bool{c.h, c.c, c.peep} {
			if !has {
				o.inputs[5+k] = numbers{}
				clear([]numbers{first, memory, p}[k].v)
			}
		}
		y := numbers{dims: []int64{steps, n, batch, hidden}, v: make([]float64, steps*c.directions*batch*hidden)}
		for dir := range c.directions {
			for i := range steps {
				if c.way == "reverse" || dir == 1 {
					i = steps - 1 - i
				}
				at := dir * batch * hidden
				h, state := slices.Clone(first.v[at:][:batch*hidden]), memory.v[at:][:batch*hidden]
				for k := range h {
					image, unit := k/hidden, k%hidden
					gate := func(gate int, cell float64) float64 {
						row := gate*hidden + unit
						sum := b.v[dir*8*hidden+row] + b.v[dir*8*hidden+4*hidden+row]
						for j := range width {
							sum += w.v[(dir*4*hidden+row)*width+j] * x.v[(i*batch+image)*width+j]
						}
						for j := range hidden {
							sum += r.v[(dir*4*hidden+row)*hidden+j] * h[image*hidden+j]
						}
						if gate < 3 {
							sum += p.v[dir*3*hidden+row] * cell
						}
						return sum
					}
					was := state[k]
					state[k] = sigmoid(gate(2, was))*was + sigmoid(gate(0, was))*math.Tanh(gate(3, 0))
					first.v[at+k] = sigmoid(gate(1, state[k])) * math.Tanh(state[k])
				}
				copy(y.v[(i*c.directions+dir)*batch*hidden:], first.v[at:][:batch*hidden])
			}
		}
		o.check(t, d, y, first, memory)
	}
}

// swapped exchanges the first two of three dimensions.
func swapped(a numbers) numbers {
	y := numbers{dims: []int64{a.dims[1], a.dims[0], a.dims[2]}, v: make([]float64, len(a.v))}
	for i, v := range a.v {
		p, q, r := i/int(a.dims[1]*a.dims[2]), i/int(a.dims[2])%int(a.dims[1]), i%int(a.dims[2])
		y.v[(q*int(a.dims[0])+p)*int(a.dims[2])+r] = v
	}
	return y
}

// Products by letters.
func TestEinsum(t *testing.T) {
	d := newCPU(t)
	a, b := counting(2, 3, 4), counting(2, 4, 5)
	for _, c := range []struct {
		equation string
		inputs   []numbers
		want     func(out *numbers)
	}{
		{"bij,bjk->bik", []numbers{a, b}, func(y *numbers) {
			y.dims = []int64{2, 3, 5}
			for i := range 2 * 3 * 5 {
				sum := 0.0
				for j := range 4 {
					sum += a.v[i/5*4+j] * b.v[(i/15*4+j)*5+i%5]
				}
				y.v = append(y.v, sum)
			}
		}},
		{"bij, bjk -> kb", []numbers{a, b}, func(y *numbers) { // i is summed up before
			y.dims = []int64{5, 2}
			for n := range 10 {
				sum := 0.0
				for i := range 3 {
					for j := range 4 {
						sum += a.v[(n%2*3+i)*4+j] * b.v[(n%2*4+j)*5+n/2]
					}
				}
				y.v = append(y.v, sum)
			}
		}},
		{"bij->jb", []numbers{a}, func(y *numbers) {
			y.dims = []int64{4, 2}
			for n := range 8 {
				y.v = append(y.v, a.v[n%2*12+n/2]+a.v[n%2*12+4+n/2]+a.v[n%2*12+8+n/2])
			}
		}},
		{"i,j->ji", []numbers{of([]int64{2}, 1, 2), of([]int64{3}, 3, 4, 5)}, func(y *numbers) {
			*y = of([]int64{3, 2}, 3, 6, 4, 8, 5, 10)
		}},
	} {
		var want numbers
		c.want(&want)
		one{op: "Einsum", version: 12, inputs: c.inputs, attrs: []onnx.Attribute{is("equation", c.equation)}}.check(t,
			d, want)
	}
}

// What operators do where their attributes are left out, which PyTorch's files never do.
func TestDefaults(t *testing.T) {
	d := newCPU(t)
	x := of([]int64{1, 2, 1, 3}, 1, 2, 3, 4, 5, 6)
	one{op: "Squeeze", version: 13, inputs: []numbers{x}}.check(t, d, of([]int64{2, 3}, x.v...))
	one{op: "Squeeze", version: 11, inputs: []numbers{x}, attrs: []onnx.Attribute{is("axes", []int64{-2})}}.
		check(t, d, of([]int64{1, 2, 3}, x.v...))
	total, last := 0.0, 0.0
	for i, v := range x.v {
		total += math.Exp(v)
		if i > 2 {
			last += math.Exp(v)
		}
	}
	from1, from3 := of(x.dims), of(x.dims)
	for i, v := range x.v {
		from1.v = append(from1.v, math.Exp(v)/total)
		from3.v = append(from3.v, math.Exp(v+3*float64(1-i/3))/last)
	}
	one{op: "Softmax", version: 11, inputs: []numbers{x}}.check(t, d, from1)
	one{op: "Softmax", version: 13, inputs: []numbers{x}}.check(t, d, from3)
	side := of([]int64{3}, -9, 0, 9)
	one{op: "Clip", version: 6, inputs: []numbers{side}, attrs: []onnx.Attribute{is("max", 2.0)}}.
		check(t, d, of([]int64{3}, -9, 0, 2))
	one{op: "Clip", version: 6, inputs: []numbers{side}, attrs: []onnx.Attribute{is("min", 2.0)}}.
		check(t, d, of([]int64{3}, 2, 2, 9))
	one{op: "Split", version: 18, inputs: []numbers{of([]int64{5}, 1, 2, 3, 4, 5)}}.
		check(t, d, of([]int64{3}, 1, 2, 3), of([]int64{2}, 4, 5))
	bright := of([]int64{1, 3, 1, 1}, 100, -200, 300)
	near := func(sum float64) float64 { return math.Pow(1+1e-4/3*sum, -0.75) }
	one{op: "LRN", version: 13, inputs: []numbers{bright}, attrs: []onnx.Attribute{is("size", 3)}}.
		check(t, d, of(bright.dims, 100*near(5e4), -200*near(14e4), 300*near(13e4)))
}

// What is known is computed before: index arithmetic and masks.
func TestFolds(t *testing.T) {
	d := newCPU(t)
	whole := func(dims []int64, v ...float64) numbers { return numbers{dims: dims, v: v, whole: true} }
	scalar := func(v float64) numbers { return whole([]int64{}, v) }
	x := whole([]int64{2, 3}, 1, 2, 3, 4, 5, 6)
	square := whole([]int64{3, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	type attrs = []onnx.Attribute
	for _, c := range []struct {
		op     string
		attrs  attrs
		inputs []numbers
		want   numbers
	}{
		{"Range", nil, []numbers{scalar(2), scalar(11), scalar(4)}, of([]int64{3}, 2, 6, 10)},
		{"Where", nil, []numbers{ints(1, 0, 2), ints(5, 6, 7), scalar(-1)}, of([]int64{3}, 5, -1, 7)},
		{"Gather", attrs{is("axis", 1)}, []numbers{x, ints(2, -3)}, of([]int64{2, 2}, 3, 1, 6, 4)},
		{"Gather", nil, []numbers{x, ints(1)}, of([]int64{1, 3}, 4, 5, 6)},
		{"Trilu", nil, []numbers{square}, of([]int64{3, 3}, 1, 2, 3, 0, 5, 6, 0, 0, 9)},
		{"Trilu", attrs{is("upper", 0)}, []numbers{square, scalar(-1)}, of([]int64{3, 3}, 0, 0, 0, 4, 0, 0, 7, 8, 0)},
		{"ConstantOfShape", nil, []numbers{ints(2, 1)}, of([]int64{2, 1}, 0, 0)},
		{"Cast", attrs{is("to", int(onnx.Bool))}, []numbers{ints(0, 3, -1)}, of([]int64{3}, 0, 1, 1)},
		{"Div", nil, []numbers{ints(7, -7), ints(2)}, of([]int64{2}, 3, -3)},
		{"Concat", attrs{is("axis", 1)}, []numbers{x, x}, of([]int64{2, 6}, 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6)},
		{"Tile", nil, []numbers{x, ints(1, 2)}, of([]int64{2, 6}, 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6)},
		{"Slice", nil, []numbers{x, ints(2), ints(-9), ints(1), ints(-2)}, of([]int64{2, 2}, 3, 1, 6, 4)},
		{"Shape", nil, []numbers{x}, of([]int64{2}, 2, 3)},
		{"Shape", attrs{is("start", 1)}, []numbers{x}, of([]int64{1}, 3)},
		{"Shape", attrs{is("start", -9), is("end", -1)}, []numbers{x}, of([]int64{1}, 2)},
		{"ReduceProd", nil, []numbers{x}, of([]int64{1, 1}, 720)},
		{"ReduceProd", attrs{is("keepdims", 0)}, []numbers{ints(2, 5)}, of([]int64{}, 10)},
	} {
		one{op: c.op, version: 15, attrs: c.attrs, inputs: c.inputs}.check(t, d, c.want)
	}
}

// A number beside a tensor, on either side.
func TestNumbers(t *testing.T) {
	d := newCPU(t)
	x, two := of([]int64{3}, 1, -4, 8), numbers{dims: []int64{}, v: []float64{2}, known: true}
	for op, want := range map[string][2][]float64{"Add": {{3, -2, 10}, {3, -2, 10}}, "Sub": {{1, 6, -6}, {-1, -6, 6}},
		"Mul": {{2, -8, 16}, {2, -8, 16}}, "Div": {{2, -0.5, 0.25}, {0.5, -2, 4}}} {
		one{op: op, version: 14, inputs: []numbers{two, x}}.check(t, d, of(x.dims, want[0]...))
		one{op: op, version: 14, inputs: []numbers{x, two}}.check(t, d, of(x.dims, want[1]...))
	}
	y := of([]int64{3}, 3, 4, 5)
	one{op: "Mean", version: 13, inputs: []numbers{x, y}}.check(t, d, of([]int64{3}, 2, 0, 6.5))
	one{op: "Sum", version: 13, inputs: []numbers{x, y, y}}.check(t, d, of([]int64{3}, 7, 4, 18))
}
