package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models"
	"tensile/models/passes"
)

// network is a training graph with layers of random kinds and sizes: forward, backward and optimizer ops. Most read
// images. Every other one is rewritten by all passes.
func network(rng *rand.Rand) (*graph.Graph, error) {
	g, err := layers(rng)
	if err != nil || rng.IntN(2) == 0 {
		return g, err
	}
	g, _, err = passes.Apply(g, passes.Names())
	return g, err
}

// layers is a network as it is differentiated.
func layers(rng *rand.Rand) (*graph.Graph, error) {
	if rng.IntN(4) == 0 {
		return sentences(rng)
	}
	d := &draft{rng: rng, b: graph.NewBuilder("calibration")}
	batch := d.size(1, 32)
	image := d.size(4, 112)
	x := d.b.Input("input", graph.Anything, graph.Float32, graph.Shape{batch, []int{1, 3, d.size(4, 256)}[rng.IntN(3)],
		image, image})
	labels := d.b.Input("labels", graph.Anything, graph.Float32, graph.Shape{batch})
	for range 1 + rng.IntN(4) {
		x = d.block(x)
	}
	x = d.flat(x)
	for range rng.IntN(3) {
		x = d.op("fc.relu", graph.ReLU, graph.Attrs{}, d.linear(x, d.size(16, 4096)))
		if rng.IntN(2) == 0 {
			x = d.op("dropout", graph.Dropout, graph.Attrs{Rate: 0.5, Key: uint64(d.ops)}, x)
		}
	}
	logits := d.linear(x, []int{10, 100, 1000}[rng.IntN(3)])
	loss := d.b.Op("loss", graph.SoftmaxXent, graph.Attrs{}, logits, labels)[0]
	d.b.Output(loss)
	grads, err := autodiff.Backward(d.b, loss)
	if err != nil {
		return nil, err
	}
	optimizer, err := mildOptimizer(rng)
	if err != nil {
		return nil, err
	}
	if err := autodiff.Optimize(d.b, grads, optimizer); err != nil {
		return nil, err
	}
	g, err := d.b.Graph()
	if err != nil {
		return nil, err
	}
	return g, g.Validate()
}

// mildOptimizer is one that hardly changes anything.
func mildOptimizer(rng *rand.Rand) (autodiff.Optimizer, error) {
	return autodiff.ParseOptimizer([]string{"sgd", "momentum", "adam"}[rng.IntN(3)], new(1e-6))
}

// sentences is a network that reads sequences, in a random size of its family.
func sentences(rng *rand.Rand) (*graph.Graph, error) {
	d := &draft{rng: rng}
	heads := 1 << rng.IntN(4)
	width := heads * d.size(8, 64)
	name := []string{
		fmt.Sprintf("bert:%d,%d,%d", 1+rng.IntN(2), width, heads),
		fmt.Sprintf("gpt:%d,%d,%d", 1+rng.IntN(3), width, heads),
		fmt.Sprintf("gnmt:%d,%d", 3+rng.IntN(2), d.size(16, 512)),
		fmt.Sprintf("rhn:%d,%d", 1+rng.IntN(4), d.size(16, 512)),
		fmt.Sprintf("tacotron:1,%d", 16*d.size(1, 16)),
	}[rng.IntN(5)]
	optimizer, err := mildOptimizer(rng)
	if err != nil {
		return nil, err
	}
	return models.Build(name, models.Config{Sequence: d.size(4, 32), Vocabulary: d.size(30, 8000), Batch: d.size(1, 32),
		Optimizer: optimizer})
}

// draft is a network that is being made.
type draft struct {
	rng *rand.Rand
	b   *graph.Builder
	ops int
}

// size is a random size, all octaves being as likely.
func (d *draft) size(lo, hi float64) int {
	return int(math.Round(lo * math.Pow(hi/lo, d.rng.Float64())))
}

// op appends an op under a name of its own and returns its first output.
func (d *draft) op(name string, kind graph.Kind, attrs graph.Attrs, in ...graph.TensorID) graph.TensorID {
	d.ops++
	return d.b.Op(fmt.Sprint(name, d.ops), kind, attrs, in...)[0]
}

func (d *draft) source(name string, role graph.Role, kind graph.InitKind, shape ...int) graph.TensorID {
	d.ops++
	return d.b.Persistent(fmt.Sprint(name, d.ops), role, shape, graph.Init{Kind: kind, Scale: 0.01})
}

// windows are the windows of convolutions.
var windows = [][2]int{{1, 1}, {1, 1}, {3, 3}, {3, 3}, {3, 3}, {5, 5}, {7, 7}, {1, 7}, {7, 1}, {1, 3}, {3, 1}}

// block is a convolution with what usually follows it.
func (d *draft) block(x graph.TensorID) graph.TensorID {
	y := d.conv(x, d.size(8, 512), windows[d.rng.IntN(len(windows))], 1+d.rng.IntN(4)/3)
	y = d.op("relu", graph.ReLU, graph.Attrs{}, d.norm(y))
	if d.rng.IntN(3) == 0 { // a residual
		y = d.op("add", graph.Add, graph.Attrs{}, y, d.conv(y, d.b.Shape(y)[1], [2]int{3, 3}, 1))
	}
	if d.rng.IntN(8) == 0 {
		y = d.op("mul", graph.Mul, graph.Attrs{}, y, d.op("gate", graph.ReLU, graph.Attrs{}, y))
	}
	if s := d.b.Shape(y); d.rng.IntN(3) == 0 && s[2] >= 3 && s[3] >= 3 {
		k := 2 + d.rng.IntN(2)
		a := graph.Attrs{Kernel: [2]int{k, k}, Stride: [2]int{2, 2}}
		y = d.op("pool", []graph.Kind{graph.MaxPool, graph.AvgPool}[d.rng.IntN(2)], a, y)
	}
	switch d.rng.IntN(8) {
	case 0, 1:
		y = d.join(y)
	case 2:
		y = d.groups(y)
	case 3:
		y = d.op("lrn", graph.LRN, graph.Attrs{Length: 5, Factor: 1e-4, Exponent: 0.75, Epsilon: 1}, y)
	case 4:
		y = d.arithmetic(y)
	}
	return y
}

// arithmetic is a layer normalisation of channels as ONNX files have it, with other elementwise ops around it.
func (d *draft) arithmetic(x graph.TensorID) graph.TensorID {
	s := d.b.Shape(x)
	none, rows := graph.Attrs{}, graph.Shape{s[0], s[1], s[2] * s[3]}
	square := d.op("square", graph.Power, graph.Attrs{Exponent: 2}, x)
	mean := d.op("sum", graph.SumOver, none, d.b.View("channels", square, 0, rows))
	mean = d.op("mean", graph.Affine, graph.Attrs{Factor: 1 / float64(s[1]), Shift: 1e-5}, mean)
	scale := d.op("root", graph.Exp, none, d.op("half", graph.Affine, graph.Attrs{Factor: -0.5},
		d.op("log", graph.Log, none, mean)))
	scale = d.op("expand", graph.Expand, graph.Attrs{Extent: [2]int{s[1]}}, scale)
	x = d.op("scaled", graph.Mul, none, x, d.b.View("scales", scale, 0, s))
	return d.op("erf", graph.Erf, none, x)
}

// join lays several readings of x side by side.
func (d *draft) join(x graph.TensorID) graph.TensorID {
	s := d.b.Shape(x)
	parts := []graph.TensorID{d.conv(x, d.size(8, 128), [2]int{1, 1}, 1)}
	if s[2] >= 3 && s[3] >= 3 {
		a := graph.Attrs{Kernel: [2]int{3, 3}, Stride: [2]int{1, 1}, Pad: [2]int{1, 1}, Inside: true}
		parts = append(parts, d.op("inside", graph.AvgPool, a, x))
	}
	if s[1] > 1 {
		parts = append(parts, d.op("slice", graph.Slice, graph.Attrs{Dim: 1, Length: s[1] / 2}, x))
	}
	if s[2] > 1 && s[3] > 1 {
		parts = append(parts, d.op("moved", graph.Pad, graph.Attrs{Pad: [2]int{-1, 1}, Extent: [2]int{s[2], s[3]}}, x))
	}
	return d.op("concat", graph.Concat, graph.Attrs{Dim: 1}, parts...)
}

// groups is a convolution in two groups, or one of each channel.
func (d *draft) groups(x graph.TensorID) graph.TensorID {
	c := d.b.Shape(x)[1]
	groups := c
	if c%2 == 0 && d.rng.IntN(3) == 0 {
		groups = 2
	}
	a := graph.Attrs{Kernel: [2]int{3, 3}, Stride: [2]int{1, 1}, Pad: [2]int{1, 1}, Groups: groups}
	return d.op("groups", graph.Conv2D, a, x, d.source("w", graph.Parameter, graph.InitNormal, c, c/groups, 3, 3))
}

// conv is a convolution that keeps the size, but for its stride; with a bias or without.
func (d *draft) conv(x graph.TensorID, out int, w [2]int, stride int) graph.TensorID {
	kernel := d.source("w", graph.Parameter, graph.InitNormal, out, d.b.Shape(x)[1], w[0], w[1])
	a := graph.Attrs{Kernel: w, Stride: [2]int{stride, stride}, Pad: [2]int{w[0] / 2, w[1] / 2}}
	if d.rng.IntN(3) == 0 {
		return d.op("conv", graph.Conv2D, a, x, kernel, d.source("b", graph.Parameter, graph.InitZero, out))
	}
	return d.op("conv", graph.Conv2D, a, x, kernel)
}

// norm normalises a batch, or leaves it.
func (d *draft) norm(x graph.TensorID) graph.TensorID {
	if d.rng.IntN(4) == 0 {
		return x
	}
	c := d.b.Shape(x)[1]
	gamma, beta := d.source("gamma", graph.Parameter, graph.InitOne, c),
		d.source("beta", graph.Parameter, graph.InitZero, c)
	mean, variance := d.source("mean", graph.State, graph.InitZero, c),
		d.source("variance", graph.State, graph.InitOne, c)
	d.ops++
	stats := d.b.Op(fmt.Sprint("stats", d.ops), graph.BatchNormStats, graph.Attrs{}, x)
	y := d.op("norm", graph.BatchNorm, graph.Attrs{Epsilon: 1e-5}, x, stats[0], stats[1], gamma, beta)
	d.op("running", graph.BatchNormUpdate, graph.Attrs{Momentum: 0.1, Length: max(2, d.b.Shape(x).Elements()/c)},
		stats[0], stats[1], mean, variance)
	return y
}

// flat has rows per example: all elements of small images, the mean over large ones.
func (d *draft) flat(x graph.TensorID) graph.TensorID {
	if s := d.b.Shape(x); s[1]*s[2]*s[3] > 8192 {
		x = d.op("mean", graph.AvgPool, graph.Attrs{Kernel: [2]int{s[2], s[3]}, Stride: [2]int{1, 1}}, x)
	}
	s := d.b.Shape(x)
	d.ops++
	return d.b.View(fmt.Sprint("flat", d.ops), x, 0, graph.Shape{s[0], s[1] * s[2] * s[3]})
}

func (d *draft) linear(x graph.TensorID, out int) graph.TensorID {
	w := d.source("fc.w", graph.Parameter, graph.InitNormal, out, d.b.Shape(x)[1])
	return d.op("fc", graph.Linear, graph.Attrs{}, x, w, d.source("fc.b", graph.Parameter, graph.InitZero, out))
}
