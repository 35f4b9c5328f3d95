package models

import (
	"fmt"

	"tensile/graph"
)

// lstm is a layer of long short-term memory, unrolled: x[N,S,I] -> [N,S,width], backwards in time if reverse is true.
// What comes from below is one product for all steps.
func (n *net) lstm(name string, x graph.TensorID, width int, reverse bool) graph.TensorID {
	shape := n.b.Shape(x)
	batch, steps := shape[0], shape[1]
	below := n.linear(name+".below", n.shown(x, batch*steps, shape[2]), 4*width, linearGain)
	below = n.shown(below, batch, steps, 4*width)
	cell := n.cell(name+".before", width, width)
	hs := make([]graph.TensorID, steps)
	for i := range steps {
		if reverse {
			i = steps - 1 - i
		}
		step := fmt.Sprintf("%s.step%d", name, i+1)
		part := n.shown(n.part(step+".below", below, 1, i, 1), batch, 4*width)
		hs[i] = n.shown(cell.step(n, step, part), batch, 1, width)
	}
	return n.joined(name, 1, hs...)
}

// cell is an LSTM on its way through time.
type cell struct {
	weight, bias graph.TensorID // of what comes from the step before
	h, c         graph.TensorID
	begun        bool
}

// cell begins an LSTM that reads in elements of the step before, its own h among them.
func (n *net) cell(name string, in, width int) *cell {
	return &cell{weight: n.weight(name+".w", in, linearGain, 4*width, in), bias: n.vector(name+".b", graph.Parameter,
		graph.InitZero, 4*width)}
}

// step takes the gates' part from below, and further things of the step before, [N,...] each. It returns h[N,width]. In
// the first step all of the step before is zero: of its product only the bias is left.
func (l *cell) step(n *net, name string, below graph.TensorID, beside ...graph.TensorID) graph.TensorID {
	var operands []graph.TensorID
	if !l.begun {
		operands = append(operands, n.addOp(name+".before", graph.Bias, graph.Attrs{}, below, l.bias))
	} else {
		x := n.joined(name+".beside", 1, append(beside, l.h)...)
		operands = append(operands, below, n.addOp(name+".before", graph.Linear, graph.Attrs{}, x, l.weight, l.bias),
			l.c)
	}
	out := n.b.Op(name, graph.LSTM, graph.Attrs{}, operands...)
	l.h, l.c, l.begun = out[0], out[1], true
	return l.h
}

// rhn returns the recurrent highway network of Zilly et al. for words: a number of highway layers per step, with
// coupled gates and a head that is the table of words. A state begins as zero.
func rhn(depth, width int) model {
	return model{rate: 1, sequence: &sequence{length: 35, limit: maxSteps, vocabulary: 10000,
		loss: func(n *net, s sizes) graph.TensorID {
			return rhnLoss(n, s, depth, width)
		}}}
}

func rhnLoss(n *net, s sizes, depth, width int) graph.TensorID {
	tokens, next := n.tokens("tokens", graph.Tokens, s), n.classes("next", graph.NextTokens, s)
	n.b.SetLayer("embedding")
	table := n.table("words", s.vocabulary, width)
	x := n.dropout("embedding.dropout", n.embed("embedding", table, tokens), 0.25)
	n.b.SetLayer("below")
	h := newHighway(n, depth, width, x, s)
	states := make([]graph.TensorID, s.steps)
	for i := range s.steps {
		states[i] = n.shown(h.step(n, i), s.batch, 1, width)
	}
	n.b.SetLayer("head")
	y := n.dropout("states.dropout", n.shown(n.joined("states", 1, states...), s.rows(), width), 0.25)
	logits := n.tied("head", y, table, true)
	n.b.SetLayer("loss")
	return n.addOp("loss", graph.SoftmaxXent, graph.Attrs{}, logits, next)
}

// highway is a recurrent highway network on its way through time.
type highway struct {
	s       sizes
	width   int
	below   [2]graph.TensorID   // what the words give to candidate and gate of the first layer, all steps at once
	weights [][2]graph.TensorID // per layer, of the state
	biases  [][2]graph.TensorID // per layer; the first has none beside those of below
	state   graph.TensorID
	begun   bool
}

// highwayParts are what a highway layer computes of its state.
var highwayParts = [2]string{"candidate", "gate"}

func newHighway(n *net, depth, width int, x graph.TensorID, s sizes) *highway {
	h := &highway{s: s, width: width, weights: make([][2]graph.TensorID, depth), biases: make([][2]graph.TensorID,
		depth)}
	for p, part := range highwayParts {
		h.below[p] = n.shown(n.linear("below."+part, x, width, linearGain), s.batch, s.steps, width)
		for l := range depth {
			name := fmt.Sprintf("layer%d.%s", l+1, part)
			h.weights[l][p] = n.weight(name+".w", width, linearGain, width, width)
			if l > 0 {
				h.biases[l][p] = n.vector(name+".b", graph.Parameter, graph.InitZero, width)
			}
		}
	}
	return h
}

// step goes through the layers once and returns the state[N,width].
func (h *highway) step(n *net, i int) graph.TensorID {
	n.b.SetLayer(fmt.Sprintf("step%d", i+1))
	for l := range h.weights {
		name := fmt.Sprintf("step%d.layer%d", i+1, l+1)
		candidate := n.addOp(name+".tanh", graph.Tanh, graph.Attrs{}, h.part(n, name, i, l, 0))
		gate := n.addOp(name+".sigmoid", graph.Sigmoid, graph.Attrs{}, h.part(n, name, i, l, 1))
		if h.begun {
			h.state = n.addOp(name, graph.Blend, graph.Attrs{}, gate, candidate, h.state)
		} else {
			h.state = n.addOp(name, graph.Mul, graph.Attrs{}, gate, candidate)
		}
		h.begun = true
	}
	return h.state
}

// part is the candidate or the gate of layer l before its nonlinearity.
func (h *highway) part(n *net, name string, i, l, p int) graph.TensorID {
	name += "." + highwayParts[p]
	if l > 0 {
		return n.addOp(name, graph.Linear, graph.Attrs{}, h.state, h.weights[l][p], h.biases[l][p])
	}
	below := n.shown(n.part(name+".below", h.below[p], 1, i, 1), h.s.batch, h.width)
	if !h.begun {
		return below
	}
	return n.plus(name, below, n.addOp(name+".before", graph.Linear, graph.Attrs{}, h.state, h.weights[l][p]))
}
