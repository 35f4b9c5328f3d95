package models

import (
	"fmt"

	"tensile/graph"
)

// gnmt returns the translation network of Wu et al. with the given numbers of layers in the encoder and in the decoder,
// as PipeDream profiled it: the first layer of the encoder reads in both directions, and the decoder's first layer
// alone asks the attention, so that its answers for all steps are computed at once. From the third layer of each on,
// layers add to what they read. All layers but the first of each have dropout of what the layer below made; in the
// decoder the attention's answer is joined to it after that.
func gnmt(layers, width int) model {
	return model{rate: 1, sequence: &sequence{length: 50, limit: maxSteps, vocabulary: 32320,
		loss: func(n *net, s sizes) graph.TensorID {
			g := translator{net: n, s: s, layers: layers, width: width}
			return g.loss()
		}}}
}

type translator struct {
	*net
	s             sizes
	layers, width int
}

func (g *translator) loss() graph.TensorID {
	source, target := g.tokens("source", graph.SourceTokens, g.s), g.tokens("target", graph.TargetTokens, g.s)
	next := g.classes("next", graph.NextTokens, g.s)
	memory := g.encode(source)
	y := g.decode(target, memory)
	g.b.SetLayer("head")
	logits := g.linear("head", g.shown(y, g.s.rows(), g.width), g.s.vocabulary, linearGain)
	g.b.SetLayer("loss")
	return g.addOp("loss", graph.SoftmaxXent, graph.Attrs{}, logits, next)
}

// words looks up a sentence: [N*S] -> [N,S,width].
func (g *translator) words(name string, ids graph.TensorID) graph.TensorID {
	g.b.SetLayer(name)
	x := g.embed(name, g.table(name+".words", g.s.vocabulary, g.width), ids)
	return g.shown(x, g.s.batch, g.s.steps, g.width)
}

// layer is an LSTM with dropout of what it reads, but for what is beside it: [N,S,I] each -> [N,S,width].
func (g *translator) layer(name string, x graph.TensorID, beside ...graph.TensorID) graph.TensorID {
	g.b.SetLayer(name)
	x = g.dropout(name+".dropout", x, 0.2)
	return g.lstm(name, g.joined(name+".in", 2, append([]graph.TensorID{x}, beside...)...), g.width, false)
}

func (g *translator) encode(source graph.TensorID) graph.TensorID {
	x := g.words("encoder", source)
	g.b.SetLayer("encoder1")
	x = g.joined("encoder1", 2, g.lstm("encoder1.forward", x, g.width, false), g.lstm("encoder1.backward", x, g.width,
		true))
	x = g.layer("encoder2", x)
	for l := 3; l <= g.layers; l++ {
		name := fmt.Sprintf("encoder%d", l)
		x = g.plus(name+".add", g.layer(name, x), x)
	}
	return x
}

func (g *translator) decode(target, memory graph.TensorID) graph.TensorID {
	x := g.words("decoder", target)
	g.b.SetLayer("decoder1")
	x = g.lstm("decoder1", x, g.width, false)
	g.b.SetLayer("attention")
	seen := g.attend(x, memory)
	for l := 2; l <= g.layers; l++ {
		name := fmt.Sprintf("decoder%d", l)
		y := g.layer(name, x, seen)
		if l > 2 {
			y = g.plus(name+".add", y, x)
		}
		x = y
	}
	return x
}

// attend is additive attention of every decoder step to all encoder steps: [N,T,width] -> [N,T,width].
func (g *translator) attend(x, memory graph.TensorID) graph.TensorID {
	n, steps, width := g.s.batch, g.s.steps, g.width
	q := g.shown(g.linearPlain("attention.query", g.shown(x, n*steps, width), width), n, steps, width)
	k := g.shown(g.linearPlain("attention.key", g.shown(memory, n*steps, width), width), n, steps, width)
	v := g.weight("attention.v", width, linearGain, width)
	scores := g.addOp("attention.scores", graph.AdditiveScores, graph.Attrs{}, q, k, v)
	shares := g.addOp("attention.softmax", graph.Softmax, graph.Attrs{Factor: 1}, scores)
	return g.addOp("attention", graph.MatMul, graph.Attrs{}, shares, memory)
}
