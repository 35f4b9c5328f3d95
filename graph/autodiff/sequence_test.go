package autodiff

import (
	"strings"
	"testing"

	"tensile/graph"
)

// The parts of the gates have one gradient between them; the memory goes back step by step, and neither the first step
// nor the last has a gradient of it.
func TestLSTM(t *testing.T) {
	d := newDraft()
	u := d.param("u", 12, 3)
	var h, c graph.TensorID
	for i, name := range []string{"step1", "step2", "step3"} {
		operands := []graph.TensorID{d.input(name+".x", 2, 12)}
		if i > 0 {
			operands = append(operands, d.op(name+".r", graph.Linear, h, u), c)
		} else {
			operands[0] = d.op("in", graph.Linear, d.input("x", 2, 3), d.param("w", 12, 3))
		}
		out := d.Op(name, graph.LSTM, graph.Attrs{}, operands...)
		h, c = out[0], out[1]
	}
	expect(t, d.appended(t, d.loss(h)),
		"softmax_xent_dx loss.1 labels -> loss.dx",
		"lstm_grad step3.x step3.r step2.1 loss.dx -> step3.grad.0",
		"linear_dw step2.0 step3.grad.0 -> step3.r.dw",
		"linear_dx step3.grad.0 u -> step3.r.dx",
		"lstm_grad step2.x step2.r step1.1 step3.r.dx step3.grad.1 -> step2.grad.0",
		"linear_dw step1.0 step2.grad.0 -> step2.r.dw",
		"add step3.r.dw step2.r.dw -> u.grad2",
		"linear_dx step2.grad.0 u -> step2.r.dx",
		"lstm_grad in step2.r.dx step2.grad.1 -> step1.grad.0",
		"linear_dw x step1.grad.0 -> in.dw",
		"u: u.grad2", "w: in.dw",
	)
}

// GPT-2's head is its embedding: the two gradients of the table are added.
func TestTiedTable(t *testing.T) {
	d := newDraft()
	table := d.param("table", 5, 3)
	y := d.op("embed", graph.Embedding, table, d.Input("tokens", graph.Tokens, graph.Int64, graph.Shape{4}))
	norm := d.Op("norm", graph.LayerNorm, graph.Attrs{Epsilon: 1}, y, d.param("gamma", 3), d.param("beta", 3))
	y = d.op("head", graph.Linear, norm[0], table)
	expect(t, d.appended(t, d.loss(y)),
		"softmax_xent_dx loss.1 labels -> loss.dx",
		"linear_dw norm.0 loss.dx -> head.dw",
		"linear_dx loss.dx table -> head.dx",
		"layer_norm_grad embed norm.1 norm.2 gamma head.dx -> norm.grad.0",
		"embedding_dw tokens norm.grad.0 -> embed.dw",
		"add head.dw embed.dw -> table.grad2",
		"table: table.grad2", "gamma: norm.grad.1", "beta: norm.grad.2",
	)
}

// Losses of several kinds make one.
func TestLosses(t *testing.T) {
	d := newDraft()
	y := d.op("fc", graph.Linear, d.input("x", 2, 3), d.param("w", 4, 3))
	near := d.op("near", graph.MeanSquare, y, d.input("frames", 2, 4))
	stop := d.op("stop", graph.SigmoidXent, y, d.input("ends", 2, 4))
	expect(t, d.appended(t, d.op("sum", graph.Add, d.loss(y), d.op("both", graph.Add, near, stop))),
		"softmax_xent_dx loss.1 labels -> loss.dx",
		"sigmoid_xent_dx fc ends -> stop.dx",
		"add loss.dx stop.dx -> fc.grad2",
		"mean_square_dx fc frames -> near.dx",
		"add fc.grad2 near.dx -> fc.grad3",
		"linear_dw x fc.grad3 -> fc.dw",
		"w: fc.dw",
	)
}

func TestSequenceErrors(t *testing.T) {
	tests := []struct {
		name  string
		build func(d draft) graph.TensorID
		want  string
	}{
		{"use of a mean", func(d draft) graph.TensorID {
			norm := d.Op("norm", graph.LayerNorm, graph.Attrs{Epsilon: 1}, d.param("w", 2, 3), d.input("gamma", 3),
				d.input("beta", 3))
			return d.loss(d.View("row", norm[1], 0, graph.Shape{1, 2}))
		}, "gradient of op norm: its mean and scale have no gradient"},
		{"use of the memory alone", func(d draft) graph.TensorID {
			return d.loss(d.Op("step", graph.LSTM, graph.Attrs{}, d.param("w", 2, 12))[1])
		}, "gradient of op step: the loss depends on its memory but not on its h"},
		{"trained target", func(d draft) graph.TensorID {
			return d.op("loss", graph.MeanSquare, d.input("x", 2), d.param("target", 2))
		}, "gradient of op loss: labels target depend on a parameter"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDraft()
			if _, err := Backward(d.Builder, test.build(d)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want it to contain %q", err, test.want)
			}
		})
	}
}
