package models

import (
	"math"

	"tensile/graph"
)

// net appends layers to a forward graph. Ops are named by the caller; parameters after their op.
type net struct {
	b        *graph.Builder
	divisor  int     // Config.Thin
	dropouts uint64  // so far: keys differ between the dropouts of a network
	epsilon  float64 // Epsilon of normalisations; 0 means 1e-5.
}

// window is the square window of a convolution or pooling, in pixels.
type window struct{ kernel, stride, pad int }

func (w window) attrs() graph.Attrs {
	return graph.Attrs{
		Kernel: [2]int{w.kernel, w.kernel}, Stride: [2]int{w.stride, w.stride}, Pad: [2]int{w.pad, w.pad},
	}
}

// thin returns how many of the given channels or units a layer has.
func (n *net) thin(channels int) int {
	if n.divisor <= 1 {
		return channels
	}
	const even = 4 // so that halves, and groups of two, stay whole
	return (channels + even*n.divisor - 1) / (even * n.divisor) * even
}

// normalising is the smallest image size of a network with batch normalisation, which needs two values per channel: a
// lone image must leave two pixels where several may leave one each.
func normalising(alone, several int) func(batch int) int {
	return func(batch int) int {
		if batch == 1 {
			return alone
		}
		return several
	}
}

// Gains of the variance that a weight's initial values keep: He's for layers that a ReLU follows, and 1 for the last.
const (
	reluGain   = 2
	linearGain = 1
)

func (n *net) weight(name string, fanIn int, gain float64, shape ...int) graph.TensorID {
	init := graph.Init{Kind: graph.InitNormal, Scale: math.Sqrt(gain / float64(fanIn))}
	return n.b.Persistent(name, graph.Parameter, shape, init)
}

func (n *net) vector(name string, role graph.Role, kind graph.InitKind, size int) graph.TensorID {
	return n.b.Persistent(name, role, graph.Shape{size}, graph.Init{Kind: kind})
}

func (n *net) addOp(name string, kind graph.Kind, attrs graph.Attrs, inputs ...graph.TensorID) graph.TensorID {
	return n.b.Op(name, kind, attrs, inputs...)[0]
}

// conv is a convolution without a bias: x[N,C,H,W] -> [N,out,P,Q].
func (n *net) conv(name string, x graph.TensorID, out int, w window) graph.TensorID {
	return n.filter(name, x, out, w.attrs())
}

// convBias is a convolution with a bias.
func (n *net) convBias(name string, x graph.TensorID, out int, w window) graph.TensorID {
	return n.filterBias(name, x, out, w.attrs())
}

// filter is a convolution without a bias, by a window of any form and in any number of groups.
func (n *net) filter(name string, x graph.TensorID, out int, a graph.Attrs) graph.TensorID {
	return n.addOp(name, graph.Conv2D, a, x, n.kernel(name, x, out, a))
}

// filterBias is filter with a bias.
func (n *net) filterBias(name string, x graph.TensorID, out int, a graph.Attrs) graph.TensorID {
	k := n.kernel(name, x, out, a)
	return n.addOp(name, graph.Conv2D, a, x, k, n.vector(name+".b", graph.Parameter, graph.InitZero, out))
}

func (n *net) kernel(name string, x graph.TensorID, out int, a graph.Attrs) graph.TensorID {
	in := n.b.Shape(x)[1] / max(1, a.Groups)
	return n.weight(name+".w", in*a.Kernel[0]*a.Kernel[1], reluGain, out, in, a.Kernel[0], a.Kernel[1])
}

// linear is y = x*w' + b: x[N,I] -> [N,out].
func (n *net) linear(name string, x graph.TensorID, out int, gain float64) graph.TensorID {
	in := n.b.Shape(x)[1]
	w := n.weight(name+".w", in, gain, out, in)
	return n.addOp(name, graph.Linear, graph.Attrs{}, x, w, n.vector(name+".b", graph.Parameter, graph.InitZero, out))
}

// norm is batch normalisation by the batch's own statistics; the running statistics are kept for evaluation. begin is
// how its scale starts out.
func (n *net) norm(name string, x graph.TensorID, begin graph.InitKind) graph.TensorID {
	c := n.b.Shape(x)[1]
	gamma := n.vector(name+".gamma", graph.Parameter, begin, c)
	beta := n.vector(name+".beta", graph.Parameter, graph.InitZero, c)
	mean := n.vector(name+".running_mean", graph.State, graph.InitZero, c)
	variance := n.vector(name+".running_variance", graph.State, graph.InitOne, c)
	stats := n.b.Op(name+".stats", graph.BatchNormStats, graph.Attrs{}, x)
	epsilon := n.epsilon
	if epsilon == 0 {
		epsilon = 1e-5
	}
	y := n.addOp(name, graph.BatchNorm, graph.Attrs{Epsilon: epsilon}, x, stats[0], stats[1], gamma, beta)
	n.b.Op(name+".running", graph.BatchNormUpdate, graph.Attrs{Momentum: 0.1, Length: n.b.Shape(x).Elements() / c},
		stats[0], stats[1], mean, variance)
	return y
}

func (n *net) relu(name string, x graph.TensorID) graph.TensorID {
	return n.addOp(name, graph.ReLU, graph.Attrs{}, x)
}

func (n *net) maxPool(name string, x graph.TensorID, w window) graph.TensorID {
	return n.addOp(name, graph.MaxPool, w.attrs(), x)
}

// globalAvgPool is the mean over the pixels: x[N,C,H,W] -> [N,C,1,1].
func (n *net) globalAvgPool(name string, x graph.TensorID) graph.TensorID {
	s := n.b.Shape(x)
	return n.addOp(name, graph.AvgPool, graph.Attrs{Kernel: [2]int{s[2], s[3]}, Stride: [2]int{1, 1}}, x)
}

// avgPool is the mean over those pixels of a window that are not padding.
func (n *net) avgPool(name string, x graph.TensorID, w window) graph.TensorID {
	a := w.attrs()
	a.Inside = true
	return n.addOp(name, graph.AvgPool, a, x)
}

// concat joins tensors along the channels.
func (n *net) concat(name string, parts ...graph.TensorID) graph.TensorID {
	return n.addOp(name, graph.Concat, graph.Attrs{Dim: 1}, parts...)
}

func (n *net) add(name string, a, b graph.TensorID) graph.TensorID {
	return n.addOp(name, graph.Add, graph.Attrs{}, a, b)
}

func (n *net) dropout(name string, x graph.TensorID, rate float64) graph.TensorID {
	n.dropouts++
	return n.addOp(name, graph.Dropout, graph.Attrs{Rate: rate, Key: n.dropouts}, x)
}

// flatten shows x[N,...] as [N,I].
func (n *net) flatten(x graph.TensorID) graph.TensorID {
	shape := n.b.Shape(x)
	return n.b.View("flatten", x, 0, graph.Shape{shape[0], shape.Elements() / shape[0]})
}
