package models

import (
	"fmt"

	"tensile/graph"
)

// decoder is Tacotron2's decoder on its way through time.
type decoder struct {
	*speaker
	memory, keys     graph.TensorID // [N,S,width], and [N,S,width/4] for the attention
	query, v         graph.TensorID // weights of the attention
	filters, located graph.TensorID // weights of where it looked before: a convolution and a linear layer
	listen           *cell          // reads the past and what was attended to
	say              *cell          // makes what frames are made of
	below, bias      graph.TensorID // weights of what it reads
	context          graph.TensorID // [N,width], what is attended to
	places, sum      graph.TensorID // [N,1,S]: the shares of the last step, and of all so far
	looked           int            // how often
}

// decode returns what the frames are made of, [N*T, 3*width].
func (t *speaker) decode(previous, memory graph.TensorID) graph.TensorID {
	d := t.newDecoder(memory)
	t.b.SetLayer("prenet")
	x := t.shown(previous, t.s.batch*t.frames, mels)
	for i := range 2 {
		name := fmt.Sprintf("prenet%d", i+1)
		x = t.dropout(name+".dropout", t.relu(name+".relu", t.linearPlain(name, x, t.width/2)), 0.5)
	}
	below := t.shown(t.linear("listen.below", x, 8*t.width, linearGain), t.s.batch, t.frames, 8*t.width)
	said, contexts := make([]graph.TensorID, t.frames), make([]graph.TensorID, t.frames)
	for i := range t.frames {
		name := fmt.Sprintf("step%d", i+1)
		t.b.SetLayer(name)
		said[i], contexts[i] = d.step(name, t.shown(t.part(name+".below", below, 1, i, 1), t.s.batch, 8*t.width))
	}
	t.b.SetLayer("projection")
	y := t.joined("decoder", 2, t.joined("said", 1, said...), t.joined("contexts", 1, contexts...))
	return t.shown(y, t.s.batch*t.frames, 3*t.width)
}

func (t *speaker) newDecoder(memory graph.TensorID) *decoder {
	t.b.SetLayer("attention")
	w, features, filters := t.width, t.width/4, t.width/16
	keys := t.linearPlain("attention.keys", t.shown(memory, t.s.rows(), w), features)
	return &decoder{
		speaker: t, memory: memory, keys: t.shown(keys, t.s.batch, t.s.steps, features),
		query:   t.weight("attention.query.w", 2*w, linearGain, features, 2*w),
		v:       t.weight("attention.v", features, linearGain, features),
		filters: t.weight("attention.filters.w", 2*31, linearGain, filters, 2, 1, 31),
		located: t.weight("attention.places.w", filters, linearGain, features, filters),
		listen:  t.cell("listen.before", 3*w, 2*w),
		say:     t.cell("say.before", 2*w, 2*w),
		below:   t.weight("say.below.w", 3*w, linearGain, 8*w, 3*w),
		bias:    t.vector("say.below.b", graph.Parameter, graph.InitZero, 8*w),
	}
}

// step makes one frame's worth: what is said [N,1,2*width], and what it attended to [N,1,width].
func (d *decoder) step(name string, below graph.TensorID) (said, context graph.TensorID) {
	var beside []graph.TensorID
	if d.listen.begun {
		beside = append(beside, d.context)
	}
	h := d.dropout(name+".listen.dropout", d.listen.step(d.net, name+".listen", below, beside...), 0.1)
	d.listen.h = h
	d.attend(name+".attention", h)
	x := d.joined(name+".say.in", 1, h, d.context)
	x = d.addOp(name+".say.below", graph.Linear, graph.Attrs{}, x, d.below, d.bias)
	y := d.dropout(name+".say.dropout", d.say.step(d.net, name+".say", x), 0.1)
	d.say.h = y
	return d.shown(y, d.s.batch, 1, 2*d.width), d.shown(d.context, d.s.batch, 1, d.width)
}

// attend is additive attention over the characters that also knows where it looked before.
func (d *decoder) attend(name string, h graph.TensorID) {
	n, keys := d.s.batch, d.keys
	if d.looked > 0 {
		keys = d.plus(name+".keys", keys, d.looks(name))
	}
	q := d.shown(d.addOp(name+".query", graph.Linear, graph.Attrs{}, h, d.query), n, 1, d.width/4)
	scores := d.addOp(name+".scores", graph.AdditiveScores, graph.Attrs{}, q, keys, d.v)
	d.places = d.addOp(name+".softmax", graph.Softmax, graph.Attrs{Factor: 1}, scores)
	d.looked++
	d.context = d.shown(d.addOp(name, graph.MatMul, graph.Attrs{}, d.places, d.memory), n, d.width)
}

// looks is what the attention's places, the last and all so far, say about each character: [N,S,width/4].
func (d *decoder) looks(name string) graph.TensorID {
	n, steps := d.s.batch, d.s.steps
	if d.looked == 1 {
		d.sum = d.places
	} else {
		d.sum = d.plus(name+".sum", d.sum, d.places)
	}
	past := d.shown(d.joined(name+".past", 1, d.places, d.sum), n, 2, 1, steps)
	window := graph.Attrs{Kernel: [2]int{1, 31}, Stride: [2]int{1, 1}, Pad: [2]int{0, 15}}
	filtered := d.addOp(name+".filters", graph.Conv2D, window, past, d.filters)
	rows := d.shown(d.turnBack(name+".turn", filtered), n*steps, d.width/16)
	return d.shown(d.addOp(name+".places", graph.Linear, graph.Attrs{}, rows, d.located), n, steps, d.width/4)
}
