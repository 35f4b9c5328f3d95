package task

import (
	"tensile/data"
	"tensile/device"
	"tensile/graph"
)

// reader is what a graph that reads sentences is fed.
type reader struct {
	made   data.Sentences
	batch  int // examples in an iteration
	inputs map[graph.StorageID]input
	voice  int  // The voice to predict.
	hides  bool // some tokens are not shown
	pairs  bool // an example is two texts
}

// input is one of a graph's inputs, of which an example has size elements.
type input struct {
	content
	size    int
	dtype   graph.DType
	bands   int // elements in the last dimension
	classes int // Number of classes of integers.
}

// content is how an input is filled.
type content struct {
	whole bool // numbers that an embedding or a loss reads as whole ones
	at    func(r *reader, in *input, example, place int) float64
}

var contents = map[graph.Holds]content{
	graph.Tokens: {true, func(r *reader, in *input, example, place int) float64 {
		if r.hides && r.made.Hidden(example, place) {
			return 0
		}
		return r.token(in, example, 0, place)
	}},
	graph.SourceTokens: {true, func(r *reader, in *input, example, place int) float64 {
		return r.token(in, example, 0, place)
	}},
	graph.TargetTokens: {true, func(r *reader, in *input, example, place int) float64 {
		return r.token(in, example, 1, place)
	}},
	graph.NextTokens: {true, func(r *reader, in *input, example, place int) float64 {
		return r.token(in, example, r.voice, place+1)
	}},
	graph.HiddenTokens: {true, func(r *reader, in *input, example, place int) float64 {
		if r.made.Hidden(example, place) {
			return r.token(in, example, 0, place)
		}
		return -1 // not to be guessed
	}},
	graph.TokenTypes: {true, func(_ *reader, in *input, _, place int) float64 { return bit(in.second(place)) }},
	graph.Follows:    {true, func(r *reader, _ *input, example, _ int) float64 { return bit(r.made.Follows(example)) }},
	graph.Frames:     {false, (*reader).frame},
	graph.PreviousFrames: {false, func(r *reader, in *input, example, place int) float64 {
		if place < in.bands {
			return 0 // before the first frame
		}
		return r.frame(in, example, place-in.bands)
	}},
	graph.StopFlags: {false, func(_ *reader, in *input, _, place int) float64 { return bit(place == in.size-1) }},
}

func (r *reader) token(in *input, example, voice, place int) float64 {
	return float64(r.made.Token(example, voice, place, in.classes, r.pairs && in.second(place)))
}

func (r *reader) frame(in *input, example, place int) float64 {
	return float64(r.made.Frame(example, place/in.bands, place%in.bands))
}

// second reports whether a place is one of the second half of an example.
func (in *input) second(place int) bool { return place >= in.size/2 }

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// newReader returns the reader of a graph that reads tokens and says what all of its inputs hold; nil for others.
func newReader(g *graph.Graph, seed uint64) *reader {
	r := &reader{made: data.NewSentences(seed), inputs: make(map[graph.StorageID]input)}
	shapes, classes, types := inputShapes(g), classesOf(g), g.DTypes()
	for _, s := range g.Storages {
		if shape := shapes[s.ID]; (s.Holds == graph.Tokens || s.Holds == graph.SourceTokens) && len(shape) == 2 {
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
		held, known := contents[s.Holds]
		shape := shapes[s.ID]
		_, chosen := classes[s.ID] // of a few numbers, by an embedding or a loss
		if !known || held.whole && classes[s.ID] < 2 || chosen && !held.whole && s.Holds != graph.StopFlags ||
			len(shape) == 0 || shape.Elements()%r.batch != 0 {
			return nil
		}
		r.inputs[s.ID] = input{held, shape.Elements() / r.batch, types[s.ID], shape[len(shape)-1], classes[s.ID]}
		switch s.Holds {
		case graph.SourceTokens:
			r.voice = 1
		case graph.HiddenTokens:
			r.hides = true
		case graph.Follows:
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
func (r *reader) feed(iteration int, s graph.StorageID, to device.Memory) {
	in := r.inputs[s]
	fill(to, in.dtype, func(i int) float64 { return in.at(r, &in, iteration*r.batch+i/in.size, i%in.size) })
}
