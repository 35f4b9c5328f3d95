package models

import (
	"fmt"
	"math"

	"tensile/graph"
)

// transformer is the size of a stack of attention layers.
type transformer struct {
	layers, width, heads int
	positions            int // steps that have a place of their own
	epsilon              float64
	causal               bool // a step sees itself and those before
}

// block names the sublayers of layer i, from 1.
func block(i int) string { return fmt.Sprintf("layer%d", i) }

// norm is a layer normalisation of rows.
func (m transformer) norm(n *net, name string, x graph.TensorID) graph.TensorID {
	gamma := n.vector(name+".gamma", graph.Parameter, graph.InitOne, m.width)
	beta := n.vector(name+".beta", graph.Parameter, graph.InitZero, m.width)
	return n.addOp(name, graph.LayerNorm, graph.Attrs{Epsilon: m.epsilon}, x, gamma, beta)
}

// place adds to each step what the network learns of its position.
func (m transformer) place(n *net, x graph.TensorID, s sizes) graph.TensorID {
	places := n.part("positions.used", n.table("positions", m.positions, m.width), 0, 0, s.steps)
	y := n.addOp("place", graph.Bias, graph.Attrs{}, n.shown(x, s.batch, s.steps*m.width),
		n.shown(places, s.steps*m.width))
	return n.shown(y, s.rows(), m.width)
}

// attention is multi-head self-attention of rows, with dropout of what is seen and of the result.
func (m transformer) attention(n *net, name string, x graph.TensorID, s sizes) graph.TensorID {
	depth := m.width / m.heads
	heads := func(part string) graph.TensorID {
		y := n.shown(n.linear(name+"."+part, x, m.width, linearGain), s.batch, s.steps, m.heads, depth)
		return n.shown(n.addOp(name+"."+part+".heads", graph.Transpose, graph.Attrs{}, y), s.batch*m.heads, s.steps,
			depth)
	}
	q, k, v := heads("q"), heads("k"), heads("v")
	scores := n.addOp(name+".scores", graph.MatMul, graph.Attrs{TransposeB: true}, q, k)
	scale := graph.Attrs{Factor: 1 / math.Sqrt(float64(depth)), Causal: m.causal}
	shares := n.dropout(name+".dropout", n.addOp(name+".softmax", graph.Softmax, scale, scores), 0.1)
	y := n.shown(n.addOp(name+".mix", graph.MatMul, graph.Attrs{}, shares, v), s.batch, m.heads, s.steps, depth)
	y = n.shown(n.addOp(name+".merge", graph.Transpose, graph.Attrs{}, y), s.rows(), m.width)
	return n.dropout(name+".out.dropout", n.linear(name+".out", y, m.width, linearGain), 0.1)
}

// feedForward is two layers, the inner four times as wide.
func (m transformer) feedForward(n *net, name string, x graph.TensorID) graph.TensorID {
	y := n.addOp(name+".gelu", graph.GELU, graph.Attrs{}, n.linear(name+".in", x, 4*m.width, reluGain))
	return n.dropout(name+".dropout", n.linear(name+".out", y, m.width, linearGain), 0.1)
}

// gpt returns the decoder of Radford et al. 2019: normalisation before each sublayer, and a head that is the table of
// tokens.
func gpt(layers, width, heads int) model {
	m := transformer{layers, width, heads, 1024, 1e-5, true}
	return model{rate: 0.1, sequence: &sequence{length: 1024, limit: m.positions, vocabulary: 50257, loss: m.gptLoss}}
}

func (m transformer) gptLoss(n *net, s sizes) graph.TensorID {
	tokens, next := n.tokens("tokens", graph.Tokens, s), n.classes("next", graph.NextTokens, s)
	n.b.SetLayer("embedding")
	table := n.table("words", s.vocabulary, m.width)
	x := n.dropout("embedding.dropout", m.place(n, n.embed("embedding", table, tokens), s), 0.1)
	for i := range m.layers {
		name := block(i + 1)
		n.b.SetLayer(name)
		y := m.attention(n, name+".attention", m.norm(n, name+".norm1", x), s)
		x = n.plus(name+".add1", x, y)
		y = m.feedForward(n, name+".mlp", m.norm(n, name+".norm2", x))
		x = n.plus(name+".add2", x, y)
	}
	n.b.SetLayer("head")
	logits := n.tied("head", m.norm(n, "norm", x), table, false)
	n.b.SetLayer("loss")
	return n.addOp("loss", graph.SoftmaxXent, graph.Attrs{}, logits, next)
}

// bert returns the encoder of Devlin et al. with both heads it is trained with: the hidden tokens, and whether the
// second sentence follows the first. Without the second the pooler would have no gradient.
func bert(layers, width, heads int) model {
	m := transformer{layers, width, heads, 512, 1e-12, false}
	return model{rate: 0.1, sequence: &sequence{length: 128, limit: m.positions, vocabulary: 30522, loss: m.bertLoss}}
}

func (m transformer) bertLoss(n *net, s sizes) graph.TensorID {
	tokens, types := n.tokens("tokens", graph.Tokens, s), n.tokens("types", graph.TokenTypes, s)
	hidden := n.classes("hidden", graph.HiddenTokens, s)
	follows := n.b.Input("follows", graph.Follows, graph.Float32, graph.Shape{s.batch})
	n.b.SetLayer("embedding")
	table := n.table("words", s.vocabulary, m.width)
	x := n.plus("embedding", n.embed("embedding.words", table, tokens), n.embed("embedding.types",
		n.table("sentences", 2, m.width), types))
	x = n.dropout("embedding.dropout", m.norm(n, "embedding.norm", m.place(n, x, s)), 0.1)
	for i := range m.layers {
		name := block(i + 1)
		n.b.SetLayer(name)
		x = m.norm(n, name+".norm1", n.plus(name+".add1", x, m.attention(n, name+".attention", x, s)))
		x = m.norm(n, name+".norm2", n.plus(name+".add2", x, m.feedForward(n, name+".mlp", x)))
	}
	n.b.SetLayer("pooler")
	first := n.shown(n.part("pooler.first", n.shown(x, s.batch, s.steps, m.width), 1, 0, 1), s.batch, m.width)
	pooled := n.addOp("pooler.tanh", graph.Tanh, graph.Attrs{}, n.linear("pooler", first, m.width, linearGain))
	n.b.SetLayer("head")
	pair := n.linear("head.pair", pooled, 2, linearGain)
	y := n.addOp("head.gelu", graph.GELU, graph.Attrs{}, n.linear("head.transform", x, m.width, reluGain))
	logits := n.tied("head", m.norm(n, "head.norm", y), table, true)
	n.b.SetLayer("loss")
	words := n.addOp("loss.words", graph.SoftmaxXent, graph.Attrs{}, logits, hidden)
	return n.plus("loss", words, n.addOp("loss.pair", graph.SoftmaxXent, graph.Attrs{}, pair, follows))
}
