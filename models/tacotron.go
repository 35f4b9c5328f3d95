package models

import (
	"fmt"

	"tensile/graph"
)

// mels is the number of bands of a frame of sound; framesPerCharacter about what people speak, at 86 frames a second.
const (
	mels               = 80
	framesPerCharacter = 5
)

// tacotron returns the acoustic model of Shen et al. 2018 with a number of convolutions before its encoder, trained
// with the true frames as its past. Its other sizes are in proportion to width, 512 in the paper.
func tacotron(convs, width int) model {
	loss := func(n *net, s sizes) graph.TensorID {
		t := speaker{net: n, s: s, frames: framesPerCharacter * s.steps, convs: convs, width: width}
		return t.loss()
	}
	return model{rate: 1, sequence: &sequence{length: 100, limit: maxSteps / framesPerCharacter, vocabulary: 148,
		loss: loss}}
}

type speaker struct {
	*net
	s            sizes
	frames       int
	convs, width int
}

func (t *speaker) loss() graph.TensorID {
	tokens := t.tokens("tokens", graph.Tokens, t.s)
	shape := graph.Shape{t.s.batch, t.frames, mels}
	previous, frames := t.b.Input("previous", graph.PreviousFrames, graph.Float32, shape),
		t.b.Input("frames", graph.Frames, graph.Float32, shape)
	stop := t.b.Input("stop", graph.StopFlags, graph.Float32, graph.Shape{t.s.batch * t.frames, 1})
	memory := t.encode(tokens)
	y := t.decode(previous, memory)
	t.b.SetLayer("projection")
	mel := t.linear("projection", y, mels, linearGain)
	end := t.linear("stop", y, 1, linearGain)
	mel = t.shown(mel, shape...)
	after := t.postnet(mel)
	t.b.SetLayer("loss")
	near := t.plus("loss.frames", t.addOp("loss.before", graph.MeanSquare, graph.Attrs{}, mel, frames),
		t.addOp("loss.after", graph.MeanSquare, graph.Attrs{}, after, frames))
	return t.plus("loss", near, t.addOp("loss.stop", graph.SigmoidXent, graph.Attrs{}, end, stop))
}

// turn swaps steps and features: [N,S,C] -> [N,C,1,S], what a convolution over time reads.
func (t *speaker) turn(name string, x graph.TensorID) graph.TensorID {
	s := t.b.Shape(x)
	y := t.addOp(name, graph.Transpose, graph.Attrs{}, t.shown(x, s[0], s[1], s[2], 1))
	return t.shown(y, s[0], s[2], 1, s[1])
}

// turnBack is the inverse of turn.
func (t *speaker) turnBack(name string, x graph.TensorID) graph.TensorID {
	s := t.b.Shape(x)
	return t.shown(t.addOp(name, graph.Transpose, graph.Attrs{}, t.shown(x, s[0], s[1], s[3], 1)), s[0], s[3], s[1])
}

// convolve is a convolution over five steps and a batch normalisation.
func (t *speaker) convolve(name string, x graph.TensorID, out int) graph.TensorID {
	t.b.SetLayer(name)
	in := t.b.Shape(x)[1]
	w := t.weight(name+".w", in*5, reluGain, out, in, 1, 5)
	b := t.vector(name+".b", graph.Parameter, graph.InitZero, out)
	x = t.addOp(name, graph.Conv2D, graph.Attrs{Kernel: [2]int{1, 5}, Stride: [2]int{1, 1}, Pad: [2]int{0, 2}}, x, w, b)
	return t.norm(name+".bn", x, graph.InitOne)
}

// encode reads the characters: convolutions, then an LSTM in both directions. It returns [N,S,width].
func (t *speaker) encode(tokens graph.TensorID) graph.TensorID {
	t.b.SetLayer("embedding")
	x := t.embed("embedding", t.table("characters", t.s.vocabulary, t.width), tokens)
	x = t.turn("encoder.turn", t.shown(x, t.s.batch, t.s.steps, t.width))
	for i := range t.convs {
		name := fmt.Sprintf("encoder.conv%d", i+1)
		x = t.dropout(name+".dropout", t.relu(name+".relu", t.convolve(name, x, t.width)), 0.5)
	}
	t.b.SetLayer("encoder")
	x = t.turnBack("encoder.back", x)
	return t.joined("encoder", 2, t.lstm("encoder.forward", x, t.width/2, false), t.lstm("encoder.backward", x,
		t.width/2, true))
}

// postnet corrects the frames by what stands around them.
func (t *speaker) postnet(mel graph.TensorID) graph.TensorID {
	t.b.SetLayer("postnet")
	x := t.turn("postnet.turn", mel)
	for i := range 5 {
		name := fmt.Sprintf("postnet.conv%d", i+1)
		if i == 4 {
			x = t.dropout(name+".dropout", t.convolve(name, x, mels), 0.5)
			break
		}
		x = t.addOp(name+".tanh", graph.Tanh, graph.Attrs{}, t.convolve(name, x, t.width))
		x = t.dropout(name+".dropout", x, 0.5)
	}
	return t.plus("postnet.add", mel, t.turnBack("postnet.back", x))
}
