package autodiff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
)

// draft builds small graphs: sources and ops by name.
type draft struct{ *graph.Builder }

func newDraft() draft { return draft{graph.NewBuilder("test")} }

func (d draft) input(name string, shape ...int) graph.TensorID {
	return d.Input(name, graph.Anything, graph.Float32, shape)
}

func (d draft) param(name string, shape ...int) graph.TensorID {
	return d.Persistent(name, graph.Parameter, shape, graph.Init{Kind: graph.InitZero})
}

func (d draft) op(name string, kind graph.Kind, inputs ...graph.TensorID) graph.TensorID {
	return d.Op(name, kind, graph.Attrs{}, inputs...)[0]
}

// loss ends the network with logits[N,C].
func (d draft) loss(logits graph.TensorID) graph.TensorID {
	return d.op("loss", graph.SoftmaxXent, logits, d.input("labels", d.Shape(logits)[0]))
}

// appended differentiates, validates, and prints the backward ops, the views among their inputs and the gradients.
func (d draft) appended(t *testing.T, loss graph.TensorID) []string {
	t.Helper()
	first := len(d.Peek().Ops)
	grads, err := Backward(d.Builder, loss)
	if err != nil {
		t.Fatal(err)
	}
	g, err := d.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, op := range g.Ops[first:] {
		if op.Phase != graph.Backward || op.Forward < 0 || op.Forward >= graph.OpID(first) {
			t.Errorf("op %s: phase %s, forward op %d", op.Name, op.Phase, op.Forward)
		}
		line := string(op.Kind)
		for _, in := range op.Inputs {
			line += " " + d.show(in)
		}
		lines = append(lines, line+" -> "+d.show(op.Outputs[0]))
	}
	for _, grad := range grads {
		p, dp := g.Tensors[grad.Parameter], g.Tensors[grad.Gradient]
		if !cmp.Equal(p.Shape, dp.Shape) {
			t.Errorf("parameter %s has shape %v, its gradient %v", p.Name, p.Shape, dp.Shape)
		}
		lines = append(lines, d.show(p.ID)+": "+d.show(dp.ID))
	}
	return lines
}

// show names a tensor, and a view by the storage and the shape it shows.
func (d draft) show(id graph.TensorID) string {
	t := d.Peek().Tensors[id]
	if s := d.Peek().Storages[t.Storage]; s.Name != t.Name {
		return strings.ReplaceAll(fmt.Sprint(s.Name, t.Shape), " ", ",")
	}
	return t.Name
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("backward ops (-want +got):\n%s", diff)
	}
}

// An input has no gradient; a weight's comes before that of x.
func TestLinear(t *testing.T) {
	d := newDraft()
	y := d.op("fc1", graph.Linear, d.input("x", 2, 3), d.param("w1", 4, 3), d.param("b1", 4))
	y = d.op("fc2", graph.Linear, y, d.param("w2", 5, 4), d.param("b2", 5))
	expect(t, d.appended(t, d.loss(y)),
		"softmax_xent_dx loss.1 labels -> loss.dx",
		"linear_dw fc1 loss.dx -> fc2.dw",
		"bias_db loss.dx -> fc2.db",
		"linear_dx loss.dx w2 -> fc2.dx",
		"linear_dw x fc2.dx -> fc1.dw",
		"bias_db fc2.dx -> fc1.db",
		"w1: fc1.dw", "b1: fc1.db", "w2: fc2.dw", "b2: fc2.db",
	)
}

// A convolutional network with every kind that keeps x, y or a key; the gradient of the flattened tensor is a view.
func TestConvolutionalNetwork(t *testing.T) {
	window := graph.Attrs{Kernel: [2]int{3, 3}, Stride: [2]int{2, 2}, Pad: [2]int{1, 1}}
	d := newDraft()
	y := d.Op("conv1", graph.Conv2D, window, d.input("x", 2, 3, 16, 13), d.param("w1", 4, 3, 3, 3))[0]
	d.SetLayer("second")
	y = d.Op("conv2", graph.Conv2D, window, y, d.param("w2", 4, 4, 3, 3), d.param("b2", 4))[0]
	d.SetLayer("rest")
	y = d.op("relu", graph.ReLU, y)
	y = d.Op("max", graph.MaxPool, window, y)[0]
	y = d.Op("avg", graph.AvgPool, graph.Attrs{Kernel: [2]int{2, 2}, Stride: [2]int{1, 1}}, y)[0]
	y = d.Op("drop", graph.Dropout, graph.Attrs{Rate: 0.25, Key: 7}, y)[0]
	expect(t, d.appended(t, d.loss(d.View("flat", y, 0, graph.Shape{2, 4}))),
		"softmax_xent_dx loss.1 labels -> loss.dx",
		"dropout_dx loss.dx[2,4,1,1] -> drop.dx",
		"avg_pool_dx max avg drop.dx -> avg.dx",
		"max_pool_dx relu max avg.dx -> max.dx",
		"relu_dx conv2 relu max.dx -> relu.dx",
		"conv2d_dw conv1 relu.dx -> conv2.dw",
		"bias_db relu.dx -> conv2.db",
		"conv2d_dx relu.dx w2 -> conv2.dx",
		"conv2d_dw x conv2.dx -> conv1.dw",
		"w1: conv1.dw", "w2: conv2.dw", "b2: conv2.db",
	)
	g := d.Peek()
	attrs := map[string]graph.Attrs{
		"conv2.dw": window,
		"conv2.dx": {Kernel: window.Kernel, Stride: window.Stride, Pad: window.Pad, Extent: [2]int{8, 7}},
		"max.dx":   window,
		"avg.dx":   {Kernel: [2]int{2, 2}, Stride: [2]int{1, 1}},
		"drop.dx":  {Rate: 0.25, Key: 7},
		"relu.dx":  {},
	}
	layers := map[string]string{"conv2.db": "second", "conv1.dw": "", "relu.dx": "rest"}
	for _, op := range g.Ops {
		if want, ok := attrs[op.Name]; ok && op.Attrs != want {
			t.Errorf("op %s has %+v, want %+v", op.Name, op.Attrs, want)
		}
		if want, ok := layers[op.Name]; ok && op.Layer != want {
			t.Errorf("op %s is of layer %q, want %q", op.Name, op.Layer, want)
		}
		if op.Phase == graph.Backward && !strings.HasPrefix(op.Name, g.Ops[op.Forward].Name+".") {
			t.Errorf("op %s belongs to %s", op.Name, g.Ops[op.Forward].Name)
		}
	}
}

// norm appends a batch normalisation of x[N,2,H,W] and the update of its running statistics.
func (d draft) norm(x graph.TensorID) graph.TensorID {
	stats := d.Op("stats", graph.BatchNormStats, graph.Attrs{}, x)
	y := d.Op("bn", graph.BatchNorm, graph.Attrs{Epsilon: 0.5}, x, stats[0], stats[1], d.param("gamma", 2),
		d.param("beta", 2))[0]
	one := graph.Init{Kind: graph.InitOne}
	running := []graph.TensorID{d.Persistent("rm", graph.State, graph.Shape{2}, one), d.Persistent("rv", graph.State,
		graph.Shape{2}, one)}
	d.Op("running", graph.BatchNormUpdate, graph.Attrs{Momentum: 0.1, Length: d.Shape(x).Elements() / 2}, stats[0],
		stats[1], running[0], running[1])
	return y
}

func TestBatchNorm(t *testing.T) {
	d := newDraft()
	x := d.op("conv", graph.Mul, d.input("x", 3, 2, 1, 1), d.param("w", 3, 2, 1, 1))
	y := d.norm(x)
	expect(t, d.appended(t, d.loss(d.View("flat", y, 0, graph.Shape{3, 2}))),
		"softmax_xent_dx loss.1 labels -> loss.dx",
		"batch_norm_grad conv stats.0 stats.1 gamma loss.dx[3,2,1,1] -> bn.grad.0",
		"mul bn.grad.0 x -> conv.db",
		"w: conv.db", "gamma: bn.grad.1", "beta: bn.grad.2",
	)
	for _, op := range d.Peek().Ops {
		if op.Kind == graph.BatchNormGrad && op.Attrs != (graph.Attrs{Epsilon: 0.5}) {
			t.Errorf("op %s has %+v", op.Name, op.Attrs)
		}
	}
}

// A tensor with three readers: the sum is made when a contribution is not the first, and add makes no copies.
func TestFanIn(t *testing.T) {
	d := newDraft()
	a := d.op("a", graph.Mul, d.input("x", 2, 3), d.param("w", 2, 3))
	b := d.op("b", graph.ReLU, a)
	c := d.op("c", graph.Add, b, a)
	e := d.op("e", graph.Add, c, a)
	expect(t, d.appended(t, d.loss(e)),
		"softmax_xent_dx loss.1 labels -> loss.dx",
		"add loss.dx loss.dx -> a.grad2",
		"relu_dx a b loss.dx -> b.dx",
		"add a.grad2 b.dx -> a.grad3",
		"mul a.grad3 x -> a.db",
		"w: a.db",
	)
}

// The same parameter in several places, and once as a view, has one gradient, added up in place from the third term on.
func TestSharedParameter(t *testing.T) {
	d := newDraft()
	w := d.param("w", 3, 3)
	y := d.op("fc1", graph.Linear, d.input("x", 2, 3), w)
	y = d.op("fc2", graph.Linear, y, w)
	y = d.op("fc3", graph.Linear, y, d.View("row", d.op("sq", graph.Mul, w, w), 0, graph.Shape{3, 3}))
	y = d.op("shift", graph.Add, d.View("flat", y, 0, graph.Shape{6}), d.View("flatter", d.param("s", 2, 3), 0,
		graph.Shape{6}))
	expect(t, d.appended(t, d.loss(d.View("logits", y, 0, graph.Shape{2, 3}))),
		"softmax_xent_dx loss.1 labels -> loss.dx",
		"linear_dw fc2 loss.dx[2,3] -> fc3.dw",
		"linear_dx loss.dx[2,3] sq[3,3] -> fc3.dx",
		"mul fc3.dw w -> sq.da",
		"mul fc3.dw w -> sq.db",
		"add sq.da sq.db -> w.grad2",
		"linear_dw fc1 fc3.dx -> fc2.dw",
		"accumulate w.grad2 fc2.dw -> w.grad2",
		"linear_dx fc3.dx w -> fc2.dx",
		"linear_dw x fc2.dx -> fc1.dw",
		"accumulate w.grad2 fc1.dw -> w.grad2",
		"w: w.grad2", "s: loss.dx[2,3]",
	)
}

// What leads to no parameter, and what the loss does not depend on, has no gradient.
func TestNothingSuperfluous(t *testing.T) {
	d := newDraft()
	x := d.op("relu", graph.ReLU, d.input("x", 2, 3))
	y := d.op("fc", graph.Linear, x, d.param("w", 3, 3))
	d.op("unused", graph.Linear, y, d.param("unused.w", 3, 3))
	y = d.op("mask", graph.Mul, y, d.op("drop", graph.ReLU, x))
	y = d.op("sum", graph.Add, y, d.op("offset", graph.ReLU, x))
	expect(t, d.appended(t, d.loss(y)),
		"softmax_xent_dx loss.1 labels -> loss.dx",
		"mul loss.dx drop -> mask.da",
		"linear_dw relu mask.da -> fc.dw",
		"w: fc.dw",
	)
}

// A sum of losses is a loss: each term's gradient is that of the term alone.
func TestSumOfLosses(t *testing.T) {
	d := newDraft()
	labels := d.input("labels", 2)
	y := d.op("fc1", graph.Linear, d.input("x", 2, 3), d.param("w1", 3, 3))
	z := d.op("fc2", graph.Linear, y, d.param("w2", 3, 3))
	side := d.op("side", graph.SoftmaxXent, y, labels)
	loss := d.op("loss", graph.Add, side, d.op("main", graph.SoftmaxXent, z, labels))
	expect(t, d.appended(t, loss),
		"softmax_xent_dx main.1 labels -> main.dx",
		"softmax_xent_dx side.1 labels -> side.dx",
		"linear_dw fc1 main.dx -> fc2.dw",
		"linear_dx main.dx w2 -> fc2.dx",
		"add side.dx fc2.dx -> fc1.grad2",
		"linear_dw x fc1.grad2 -> fc1.dw",
		"w1: fc1.dw", "w2: fc2.dw",
	)
}

func TestBackwardErrors(t *testing.T) {
	tests := []struct {
		name  string
		build func(d draft) graph.TensorID
		want  string
	}{
		{"no parameter", func(d draft) graph.TensorID { return d.loss(d.input("x", 2, 3)) },
			"loss loss.0 depends on no parameter"},
		{"partial view", func(d draft) graph.TensorID {
			return d.loss(d.View("half", d.param("w", 4, 3), 24, graph.Shape{2, 3}))
		}, "gradient of op loss: input half is a view of a part of w (24 of 48 bytes), which has no gradient"},
		{"kind without rule", func(d draft) graph.TensorID {
			return d.loss(d.op("acc", graph.Accumulate, d.op("relu", graph.ReLU, d.param("w", 2, 3)),
				d.input("x", 2, 3)))
		}, "gradient of op acc: accumulate has no gradient"},
		{"use of statistics", func(d draft) graph.TensorID {
			stats := d.Op("stats", graph.BatchNormStats, graph.Attrs{}, d.param("w", 2, 2, 3, 1))
			return d.loss(d.View("row", stats[0], 0, graph.Shape{1, 2}))
		}, "gradient of op stats: batch_norm_stats has no gradient"},
		{"foreign statistics", func(d draft) graph.TensorID {
			one := graph.Init{Kind: graph.InitOne}
			mean, variance := d.Persistent("mean", graph.State, graph.Shape{2}, one), d.Persistent("var", graph.State,
				graph.Shape{2}, one)
			y := d.Op("bn", graph.BatchNorm, graph.Attrs{Epsilon: 0.5}, d.input("x", 3, 2, 1, 1), mean, variance,
				d.param("gamma", 2), d.param("beta", 2))[0]
			return d.loss(d.View("flat", y, 0, graph.Shape{3, 2}))
		}, "gradient of op bn: mean and variance must be what batch_norm_stats makes of x"},
		{"statistics of another tensor", func(d draft) graph.TensorID {
			stats := d.Op("stats", graph.BatchNormStats, graph.Attrs{}, d.input("z", 3, 2, 1, 1))
			y := d.Op("bn", graph.BatchNorm, graph.Attrs{Epsilon: 0.5}, d.input("x", 3, 2, 1, 1), stats[0], stats[1],
				d.param("gamma", 2), d.param("beta", 2))[0]
			return d.loss(d.View("flat", y, 0, graph.Shape{3, 2}))
		}, "mean and variance must be what batch_norm_stats makes of x"},
		{"loss of another kind", func(d draft) graph.TensorID { return d.op("relu", graph.ReLU, d.param("w", 1)) },
			"gradient of op relu: a loss is made by one of [softmax_xent sigmoid_xent mean_square], or is a sum of " +
				"such losses, not made by relu"},
		{"probabilities", func(d draft) graph.TensorID {
			p := d.Op("xent", graph.SoftmaxXent, graph.Attrs{}, d.param("w", 2, 3), d.input("labels", 2))[1]
			return d.op("loss", graph.SoftmaxXent, p, d.input("others", 2))
		}, "gradient of op xent: only its loss"},
		{"loss twice", func(d draft) graph.TensorID {
			l := d.loss(d.param("w", 2, 3))
			return d.op("sum", graph.Add, l, l)
		}, "gradient of op sum: loss loss.0 is used more than once"},
		{"trained labels", func(d draft) graph.TensorID {
			return d.op("loss", graph.SoftmaxXent, d.input("x", 2, 3), d.param("labels", 2))
		}, "gradient of op loss: labels labels depend on a parameter"},
		{"broken builder", func(d draft) graph.TensorID {
			return d.op("fc", graph.Linear, d.input("x", 2, 3), d.param("w", 3, 4))
		}, "op fc: linear: w has shape [3 4]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDraft()
			grads, err := Backward(d.Builder, test.build(d))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want it to contain %q", err, test.want)
			}
			if grads != nil {
				t.Errorf("gradients %v beside an error", grads)
			}
		})
	}
}
