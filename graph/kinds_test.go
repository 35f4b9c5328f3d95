package graph

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// window is 3x2, stride 2x1, pad 1x0: 7x5 pixels give 4x4.
var window = Attrs{Kernel: [2]int{3, 2}, Stride: [2]int{2, 1}, Pad: [2]int{1, 0}}

// onto is window with the extent of the x it was applied to.
var onto = Attrs{Kernel: window.Kernel, Stride: window.Stride, Pad: window.Pad, Extent: [2]int{7, 5}}

// grouped is window in three groups of channels, groupedOnto is onto in as many.
var (
	grouped     = Attrs{Kernel: window.Kernel, Stride: window.Stride, Pad: window.Pad, Groups: 3}
	groupedOnto = Attrs{Kernel: window.Kernel, Stride: window.Stride, Pad: window.Pad, Extent: [2]int{7, 5}, Groups: 3}
)

// across is a local response normalisation of five channels.
var across = Attrs{Length: 5, Factor: 1e-4, Exponent: 0.75, Epsilon: 1}

// call is a correct use of a kind, with what it makes and costs.
type call struct {
	kind  Kind
	attrs Attrs
	in    []Shape
	out   []Shape
	flops int64
}

// calls holds at least one for every kind.
var calls = []call{
	{Conv2D, window, []Shape{{2, 3, 7, 5}, {6, 3, 3, 2}}, []Shape{{2, 6, 4, 4}}, 2 * (2 * 6 * 4 * 4) * (3 * 3 * 2)},
	{Conv2D, window, []Shape{{2, 3, 7, 5}, {6, 3, 3, 2}, {6}}, []Shape{{2, 6, 4, 4}},
		2 * (2 * 6 * 4 * 4) * (3 * 3 * 2)},
	{Conv2D, grouped, []Shape{{2, 6, 7, 5}, {9, 2, 3, 2}, {9}}, []Shape{{2, 9, 4, 4}},
		2 * (2 * 9 * 4 * 4) * (2 * 3 * 2)},
	{Conv2DDW, grouped, []Shape{{2, 6, 7, 5}, {2, 9, 4, 4}}, []Shape{{9, 2, 3, 2}}, 2 * (2 * 9 * 4 * 4) * (2 * 3 * 2)},
	{Conv2DDX, groupedOnto, []Shape{{2, 9, 4, 4}, {9, 2, 3, 2}}, []Shape{{2, 6, 7, 5}},
		2 * (2 * 9 * 4 * 4) * (2 * 3 * 2)},
	{Conv2DDW, window, []Shape{{2, 3, 7, 5}, {2, 6, 4, 4}}, []Shape{{6, 3, 3, 2}}, 2 * (2 * 6 * 4 * 4) * (3 * 3 * 2)},
	{Conv2DDX, onto, []Shape{{2, 6, 4, 4}, {6, 3, 3, 2}}, []Shape{{2, 3, 7, 5}}, 2 * (2 * 6 * 4 * 4) * (3 * 3 * 2)},
	{Linear, Attrs{}, []Shape{{2, 3}, {5, 3}}, []Shape{{2, 5}}, 2 * 2 * 5 * 3},
	{Linear, Attrs{}, []Shape{{2, 3}, {5, 3}, {5}}, []Shape{{2, 5}}, 2 * 2 * 5 * 3},
	{LinearDW, Attrs{}, []Shape{{2, 3}, {2, 5}}, []Shape{{5, 3}}, 2 * 2 * 5 * 3},
	{LinearDX, Attrs{}, []Shape{{2, 5}, {5, 3}}, []Shape{{2, 3}}, 2 * 2 * 5 * 3},
	{BiasDB, Attrs{}, []Shape{{2, 5}}, []Shape{{5}}, 10},
	{BiasDB, Attrs{}, []Shape{{2, 5, 3, 3}}, []Shape{{5}}, 90},
	{ReLU, Attrs{}, []Shape{{2, 5}}, []Shape{{2, 5}}, 10},
	{ReLUDX, Attrs{}, []Shape{{2, 5}, {2, 5}, {2, 5}}, []Shape{{2, 5}}, 10},
	{ReLUYDX, Attrs{}, []Shape{{2, 5}, {2, 5}}, []Shape{{2, 5}}, 10},
	{MaxPoolIndices, window, []Shape{{2, 3, 7, 5}}, []Shape{{2, 3, 4, 4}, {2, 3, 4, 4}}, 96 * 6},
	{MaxPoolIndicesDX, onto, []Shape{{2, 3, 4, 4}, {2, 3, 4, 4}}, []Shape{{2, 3, 7, 5}}, 96},
	{AvgPoolDYDX, onto, []Shape{{2, 3, 4, 4}}, []Shape{{2, 3, 7, 5}}, 96 * 6},
	{MaxPool, window, []Shape{{2, 3, 7, 5}}, []Shape{{2, 3, 4, 4}}, 96 * 6},
	{MaxPoolDX, window, []Shape{{2, 3, 7, 5}, {2, 3, 4, 4}, {2, 3, 4, 4}}, []Shape{{2, 3, 7, 5}}, 96 * 6},
	{AvgPool, window, []Shape{{2, 3, 7, 5}}, []Shape{{2, 3, 4, 4}}, 96 * 6},
	{AvgPoolDX, window, []Shape{{2, 3, 7, 5}, {2, 3, 4, 4}, {2, 3, 4, 4}}, []Shape{{2, 3, 7, 5}}, 96 * 6},
	{Pad, Attrs{Pad: [2]int{1, -2}, Extent: [2]int{9, 2}}, []Shape{{2, 3, 7, 5}}, []Shape{{2, 3, 9, 2}}, 0},
	{LRN, across, []Shape{{2, 3, 7, 5}}, []Shape{{2, 3, 7, 5}}, 16 * 210},
	{LRNDX, across, []Shape{{2, 3, 7, 5}, {2, 3, 7, 5}, {2, 3, 7, 5}}, []Shape{{2, 3, 7, 5}}, 27 * 210},
	{BatchNormStats, Attrs{}, []Shape{{2, 3, 7, 5}}, []Shape{{3}, {3}}, 4 * 210},
	{BatchNorm, Attrs{Epsilon: 1e-5}, []Shape{{2, 3, 7, 5}, {3}, {3}, {3}, {3}}, []Shape{{2, 3, 7, 5}}, 5 * 210},
	{BatchNormUpdate, Attrs{Length: 2}, []Shape{{3}, {3}, {3}, {3}}, []Shape{{3}, {3}}, 9},
	{BatchNormGrad, Attrs{Epsilon: 1e-5}, []Shape{{2, 3, 7, 5}, {3}, {3}, {3}, {2, 3, 7, 5}}, []Shape{{2, 3, 7, 5}, {3},
		{3}}, 11 * 210},
	{Add, Attrs{}, []Shape{{2, 5}, {2, 5}}, []Shape{{2, 5}}, 10},
	{Mul, Attrs{}, []Shape{{2, 5}, {2, 5}}, []Shape{{2, 5}}, 10},
	{Affine, Attrs{Factor: 2, Shift: 1}, []Shape{{2, 5}}, []Shape{{2, 5}}, 20},
	{Power, Attrs{Exponent: 2}, []Shape{{2, 5}}, []Shape{{2, 5}}, 100},
	{Exp, Attrs{}, []Shape{{2, 5}}, []Shape{{2, 5}}, 40},
	{Log, Attrs{}, []Shape{{2, 5}}, []Shape{{2, 5}}, 60},
	{Erf, Attrs{}, []Shape{{2, 5}}, []Shape{{2, 5}}, 80},
	{Expand, Attrs{Extent: [2]int{3}}, []Shape{{2, 5}}, []Shape{{2, 3, 5}}, 0},
	{SumOver, Attrs{}, []Shape{{2, 3, 5}}, []Shape{{2, 5}}, 30},
	{Concat, Attrs{Dim: 1}, []Shape{{2, 3, 4}, {2, 1, 4}, {2, 5, 4}}, []Shape{{2, 9, 4}}, 0},
	{Concat, Attrs{Dim: 2}, []Shape{{2, 3, 4}, {2, 3, 1}}, []Shape{{2, 3, 5}}, 0},
	{Slice, Attrs{Dim: 1, Begin: 2, Length: 3}, []Shape{{2, 5, 4}}, []Shape{{2, 3, 4}}, 0},
	{SliceDX, Attrs{Dim: 1, Begin: 2, Length: 3, Extent: [2]int{5}}, []Shape{{2, 3, 4}}, []Shape{{2, 5, 4}}, 0},
	{SliceAccumulate, Attrs{Dim: 1, Begin: 2, Length: 3}, []Shape{{2, 5, 4}, {2, 3, 4}}, []Shape{{2, 5, 4}}, 24},
	{Dropout, Attrs{}, []Shape{{2, 5}}, []Shape{{2, 5}}, 80},
	{DropoutDX, Attrs{}, []Shape{{2, 5}}, []Shape{{2, 5}}, 80},
	{SoftmaxXent, Attrs{}, []Shape{{2, 5}, {2}}, []Shape{{1}, {2, 5}}, 50},
	{SoftmaxXentDX, Attrs{}, []Shape{{2, 5}, {2}}, []Shape{{2, 5}}, 20},
	{Embedding, Attrs{}, []Shape{{7, 3}, {5}}, []Shape{{5, 3}}, 0},
	{EmbeddingDW, Attrs{Extent: [2]int{7}}, []Shape{{5}, {5, 3}}, []Shape{{7, 3}}, 15},
	{Bias, Attrs{}, []Shape{{2, 5}, {5}}, []Shape{{2, 5}}, 10},
	{LayerNorm, Attrs{Epsilon: 1e-5}, []Shape{{2, 5}, {5}, {5}}, []Shape{{2, 5}, {2}, {2}}, 80},
	{LayerNormGrad, Attrs{}, []Shape{{2, 5}, {2}, {2}, {5}, {2, 5}}, []Shape{{2, 5}, {5}, {5}}, 140},
	{GELU, Attrs{}, []Shape{{2, 5}}, []Shape{{2, 5}}, 100},
	{GELUDX, Attrs{}, []Shape{{2, 5}, {2, 5}}, []Shape{{2, 5}}, 160},
	{Sigmoid, Attrs{}, []Shape{{2, 5}}, []Shape{{2, 5}}, 40},
	{SigmoidDX, Attrs{}, []Shape{{2, 5}, {2, 5}}, []Shape{{2, 5}}, 30},
	{Tanh, Attrs{}, []Shape{{2, 5}}, []Shape{{2, 5}}, 60},
	{TanhDX, Attrs{}, []Shape{{2, 5}, {2, 5}}, []Shape{{2, 5}}, 30},
	{Blend, Attrs{}, []Shape{{2, 5}, {2, 5}, {2, 5}}, []Shape{{2, 5}}, 40},
	{BlendGrad, Attrs{}, []Shape{{2, 5}, {2, 5}, {2, 5}, {2, 5}}, []Shape{{2, 5}, {2, 5}, {2, 5}}, 50},
	{MatMul, Attrs{}, []Shape{{2, 3, 4}, {2, 4, 5}}, []Shape{{2, 3, 5}}, 2 * 2 * 3 * 5 * 4},
	{MatMul, Attrs{TransposeA: true}, []Shape{{2, 4, 3}, {2, 4, 5}}, []Shape{{2, 3, 5}}, 2 * 2 * 3 * 5 * 4},
	{MatMul, Attrs{TransposeB: true}, []Shape{{2, 3, 4}, {2, 5, 4}}, []Shape{{2, 3, 5}}, 2 * 2 * 3 * 5 * 4},
	{MatMul, Attrs{TransposeA: true, TransposeB: true}, []Shape{{2, 4, 3}, {2, 5, 4}}, []Shape{{2, 3, 5}},
		2 * 2 * 3 * 5 * 4},
	{Transpose, Attrs{}, []Shape{{2, 3, 4, 5}}, []Shape{{2, 4, 3, 5}}, 0},
	{Softmax, Attrs{Factor: 1}, []Shape{{2, 3, 5}}, []Shape{{2, 3, 5}}, 180},
	{SoftmaxDX, Attrs{Factor: 1}, []Shape{{2, 3, 5}, {2, 3, 5}}, []Shape{{2, 3, 5}}, 150},
	{AdditiveScores, Attrs{}, []Shape{{2, 3, 4}, {2, 5, 4}, {4}}, []Shape{{2, 3, 5}}, 9 * 2 * 3 * 5 * 4},
	{AdditiveScoresGrad, Attrs{}, []Shape{{2, 3, 4}, {2, 5, 4}, {4}, {2, 3, 5}}, []Shape{{2, 3, 4}, {2, 5, 4}, {4}},
		15 * 2 * 3 * 5 * 4},
	{LSTM, Attrs{}, []Shape{{2, 12}}, []Shape{{2, 3}, {2, 3}}, 168},
	{LSTM, Attrs{}, []Shape{{2, 12}, {2, 12}, {2, 3}}, []Shape{{2, 3}, {2, 3}}, 168},
	{LSTMGrad, Attrs{}, []Shape{{2, 12}, {2, 3}}, []Shape{{2, 12}, {2, 3}}, 288},
	{LSTMGrad, Attrs{}, []Shape{{2, 12}, {2, 3}, {2, 3}}, []Shape{{2, 12}, {2, 3}}, 288},
	{LSTMGrad, Attrs{}, []Shape{{2, 12}, {2, 12}, {2, 3}, {2, 3}}, []Shape{{2, 12}, {2, 3}}, 288},
	{LSTMGrad, Attrs{}, []Shape{{2, 12}, {2, 12}, {2, 3}, {2, 3}, {2, 3}}, []Shape{{2, 12}, {2, 3}}, 288},
	{MeanSquare, Attrs{}, []Shape{{2, 5}, {2, 5}}, []Shape{{1}}, 30},
	{MeanSquareDX, Attrs{}, []Shape{{2, 5}, {2, 5}}, []Shape{{2, 5}}, 20},
	{SigmoidXent, Attrs{}, []Shape{{2, 5}, {2, 5}}, []Shape{{1}}, 80},
	{SigmoidXentDX, Attrs{}, []Shape{{2, 5}, {2, 5}}, []Shape{{2, 5}}, 60},
	{SGD, Attrs{}, []Shape{{2, 5}, {2, 5}}, []Shape{{2, 5}}, 20},
	{Momentum, Attrs{}, []Shape{{2, 5}, {2, 5}, {2, 5}}, []Shape{{2, 5}, {2, 5}}, 20},
	{Adam, Attrs{Epsilon: 1e-8}, []Shape{{2, 5}, {2, 5}, {2, 5}, {2, 5}}, []Shape{{2, 5}, {2, 5}, {2, 5}}, 40},
	{Accumulate, Attrs{}, []Shape{{2, 5}, {2, 5}}, []Shape{{2, 5}}, 10},
	{Scale, Attrs{}, []Shape{{2, 5}}, []Shape{{2, 5}}, 10},
}

// touched is the traffic in calls of the kinds that touch a part of an operand, or have one of another type: 24
// elements are read and written, or read twice and written; 5 ids and as many rows of 3 are read, and the rows written;
// indices are bytes.
var touched = map[Kind]Bytes{
	Slice: 2 * 24 * ElementBytes, SliceAccumulate: 3 * 24 * ElementBytes, Embedding: 5*8 + (15+15)*ElementBytes,
	EmbeddingDW: 5*8 + (15+21)*ElementBytes, MaxPoolIndices: 96 + (210+96)*ElementBytes,
	MaxPoolIndicesDX: 96 + (210+96)*ElementBytes,
}

// indexed names the input of a kind that holds indices, and their type.
var indexed = map[Kind]struct {
	input int
	dtype DType
}{Embedding: {1, Int64}, EmbeddingDW: {0, Int64}, MaxPoolIndicesDX: {0, Uint8}}

// use builds a graph of one op of the kind on persistent storages.
func use(kind Kind, attrs Attrs, in []Shape) *Builder {
	b := NewBuilder("use")
	var ids []TensorID
	for i, shape := range in {
		if index, ok := indexed[kind]; ok && i == index.input {
			ids = append(ids, b.Input("index", Anything, index.dtype, shape))
			continue
		}
		ids = append(ids, b.Persistent(fmt.Sprintf("in%d", i), State, shape, Init{Kind: InitOne}))
	}
	b.Op("op", kind, attrs, ids...)
	return b
}

func TestKinds(t *testing.T) {
	unused := Kinds()
	for _, call := range calls {
		unused = slices.DeleteFunc(unused, func(k Kind) bool { return k == call.kind })
		g, err := use(call.kind, call.attrs, call.in).Graph()
		if err != nil {
			t.Errorf("%s: %v", call.kind, err)
			continue
		}
		if err := g.Validate(); err != nil {
			t.Errorf("%s: %v", call.kind, err)
		}
		if diff := cmp.Diff(call.out, g.Shapes(g.Ops[0].Outputs)); diff != "" {
			t.Errorf("%s %v makes (-want +got):\n%s", call.kind, call.in, diff)
		}
		want := Cost{FLOPs: call.flops}
		for _, s := range slices.Concat(call.in, call.out) {
			want.Bytes += s.Bytes()
		}
		if bytes, ok := touched[call.kind]; ok {
			want.Bytes = bytes
		}
		if got := g.Cost(0); got != want {
			t.Errorf("%s %v costs %+v, want %+v", call.kind, call.in, got, want)
		}
	}
	if len(unused) > 0 {
		t.Errorf("kinds without a call here: %v", unused)
	}
}

// TestKindsRejectOperands spoils each correct use: an operand too few or too many, or one of higher rank.
func TestKindsRejectOperands(t *testing.T) {
	takes := func(k Kind, n int) bool {
		return slices.ContainsFunc(calls, func(c call) bool { return c.kind == k && len(c.in) == n })
	}
	// of their only operand
	anyShape := []Kind{BiasDB, ReLU, GELU, Sigmoid, Tanh, Dropout, DropoutDX, Scale, Slice, SliceDX,
		Affine, Power, Exp, Log, Erf}
	for _, call := range calls {
		reject := func(what string, in []Shape) {
			err := use(call.kind, call.attrs, in).Err()
			if err == nil || !strings.HasPrefix(err.Error(), "op op: "+string(call.kind)) {
				t.Errorf("%s with %s %v: error %v", call.kind, what, in, err)
			}
		}
		if n := len(call.in); !takes(call.kind, n+1) {
			reject("an operand too many", append(slices.Clone(call.in), Shape{1}))
		}
		if n := len(call.in); !takes(call.kind, n-1) {
			reject("an operand too few", call.in[:n-1])
		}
		if slices.Contains(anyShape, call.kind) {
			continue
		}
		for i := range call.in {
			in := slices.Clone(call.in)
			in[i] = append(slices.Clone(in[i]), 1)
			reject(fmt.Sprintf("operand %d of higher rank", i), in)
		}
	}
}

func TestKindsRejectShapes(t *testing.T) {
	with := func(kernel, stride, pad int) Attrs {
		return Attrs{Kernel: [2]int{3, kernel}, Stride: [2]int{1, stride}, Pad: [2]int{0, pad}}
	}
	x, y := Shape{2, 3, 7, 5}, Shape{2, 3, 4, 4}
	tests := []struct {
		kind  Kind
		attrs Attrs
		in    []Shape
		want  string
	}{
		{Conv2D, window, []Shape{x, {6, 4, 3, 2}}, "w has shape [6 4 3 2], want [-1 3 3 2]"},
		{Conv2D, window, []Shape{x, {6, 3, 2, 3}}, "w has shape [6 3 2 3], want [-1 3 3 2]"},
		{Conv2D, window, []Shape{x, {6, 3, 3, 2}, {7}}, "b has shape [7], want [6]"},
		{Conv2DDW, window, []Shape{x, {2, 6, 4, 5}}, "dy has shape [2 6 4 5], want [2 -1 4 4]"},
		{Conv2DDX, onto, []Shape{{2, 5, 4, 4}, {6, 3, 3, 2}}, "dy has shape [2 5 4 4], want [-1 6 4 4]"},
		{Conv2DDX, window, []Shape{{2, 6, 4, 4}, {6, 3, 3, 2}},
			"a window of [3 2] does not fit into 0x0 with pad [1 0]"},
		{Conv2D, grouped, []Shape{{2, 5, 7, 5}, {6, 2, 3, 2}}, "3 groups do not divide 5 channels into 6"},
		{Conv2D, grouped, []Shape{{2, 6, 7, 5}, {5, 2, 3, 2}}, "3 groups do not divide 6 channels into 5"},
		{Conv2D, grouped, []Shape{{2, 6, 7, 5}, {6, 6, 3, 2}}, "w has shape [6 6 3 2], want [-1 2 3 2]"},
		{Conv2D, Attrs{Kernel: [2]int{1, 1}, Stride: [2]int{1, 1}, Groups: -1}, []Shape{x, {6, 3, 1, 1}},
			"-1 groups do not divide"},
		{Conv2DDW, grouped, []Shape{x, {2, 5, 4, 4}}, "3 groups do not divide 3 channels into 5"},
		{Conv2DDX, groupedOnto, []Shape{{2, 5, 4, 4}, {5, 2, 3, 2}}, "3 groups do not divide 5 channels into 5"},
		{Pad, Attrs{Pad: [2]int{-7, 0}, Extent: [2]int{9, 2}}, []Shape{x},
			"nothing of 7x5 pixels is left when pad [-7 0] moves them into extent [9 2]"},
		{Pad, Attrs{Pad: [2]int{0, 2}, Extent: [2]int{9, 2}}, []Shape{x}, "nothing of 7x5 pixels is left"},
		{Pad, Attrs{}, []Shape{x}, "into extent [0 0]"},
		{LRNDX, across, []Shape{x, y, x}, "y has shape [2 3 4 4], want [2 3 7 5]"},
		{Linear, Attrs{}, []Shape{{2, 3}, {5, 3}, {3}}, "b has shape [3], want [5]"},
		{LinearDW, Attrs{}, []Shape{{2, 3}, {3, 5}}, "dy has shape [3 5], want [2 -1]"},
		{LinearDW, Attrs{Begin: 3, Length: 3}, []Shape{{2, 3}, {2, 5}}, "3 rows from 3 on do not lie within 5"},
		{LinearDW, Attrs{Begin: 3}, []Shape{{2, 3}, {2, 5}}, "0 rows from 3 on do not lie within 5"},
		{LinearDW, Attrs{Begin: -1, Length: 2}, []Shape{{2, 3}, {2, 5}}, "2 rows from -1 on do not lie within 5"},
		{LinearDX, Attrs{}, []Shape{{2, 5}, {3, 5}}, "dy has shape [2 5], want [-1 3]"},
		{BiasDB, Attrs{}, []Shape{{5}}, "dy has shape [5], want at least two dimensions"},
		{MaxPool, with(6, 1, 0), []Shape{x}, "a window of [3 6] does not fit into 7x5 with pad [0 0]"},
		{MaxPool, with(2, 0, 0), []Shape{x}, "kernel [3 2] and stride [1 0] must be positive, pad [0 0] not negative"},
		{MaxPool, with(0, 1, 0), []Shape{x}, "kernel [3 0] and stride [1 1] must be positive"},
		{MaxPool, with(2, 1, -1), []Shape{x}, "pad [0 -1] not negative"},
		{AvgPool, with(2, 1, 2), []Shape{x}, "pad [0 2] must be smaller than kernel [3 2]"},
		{MaxPoolDX, window, []Shape{x, y, {2, 3, 4, 5}}, "dy has shape [2 3 4 5], want [2 3 4 4]"},
		{MaxPoolIndices, Attrs{Kernel: [2]int{16, 16}, Stride: [2]int{1, 1}}, []Shape{{1, 1, 20, 20}},
			"a window of 16x16 has more than 255 elements, and indices are bytes"},
		{MaxPoolIndicesDX, onto, []Shape{y, {2, 3, 4, 5}}, "dy has shape [2 3 4 5], want [2 3 4 4]"},
		{MaxPoolIndicesDX, onto, []Shape{{2, 3, 5, 4}, y}, "indices has shape [2 3 5 4], want [2 3 4 4]"},
		{AvgPoolDYDX, onto, []Shape{{2, 3, 5, 4}}, "dy has shape [2 3 5 4], want [2 3 4 4]"},
		{Add, Attrs{InPlace: 3}, []Shape{x, x}, "in_place 3: its output may take the place of operands [0 1]"},
		{ReLU, Attrs{InPlace: -1}, []Shape{x}, "in_place -1: its output may take the place of operands [0]"},
		{MatMul, Attrs{InPlace: 1}, []Shape{{1, 2, 2}, {1, 2, 2}}, "has no attribute in_place"},
		{AvgPoolDX, window, []Shape{x, {2, 2, 4, 4}, y}, "y has shape [2 2 4 4], want [2 3 4 4]"},
		{BatchNorm, Attrs{Epsilon: 1e-5}, []Shape{x, {3}, {3}, {3}, {2}}, "beta has shape [2], want [3]"},
		{BatchNorm, Attrs{Epsilon: 1e-5}, []Shape{x, {3}, {2}, {3}, {3}}, "variance has shape [2], want [3]"},
		{BatchNormGrad, Attrs{Epsilon: 1e-5}, []Shape{x, {3}, {3}, {2}, x}, "gamma has shape [2], want [3]"},
		{BatchNormGrad, Attrs{Epsilon: 1e-5}, []Shape{x, {3}, {3}, {3}, y}, "dy has shape [2 3 4 4], want [2 3 7 5]"},
		{BatchNormUpdate, Attrs{Length: 2}, []Shape{{3}, {3}, {2}, {3}}, "statistic has shape [2], want [3]"},
		{Add, Attrs{}, []Shape{{6}, {2, 3}}, "operand has shape [2 3], want [6]"},
		{Concat, Attrs{Dim: 1}, []Shape{{2, 3, 4}, {2, 3, 5}}, "operand 1 has shape [2 3 5], want [2 -1 4]"},
		{Concat, Attrs{Dim: 3}, []Shape{{2, 3, 4}, {2, 3, 4}}, "operand has shape [2 3 4], which has no dimension 3"},
		{Concat, Attrs{Dim: -1}, []Shape{{2}, {2}}, "operand has shape [2], which has no dimension -1"},
		{Slice, Attrs{Dim: 2, Length: 1}, []Shape{{2, 3}}, "x has shape [2 3], which has no dimension 2"},
		{Slice, Attrs{Begin: 1, Length: 2}, []Shape{{2, 3}}, "2 elements from 1 on do not lie within the 2 of " +
			"dimension 0"},
		{Slice, Attrs{Begin: -1, Length: 2}, []Shape{{2, 3}}, "2 elements from -1 on"},
		{Slice, Attrs{Dim: 1}, []Shape{{2, 3}}, "0 elements from 0 on"},
		{Slice, Attrs{Begin: math.MaxInt, Length: 2}, []Shape{{2, 3}}, "do not lie within the 2 of"},
		{SliceDX, Attrs{Dim: 1, Begin: 3, Length: 3, Extent: [2]int{5}}, []Shape{{2, 3}},
			"3 elements from 3 on do not lie within the 5 of"},
		{SliceDX, Attrs{Dim: 1, Length: 2, Extent: [2]int{5}}, []Shape{{2, 3}}, "dy has shape [2 3], want [2 2]"},
		{SliceAccumulate, Attrs{Dim: 1, Length: 2}, []Shape{{2, 5}, {2, 3}}, "dy has shape [2 3], want [2 2]"},
		{Embedding, Attrs{}, []Shape{{7, 3}, {5, 1}}, "ids has shape [5 1], want [-1]"},
		{EmbeddingDW, Attrs{Extent: [2]int{7}}, []Shape{{5}, {4, 3}}, "dy has shape [4 3], want [5 -1]"},
		{EmbeddingDW, Attrs{}, []Shape{{5}, {5, 3}}, "a table of 0 rows: the extent must be positive"},
		{EmbeddingDW, Attrs{Extent: [2]int{7}, Begin: math.MaxInt, Length: 1}, []Shape{{5}, {5, 3}},
			"1 rows from 9223372036854775807 on do not lie within 7"},
		{Bias, Attrs{}, []Shape{{2, 5}, {2}}, "b has shape [2], want [5]"},
		{LayerNorm, Attrs{Epsilon: 1}, []Shape{{2, 5}, {5}, {2}}, "beta has shape [2], want [5]"},
		{LayerNormGrad, Attrs{}, []Shape{{2, 5}, {2}, {5}, {5}, {2, 5}}, "scale has shape [5], want [2]"},
		{LayerNormGrad, Attrs{}, []Shape{{2, 5}, {2}, {2}, {5}, {5, 2}}, "dy has shape [5 2], want [2 5]"},
		{TanhDX, Attrs{}, []Shape{{6}, {2, 3}}, "operand has shape [2 3], want [6]"},
		{MatMul, Attrs{}, []Shape{{2, 3, 4}, {3, 4, 5}}, "b has shape [3 4 5], want [2 4 -1]"},
		{MatMul, Attrs{TransposeA: true}, []Shape{{2, 3, 4}, {2, 4, 5}}, "b has shape [2 4 5], want [2 3 -1]"},
		{MatMul, Attrs{TransposeB: true}, []Shape{{2, 3, 4}, {2, 4, 5}}, "b has shape [2 4 5], want [2 -1 4]"},
		{Softmax, Attrs{Factor: 1, Causal: true}, []Shape{{2, 3, 5}}, "x has shape [2 3 5]: causal, it must have as " +
			"many rows as columns"},
		{SoftmaxDX, Attrs{Factor: 1}, []Shape{{2, 3, 5}, {2, 5, 3}}, "operand has shape [2 5 3], want [2 3 5]"},
		{AdditiveScores, Attrs{}, []Shape{{2, 3, 4}, {2, 5, 3}, {4}}, "k has shape [2 5 3], want [2 -1 4]"},
		{AdditiveScores, Attrs{}, []Shape{{2, 3, 4}, {2, 5, 4}, {5}}, "v has shape [5], want [4]"},
		{AdditiveScoresGrad, Attrs{}, []Shape{{2, 3, 4}, {2, 5, 4}, {4}, {2, 5, 3}},
			"de has shape [2 5 3], want [2 3 5]"},
		{LSTM, Attrs{}, []Shape{{2, 10}}, "x has shape [2 10], which is not that of four gates"},
		{LSTM, Attrs{}, []Shape{{2, 12}, {2, 12}}, "takes 1 or 3 inputs, got 2"},
		{LSTM, Attrs{}, []Shape{{2, 12}, {2, 12}, {2, 4}}, "c has shape [2 4], want [2 3]"},
		{LSTMGrad, Attrs{}, []Shape{{2, 12}, {2, 12}, {2, 3}, {2, 3}, {3, 3}}, "dc has shape [3 3], want [2 3]"},
		{LSTMGrad, Attrs{}, []Shape{{2, 12}, {2, 12}}, "dh has shape [2 12], want [2 3]"},
		{MeanSquare, Attrs{}, []Shape{{6}, {2, 3}}, "operand has shape [2 3], want [6]"},
		{SoftmaxXent, Attrs{}, []Shape{{2, 5}, {5}}, "labels has shape [5], want [2]"},
		{SoftmaxXentDX, Attrs{}, []Shape{{2, 5}, {5}}, "labels has shape [5], want [2]"},
		{Adam, Attrs{Epsilon: 1e-8}, []Shape{{2, 5}, {2, 5}, {2, 5}, {5, 2}}, "operand has shape [5 2], want [2 5]"},
	}
	for _, test := range tests {
		err := use(test.kind, test.attrs, test.in).Err()
		want := fmt.Sprintf("op op: %s: ", test.kind)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %v: error %v, want %s", test.kind, test.in, err, want+test.want)
		}
	}
}

func TestAttrsReject(t *testing.T) {
	x := Shape{2, 3, 7, 5}
	tests := []struct {
		kind  Kind
		attrs Attrs
		in    []Shape
		want  string
	}{
		{Dropout, Attrs{Rate: 1}, []Shape{x}, "rate 1 must be at least 0 and below 1"},
		{DropoutDX, Attrs{Rate: -0.5}, []Shape{x}, "rate -0.5 must be at least 0 and below 1"},
		{LRN, Attrs{Length: 4, Epsilon: 1}, []Shape{x}, "length 4 must be odd and positive"},
		{LRN, Attrs{Length: 5}, []Shape{x}, "epsilon 0 must be positive"},
		{LRN, Attrs{Length: 5, Epsilon: 1, Factor: -1}, []Shape{x}, "factor -1 and exponent 0 not negative"},
		{LRNDX, Attrs{Length: 5, Epsilon: 1, Exponent: math.NaN()}, []Shape{x, x, x}, "exponent NaN is not finite"},
		{BatchNorm, Attrs{}, []Shape{x, {3}, {3}, {3}, {3}}, "epsilon 0 must be positive"},
		{BatchNormUpdate, Attrs{Length: 2, Momentum: 1.5}, []Shape{{3}, {3}, {3}, {3}}, "momentum 1.5 must be"},
		{BatchNormUpdate, Attrs{Length: 1}, []Shape{{3}, {3}, {3}, {3}},
			"length 1 must be the number of values that the statistics are of, at least 2"},
		{BatchNormUpdate, Attrs{}, []Shape{{3}, {3}, {3}, {3}}, "length 0 must be"},
		{Adam, Attrs{Beta1: 1, Epsilon: 1}, []Shape{x, x, x, x}, "beta1 1 must be"},
		{LayerNorm, Attrs{}, []Shape{{2, 3}, {3}, {3}}, "epsilon 0 must be positive"},
		{Softmax, Attrs{Factor: -1}, []Shape{{2, 3, 3}}, "factor -1 must be positive"},
		{SoftmaxDX, Attrs{}, []Shape{{2, 3, 3}, {2, 3, 3}}, "factor 0 must be positive"},
		{SGD, Attrs{LearningRate: math.Inf(1)}, []Shape{x, x}, "learning rate +Inf is not finite"},
		{MaxPool, Attrs{Kernel: [2]int{1<<62 + 1, 1}, Stride: [2]int{1 << 62, 1}, Pad: [2]int{1 << 62, 0}}, []Shape{x},
			"is beyond 1073741824"},
	}
	for _, test := range tests {
		if err := use(test.kind, test.attrs, test.in).Err(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %+v: error %v, want it to contain %q", test.kind, test.attrs, err, test.want)
		}
	}
}

// TestCostSaturates: the arithmetic of a product beyond 64 bits is the largest number, never a wrapped one.
func TestCostSaturates(t *testing.T) {
	huge := Shape{1 << 22, 1 << 22}
	g, err := use(Linear, Attrs{}, []Shape{huge, huge}).Graph()
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Cost(0).FLOPs; got != math.MaxInt64 {
		t.Errorf("FLOPs = %d, want the largest int64", got)
	}
}

// Each attribute that a kind does not have is refused by name: two graphs that compute the same must not differ in
// their digests.
func TestKindsRefuseStrayAttributes(t *testing.T) {
	for _, c := range calls {
		for i, name := range attrNames {
			if kinds[c.kind].attrs&(1<<i) != 0 {
				continue
			}
			a := c.attrs
			f := reflect.ValueOf(&a).Elem().Field(i)
			switch f.Kind() {
			case reflect.Int, reflect.Int64:
				f.SetInt(1)
			case reflect.Uint64:
				f.SetUint(1)
			case reflect.Float64:
				f.SetFloat(0.5)
			case reflect.Bool:
				f.SetBool(true)
			default:
				f.Index(1).SetInt(1)
			}
			_, err := Infer(c.kind, a, c.in)
			if may := MayOverwrite(c.kind); name == "in_place" && may != nil {
				if slices.Contains(may, 0) != (err == nil) {
					t.Errorf("%s in place of operand 0: error %v", c.kind, err)
				}
				continue
			}
			if want := fmt.Sprintf("%s: has no attribute %s", c.kind, name); err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		}
	}
}
