package autodiff_test

import (
	"fmt"
	"testing"

	"tensile/graph"
	"tensile/graph/autodiff"
)

// sequences is a small network with an op of every kind that reads sequences, and a loss of every kind.
func sequences(t *testing.T) *graph.Graph {
	t.Helper()
	s := &sequence{graph.NewBuilder("sequences")}
	const n, steps, width, words = 2, 3, 4, 5
	table, rows := s.normal("table", words, width), graph.Shape{n * steps, width}
	x := s.one("embed", graph.Embedding, graph.Attrs{}, table, s.Input("tokens", graph.Anything, graph.Int64,
		graph.Shape{n * steps}))
	x = s.one("place", graph.Bias, graph.Attrs{}, s.View("sentences", x, 0, graph.Shape{n, steps * width}),
		s.normal("places", steps*width))
	x = s.one("norm", graph.LayerNorm, graph.Attrs{Epsilon: 1e-3}, s.View("words", x, 0, rows),
		s.normal("gamma", width), s.normal("beta", width))
	x = s.one("gelu", graph.GELU, graph.Attrs{}, s.attend(x, n, steps, width))
	x = s.one("blend", graph.Blend, graph.Attrs{}, s.one("share", graph.Sigmoid, graph.Attrs{}, s.linear("s", x)),
		s.one("tanh", graph.Tanh, graph.Attrs{}, s.linear("t", x)), x)
	h := s.recur(x, n, steps, width)
	x3 := s.View("queries", x, 0, graph.Shape{n, steps, width})
	e := s.one("scores", graph.AdditiveScores, graph.Attrs{}, x3, h, s.normal("v", width))

	x = s.arithmetic(x)
	loss := s.one("loss", graph.SoftmaxXent, graph.Attrs{}, s.one("tied", graph.Linear, graph.Attrs{}, x, table),
		s.Input("labels", graph.Anything, graph.Float32, graph.Shape{n * steps}))
	near := s.one("near", graph.MeanSquare, graph.Attrs{}, h, s.Input("frames", graph.Anything, graph.Float32,
		s.Shape(h)))
	stop := s.one("stop", graph.SigmoidXent, graph.Attrs{}, e, s.Input("ends", graph.Anything, graph.Float32,
		s.Shape(e)))
	loss = s.one("sum", graph.Add, graph.Attrs{}, s.one("sum of two", graph.Add, graph.Attrs{}, loss, near), stop)
	s.Output(loss)
	grads, err := autodiff.Backward(s.Builder, loss)
	if err == nil {
		err = autodiff.Optimize(s.Builder, grads, autodiff.SGD{})
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Graph()
	if err == nil {
		err = g.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

type sequence struct{ *graph.Builder }

func (s *sequence) one(name string, kind graph.Kind, a graph.Attrs, in ...graph.TensorID) graph.TensorID {
	return s.Op(name, kind, a, in...)[0]
}

func (s *sequence) normal(name string, shape ...int) graph.TensorID {
	return s.Persistent(name, graph.Parameter, shape, graph.Init{Kind: graph.InitNormal, Scale: 0.4})
}

// linear is a square layer without a bias; that of a key would have no gradient.
func (s *sequence) linear(name string, x graph.TensorID) graph.TensorID {
	width := s.Shape(x)[1]
	return s.one(name, graph.Linear, graph.Attrs{}, x, s.normal(name+".w", width, width))
}

// arithmetic is x[N,K] plus a row of sums, by every kind of arithmetic.
func (s *sequence) arithmetic(x graph.TensorID) graph.TensorID {
	n, k := s.Shape(x)[0], s.Shape(x)[1]
	one := func(kind graph.Kind, a graph.Attrs, in ...graph.TensorID) graph.TensorID {
		return s.one("arithmetic "+string(kind), kind, a, in...)
	}
	y := one(graph.Exp, graph.Attrs{}, one(graph.Erf, graph.Attrs{}, x))
	y = one(graph.Log, graph.Attrs{}, one(graph.Affine, graph.Attrs{Factor: 0.5, Shift: 1}, y))
	y = one(graph.Power, graph.Attrs{Exponent: 1.5}, y)
	sums := one(graph.SumOver, graph.Attrs{}, s.View("arithmetic whole", y, 0, graph.Shape{1, n, k}))
	rows := s.View("arithmetic rows", one(graph.Expand, graph.Attrs{Extent: [2]int{n}}, sums), 0, graph.Shape{n, k})
	return one(graph.Add, graph.Attrs{}, x, one(graph.Mul, graph.Attrs{}, rows, y))
}

// attend is causal attention of two heads, with products in all four forms.
func (s *sequence) attend(x graph.TensorID, n, steps, width int) graph.TensorID {
	heads := func(name string) graph.TensorID {
		y := s.View(name+".split", s.linear(name, x), 0, graph.Shape{n, steps, 2, width / 2})
		return s.View(name+".heads", s.one(name+".turned", graph.Transpose, graph.Attrs{}, y), 0,
			graph.Shape{2 * n, steps, width / 2})
	}
	q, k, v := heads("q"), heads("k"), heads("v")
	var sum graph.TensorID
	for form := range 4 {
		turned := graph.Attrs{TransposeA: form&1 != 0, TransposeB: form&2 != 0}
		name := fmt.Sprintf("qk%d", form)
		a, b := q, k
		if turned.TransposeA {
			a = s.turn(name+".a", a)
		}
		if !turned.TransposeB {
			b = s.turn(name+".b", b)
		}
		y := s.one(name, graph.MatMul, turned, a, b)
		if form > 0 {
			y = s.one(name+".sum", graph.Add, graph.Attrs{}, sum, y)
		}
		sum = y
	}
	p := s.one("shares", graph.Softmax, graph.Attrs{Factor: 0.8, Causal: true}, sum)
	y := s.View("split", s.one("seen", graph.MatMul, graph.Attrs{}, p, v), 0, graph.Shape{n, 2, steps, width / 2})
	return s.View("merged", s.one("back", graph.Transpose, graph.Attrs{}, y), 0, graph.Shape{n * steps, width})
}

// turn transposes every matrix of x[B,M,N].
func (s *sequence) turn(name string, x graph.TensorID) graph.TensorID {
	shape := s.Shape(x)
	wide := s.View(name+".wide", x, 0, graph.Shape{shape[0], shape[1], shape[2], 1})
	return s.View(name+".turned", s.one(name, graph.Transpose, graph.Attrs{}, wide), 0, graph.Shape{shape[0], shape[2],
		shape[1]})
}

// recur is an LSTM over the steps of x, whose state begins as zero; its h are [N,S,H].
func (s *sequence) recur(x graph.TensorID, n, steps, width int) graph.TensorID {
	gates := s.one("below", graph.Linear, graph.Attrs{}, x, s.normal("below.w", 4*width, width))
	gates = s.View("gates", gates, 0, graph.Shape{n, steps, 4 * width})
	u, bias := s.normal("u", 4*width, width), s.normal("u.b", 4*width)
	var h, c graph.TensorID
	var all []graph.TensorID
	for i := range steps {
		name := fmt.Sprintf("step%d", i)
		cut := s.one(name+".x", graph.Slice, graph.Attrs{Dim: 1, Begin: i, Length: 1}, gates)
		row := s.View(name+".row", cut, 0, graph.Shape{n, 4 * width})
		operands := []graph.TensorID{row}
		if i > 0 {
			operands = append(operands, s.one(name+".r", graph.Linear, graph.Attrs{}, h, u, bias), c)
		} else {
			operands[0] = s.one(name+".r", graph.Bias, graph.Attrs{}, row, bias)
		}
		out := s.Op(name, graph.LSTM, graph.Attrs{}, operands...)
		h, c = out[0], out[1]
		all = append(all, s.View(name+".h", h, 0, graph.Shape{n, 1, width}))
	}
	return s.one("hs", graph.Concat, graph.Attrs{Dim: 1}, all...)
}
