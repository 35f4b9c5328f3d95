package predictor

import "tensile/graph"

// CallOf is an op of a graph as the model sees it, while others use a share of the device.
func CallOf(g *graph.Graph, id graph.OpID, load float64) Call {
	op := &g.Ops[id]
	c := Call{Kind: string(op.Kind), Load: load}
	in := func(i int) graph.Shape { return g.Tensors[op.Inputs[i]].Shape }
	out := g.Tensors[op.Outputs[0]].Shape
	switch op.Kind {
	case graph.Linear:
		c.Form, c.Dims = Gemm, Dims{B: 1, M: in(0)[0], N: in(0)[1], K: out[1]}
	case graph.LinearDW: // x[N,I] dy[N,O] -> dw[O,I]
		c.Form, c.Dims = Gemm, Dims{B: 1, M: out[0], N: in(0)[0], K: out[1]}
	case graph.LinearDX: // dy[N,O] w[O,I] -> dx[N,I]
		c.Form, c.Dims = Gemm, Dims{B: 1, M: out[0], N: in(0)[1], K: out[1]}
	case graph.MatMul: // a[B,M,N] b[B,N,K], or the other way round
		inner := in(0)[2]
		if op.Attrs.TransposeA {
			inner = in(0)[1]
		}
		c.Form, c.Dims = Gemm, Dims{B: out[0], M: out[1], N: inner, K: out[2]}
	case graph.Conv2D:
		c.Form, c.Dims = Conv, windows(op.Attrs, in(0), in(1), out)
	case graph.Conv2DDW: // x dy -> dw
		c.Form, c.Dims = Conv, windows(op.Attrs, in(0), out, in(1))
	case graph.Conv2DDX: // dy w -> dx
		c.Form, c.Dims = Conv, windows(op.Attrs, out, in(1), in(0))
	default:
		c.Form, c.Dims = Stream, elements(g, op, int(g.Cost(id).FLOPs))
		if op.Kind == graph.EmbeddingDW && op.Attrs.Length > 0 { // some rows of the table: dy's share of them
			dy := in(1).Elements()
			c.Dims.Read -= dy - dy*op.Attrs.Length/op.Attrs.Extent[0]
		}
	}
	return c
}

// CallsOf are the ops of a graph, in their order.
func CallsOf(g *graph.Graph, load float64) []Call {
	calls := make([]Call, len(g.Ops))
	for i := range calls {
		calls[i] = CallOf(g, graph.OpID(i), load)
	}
	return calls
}

// windows are the dims of a convolution of x[N,C,H,W] with w[K,C/G,R,S] to y[N,K,P,Q], whichever of them it computes. G
// groups are as many convolutions of an example.
func windows(a graph.Attrs, x, w, y graph.Shape) Dims {
	groups := max(1, a.Groups)
	return Dims{B: x[0] * groups, C: x[1] / groups, H: x[2], W: x[3], K: w[0] / groups, R: w[2], S: w[3], P: y[2],
		Q:      y[3],
		Stride: max(1, a.Stride[0])}
}

// elements are the dims of a stream: rows and width are those of its largest operand, channels counting with the rows.
func elements(g *graph.Graph, op *graph.Op, flops int) Dims {
	d := Dims{Ops: flops}
	var largest graph.Shape
	count := func(t graph.TensorID) int {
		s := g.Tensors[t].Shape
		n := int(s.Bytes() / 4)
		if g.Tensors[t].DType == graph.Uint8 {
			n /= 4 // a quarter of the traffic
		}
		if largest == nil || n > int(largest.Bytes()/4) {
			largest = s
		}
		return n
	}
	for _, t := range op.Inputs {
		d.Read += count(t)
	}
	for _, t := range op.Outputs {
		d.Write += count(t)
	}
	d.M, d.K = 1, 1
	rows := min(2, len(largest)-1)
	if len(largest) == 2 {
		rows = 1
	}
	for i, n := range largest {
		if i < rows {
			d.M *= n
		} else {
			d.K *= n
		}
	}
	return d
}

// equivalents are the kinds that stand for others of which there are no measurements. Public ones stand for kinds of
// graph: the same product or convolution with operands exchanged, the same traffic through an elementwise kernel. Kinds
// that passes make are stood for by those whose place they take.
var equivalents = map[graph.Kind]string{
	graph.Linear: "linear", graph.LinearDW: "linear", graph.LinearDX: "linear",
	graph.Conv2D: "conv", graph.Conv2DDW: "conv", graph.Conv2DDX: "conv",
	graph.ReLU: "relu", graph.Add: "add", graph.Mul: "mul", graph.SoftmaxXent: "softmax", graph.BatchNorm: "ln",
	graph.MatMul: "bmm", graph.LayerNorm: "ln", graph.Softmax: "softmax", graph.GELU: "gelu", graph.Tanh: "tanh",
	graph.Bias: "addu",

	graph.ReLUYDX: string(graph.ReLUDX), graph.MaxPoolIndices: string(graph.MaxPool),
	graph.MaxPoolIndicesDX: string(graph.MaxPoolDX), graph.AvgPoolDYDX: string(graph.AvgPoolDX),
}

// equivalentKinds are the kinds that may stand for a call of a kind that was not trained on, the best first.
func equivalentKinds(c *Call) []string {
	var kinds []string
	if kind, ok := equivalents[graph.Kind(c.Kind)]; ok {
		kinds = append(kinds, kind)
	}
	if c.Form != Stream {
		return kinds
	}
	if c.Dims.Read > c.Dims.M*c.Dims.K {
		return append(kinds, "add", "addu", "relu")
	}
	return append(kinds, "addu", "relu", "add")
}
