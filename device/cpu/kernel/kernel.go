package kernel

import (
	"fmt"
	"unsafe"

	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
	"tensile/graph"
)

// Revision counts the changes of what kernels compute, to the bit. Jobs go on with the kernels that they began with.
const Revision = 2

// Call is one execution of an op.
type Call[T gemm.Float] struct {
	Kind    graph.Kind
	Attrs   graph.Attrs
	Variant string // one of Variants; "": the first
	// operands in the kind's order, those of other types as the memory they are; an entry of Out may be nil, see
	// package comment
	In, Out   [][]T
	InShapes  []graph.Shape // Shapes of In.
	OutShapes []graph.Shape // Shapes of Out.
	Scratch   []T           // At least Scratch(...) elements with any content.
	Seed      uint64        // Seed of the job's random generator.
	Iteration int           // Number of the iteration, from 0.
	GEMM      *gemm.Engine  // Engine for convolutions and linear layers. All kernels share its crew.

	first int // Index of the first element where this is a part of a call.
}

// kernel is what the table knows of a kind.
type kernel[T gemm.Float] struct {
	run     func(c *Call[T])
	scratch func(v string, a graph.Attrs, in, out []graph.Shape) int // of a variant; nil: none
	partial bool                                                     // outputs may be nil
	in, out operand                                                  // one of each that holds another type
	cut     func(c *Call[T]) cut                                     // how a call falls into parts; nil: it does not
}

// operand says of an input or output at a position that its elements have another size than floats. With size 0 there
// is none.
type operand struct{ at, size int }

var kernels32, kernels64 = kernels[float32](), kernels[float64]()

func kernels[T gemm.Float]() map[graph.Kind]kernel[T] {
	return map[graph.Kind]kernel[T]{
		graph.Conv2D:   {run: conv2D[T]},
		graph.Conv2DDW: {run: conv2DDW[T]},
		graph.Conv2DDX: {run: conv2DDX[T], scratch: conv2DDXScratch},

		graph.Linear:   {run: linear[T]},
		graph.LinearDW: {run: linearDW[T]},
		graph.LinearDX: {run: linearDX[T]},
		graph.BiasDB:   {run: biasDB[T]},

		graph.ReLU:    {run: relu[T], cut: elements[T]},
		graph.ReLUDX:  {run: reluDX[T], cut: elements[T]},
		graph.ReLUYDX: {run: reluYDX[T], cut: elements[T]},

		graph.MaxPool:          {run: maxPool[T], cut: allPlanes[T]},
		graph.MaxPoolDX:        {run: maxPoolDX[T], cut: allPlanes[T]},
		graph.MaxPoolIndices:   {run: maxPoolIndices[T], partial: true, out: operand{1, 1}},
		graph.MaxPoolIndicesDX: {run: maxPoolIndicesDX[T], in: operand{0, 1}},
		graph.AvgPool:          {run: avgPool[T], cut: allPlanes[T]},
		graph.AvgPoolDX:        {run: avgPoolDX[T], cut: allPlanes[T]},
		graph.AvgPoolDYDX:      {run: avgPoolDYDX[T], cut: allPlanes[T]},

		graph.Pad:   {run: pad[T], cut: allPlanes[T]},
		graph.LRN:   {run: lrn[T], cut: rowsBut[T]()},
		graph.LRNDX: {run: lrnDX[T], scratch: lrnDXScratch},

		graph.BatchNormStats:  {run: batchNormStats[T], partial: true},
		graph.BatchNorm:       {run: batchNorm[T]},
		graph.BatchNormUpdate: {run: batchNormUpdate[T]},
		graph.BatchNormGrad:   {run: batchNormGrad[T], partial: true},

		graph.Add:        {run: add[T], cut: elements[T]},
		graph.Mul:        {run: mul[T], cut: elements[T]},
		graph.Accumulate: {run: accumulate[T], cut: elements[T]},
		graph.Scale:      {run: scale[T], cut: elements[T]},

		graph.Affine:  {run: affine[T], cut: elements[T]},
		graph.Power:   {run: power[T], cut: elements[T]},
		graph.Exp:     {run: unary(vector.Exp[T]), cut: elements[T]},
		graph.Log:     {run: logarithm[T], cut: elements[T]},
		graph.Erf:     {run: unary(vector.Erf[T]), cut: elements[T]},
		graph.Expand:  {run: expand[T], cut: rowsBut[T]()},
		graph.SumOver: {run: sumOver[T], cut: rowsBut[T]()},

		graph.Concat:          {run: concat[T], cut: outerRows[T]},
		graph.Slice:           {run: slice[T], cut: outerRows[T]},
		graph.SliceDX:         {run: sliceDX[T], cut: outerRows[T]},
		graph.SliceAccumulate: {run: sliceAccumulate[T], cut: outerRows[T]},

		graph.Dropout:   {run: dropout[T], cut: elements[T]},
		graph.DropoutDX: {run: dropout[T], cut: elements[T]},

		graph.SoftmaxXent:   {run: softmaxXent[T], partial: true},
		graph.SoftmaxXentDX: {run: softmaxXentDX[T]},

		graph.Embedding:   {run: embedding[T], in: operand{1, 8}, cut: rowsBut[T](0)},
		graph.EmbeddingDW: {run: embeddingDW[T], in: operand{0, 8}},
		graph.Bias:        {run: bias[T], cut: rowsBut[T](1)},

		graph.LayerNorm:     {run: layerNorm[T], partial: true, cut: rowsBut[T](1, 2)},
		graph.LayerNormGrad: {run: layerNormGrad[T], partial: true},

		graph.GELU:      {run: unary(vector.GELU[T]), cut: elements[T]},
		graph.GELUDX:    {run: geluDX[T], cut: elements[T]},
		graph.Sigmoid:   {run: unary(vector.Sigmoid[T]), cut: elements[T]},
		graph.SigmoidDX: {run: binary[T](sigmoidDX), cut: elements[T]},
		graph.Tanh:      {run: unary(vector.Tanh[T]), cut: elements[T]},
		graph.TanhDX:    {run: binary[T](tanhDX), cut: elements[T]},
		graph.Blend:     {run: blend[T], cut: elements[T]},
		graph.BlendGrad: {run: blendGrad[T], partial: true, cut: elements[T]},

		graph.MatMul:             {run: matmul[T], cut: products[T]},
		graph.Transpose:          {run: transpose[T], cut: rowsBut[T]()},
		graph.Softmax:            {run: softmaxRows[T], cut: rowsBut[T]()},
		graph.SoftmaxDX:          {run: softmaxDX[T], cut: rowsBut[T]()},
		graph.AdditiveScores:     {run: additiveScores[T], cut: rowsBut[T](2)},
		graph.AdditiveScoresGrad: {run: additiveScoresGrad[T], partial: true},

		graph.LSTM:     {run: lstm[T], partial: true, cut: rowsBut[T]()},
		graph.LSTMGrad: {run: lstmGrad[T], partial: true, cut: rowsBut[T]()},

		graph.MeanSquare:    {run: meanSquare[T]},
		graph.MeanSquareDX:  {run: meanSquareDX[T]},
		graph.SigmoidXent:   {run: sigmoidXent[T]},
		graph.SigmoidXentDX: {run: sigmoidXentDX[T]},

		graph.SGD:      {run: sgd[T], cut: elements[T]},
		graph.Momentum: {run: sgdMomentum[T], cut: elements[T]},
		graph.Adam:     {run: adam[T], cut: elements[T]},
	}
}

// Run computes the call's outputs.
func Run[T gemm.Float](c *Call[T]) {
	switch known := any(c).(type) {
	case *Call[float32]:
		run(kernels32, known)
	case *Call[float64]:
		run(kernels64, known)
	default:
		run(kernels[T](), c) // T has a name of its own
	}
}

func run[T gemm.Float](table map[graph.Kind]kernel[T], c *Call[T]) {
	k, ok := table[c.Kind]
	if !ok {
		panic(fmt.Sprintf("kernel: there is no kernel for %q", c.Kind))
	}
	fits(c, "input", c.In, c.InShapes, false, k.in)
	fits(c, "output", c.Out, c.OutShapes, k.partial, k.out)
	if k.scratch != nil {
		if need := k.scratch(c.Variant, c.Attrs, c.InShapes, c.OutShapes); len(c.Scratch) < need {
			panic(fmt.Sprintf("kernel: %s got %d elements of scratch, needs %d", c.Kind, len(c.Scratch), need))
		}
	}
	if c.Attrs.InPlace > 0 {
		c.updated(0, c.Attrs.InPlace-1)
	}
	if k.cut != nil && c.GEMM.Crew() != nil {
		divide(c, k.cut(c), k.run)
		return
	}
	k.run(c)
}

// fits panics unless every operand is as long as its shape says, or nil where that is allowed. One may hold another
// type: it is as long as the memory that its elements fill, the last float perhaps in part.
func fits[T gemm.Float](c *Call[T], what string, operands [][]T, shapes []graph.Shape, partial bool, other operand) {
	var zero T
	float := int(unsafe.Sizeof(zero))
	if len(operands) != len(shapes) {
		panic(fmt.Sprintf("kernel: %s got %d %ss and %d shapes", c.Kind, len(operands), what, len(shapes)))
	}
	for i, o := range operands {
		size := shapes[i].Elements()
		if i == other.at && other.size > 0 {
			size = (size*other.size + float - 1) / float
		}
		if len(o) != size && !(partial && o == nil) {
			panic(fmt.Sprintf("kernel: %s: %s %d has %d elements, want %d of shape %v", c.Kind, what, i, len(o), size,
				shapes[i]))
		}
	}
}

// updated returns output o, which must be the memory of input i.
func (c *Call[T]) updated(o, i int) []T {
	if unsafe.SliceData(c.Out[o]) != unsafe.SliceData(c.In[i]) {
		panic(fmt.Sprintf("kernel: %s: output %d is not input %d in place", c.Kind, o, i))
	}
	return c.Out[o]
}

// Scratch is the number of elements of scratch that a call of this kind and these shapes needs in its first variant.
func Scratch(kind graph.Kind, attrs graph.Attrs, in, out []graph.Shape) int {
	k, ok := kernels32[kind]
	if !ok {
		panic(fmt.Sprintf("kernel: there is no kernel for %q", kind))
	}
	if k.scratch == nil {
		return 0
	}
	return k.scratch("", attrs, in, out)
}

// Variant is a way to compute an op.
type Variant struct {
	Name    string
	Scratch int // Scratch memory in elements.
	Share   int // Time relative to the first variant, in thousandths; 0: the same.
}

// Variants returns the ways to compute an op, the default first, each other with less scratch than that before. All of
// them give the same bits.
func Variants(kind graph.Kind, attrs graph.Attrs, in, out []graph.Shape) []Variant {
	all := []Variant{{Name: layouts[0].name, Scratch: Scratch(kind, attrs, in, out)}}
	if kind != graph.Conv2DDX {
		return all
	}
	for _, l := range layouts[1:] {
		if n := kernels32[kind].scratch(l.name, attrs, in, out); n < all[len(all)-1].Scratch {
			all = append(all, Variant{l.name, n, l.share})
		}
	}
	return all
}
