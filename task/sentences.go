package task

import (
	"tensile/data"
	"tensile/graph"
)

// reader is what a graph that reads sentences is fed. Its inputs are told apart by their names, which stand for the same
// in all networks of package models.
type reader struct {
	made   data.Sentences
	batch  int // examples in an iteration
	inputs map[graph.StorageID]input
	voice  int  // that is to be predicted
	hides  bool // some tokens are not shown
	pairs  bool // an example is two texts
}

// input is one of a graph's inputs, of which an example has size elements.
type input struct {
	content
	size    int
	bands   int // elements in the last dimension
	classes int // of whole numbers
}

// content is what inputs of a name hold.
type content struct {
	whole bool // numbers that an embedding or a loss reads as whole ones
	at    func(r *reader, in *input, example, place int) float32
}

var contents = map[string]content{
	"tokens": {true, func(r *reader, in *input, example, place int) float32 {
		if r.hides && r.made.Hidden(example, place) {
			return 0
		}
		return r.token(in, example, 0, place)
	}},
	"source": {true, func(r *reader, in *input, example, place int) float32 { return r.token(in, example, 0, place) }},
	"target": {true, func(r *reader, in *input, example, place int) float32 { return r.token(in, example, 1, place) }},
	"next":   {true, func(r *reader, in *input, example, place int) float32 { return r.token(in, example, r.voice, place+1) }},
	"hidden": {true, func(r *reader, in *input, example, place int) float32 {
		if r.made.Hidden(example, place) {
			return r.token(in, example, 0, place)
		}
		return -1 // not to be guessed
	}},
	"types":   {true, func(_ *reader, in *input, _, place int) float32 { return one(in.second(place)) }},
	"follows": {true, func(r *reader, _ *input, example, _ int) float32 { return one(r.made.Follows(example)) }},
	"frames":  {false, (*reader).frame},
	"previous": {false, func(r *reader, in *input, example, place int) float32 {
		if place < in.bands {
			return 0 // before the first frame
		}
		return r.frame(in, example, place-in.bands)
	}},
	"stop": {false, func(_ *reader, in *input, _, place int) float32 { return one(place == in.size-1) }},
}

func (r *reader) token(in *input, example, voice, place int) float32 {
	return float32(r.made.Token(example, voice, place, in.classes, r.pairs && in.second(place)))
}

func (r *reader) frame(in *input, example, place int) float32 {
	return r.made.Frame(example, place/in.bands, place%in.bands)
}

// second reports whether a place is one of the second half of an example.
func (in *input) second(place int) bool { return place >= in.size/2 }

func one(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

// newReader returns the reader of a graph whose inputs all have known names, and which looks up tokens; nil for others.
func newReader(g *graph.Graph, seed uint64) *reader {
	r := &reader{made: data.NewSentences(seed), inputs: make(map[graph.StorageID]input)}
	shapes, classes := inputShapes(g), classesOf(g)
	for _, s := range g.Storages {
		if shape := shapes[s.ID]; (s.Name == "tokens" || s.Name == "source") && len(shape) == 2 {
			r.batch = shape[0]
		}
	}
	if r.batch == 0 {
		return nil
	}
	for _, s := range g.Storages {
		if s.Role != graph.Input {
			continue
		}
		held, known := contents[s.Name]
		shape := shapes[s.ID]
		if !known || held.whole && classes[s.ID] < 2 || len(shape) == 0 || shape.Elements()%r.batch != 0 {
			return nil
		}
		r.inputs[s.ID] = input{held, shape.Elements() / r.batch, shape[len(shape)-1], classes[s.ID]}
		switch s.Name {
		case "source":
			r.voice = 1
		case "hidden":
			r.hides = true
		case "follows":
			r.pairs = true
		}
	}
	return r
}

// inputShapes returns, of each input, the shape of the first tensor that covers it.
func inputShapes(g *graph.Graph) map[graph.StorageID]graph.Shape {
	shapes := make(map[graph.StorageID]graph.Shape)
	for _, t := range g.Tensors {
		s := g.Storages[t.Storage]
		if _, seen := shapes[s.ID]; s.Role == graph.Input && !seen && t.Bytes() == s.Bytes {
			shapes[s.ID] = t.Shape
		}
	}
	return shapes
}

// feed fills an input of an iteration.
func (r *reader) feed(iteration int, s graph.StorageID, to []float32) {
	in := r.inputs[s]
	for i := range to {
		to[i] = in.at(r, &in, iteration*r.batch+i/in.size, i%in.size)
	}
}
