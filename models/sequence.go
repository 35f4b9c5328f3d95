package models

import (
	"errors"
	"fmt"

	"tensile/graph"
)

// sequence is what a network that reads sequences has in place of images: examples of a number of steps, made of
// tokens.
type sequence struct {
	length, limit int // steps of an example: the default, and how many there may be; there are at least 2
	vocabulary    int // tokens there are
	loss          func(n *net, s sizes) graph.TensorID
}

// maxSteps bounds the steps of networks that are unrolled.
const maxSteps = 1 << 13

// sizes are those of the iteration: a network's loss is made of batch examples of steps tokens.
type sizes struct{ batch, steps, vocabulary int }

// rows is the number of tokens of an iteration.
func (s sizes) rows() int { return s.batch * s.steps }

// fillSequence is fill for networks that read sequences.
func (c Config) fillSequence(m model) (Config, error) {
	for _, unused := range []struct {
		flag string
		v    int
	}{{"image", c.Image}, {"channels", c.Channels}, {"classes", c.Classes}} {
		if unused.v != 0 {
			return c, fmt.Errorf("it reads sequences, not images: leave --%s out", unused.flag)
		}
	}
	c.Sequence = valueOr(c.Sequence, m.sequence.length)
	c.Vocabulary = valueOr(c.Vocabulary, m.sequence.vocabulary)
	c.Batch = valueOr(c.Batch, DefaultBatch)
	return c, errors.Join(
		checkRange("sequence", c.Sequence, 2, m.sequence.limit),
		checkRange("vocabulary", c.Vocabulary, 2, MaxClasses),
		checkRange("batch", c.Batch, 1, MaxBatch))
}

// tokens is an input of a token for every step, seen as one row after the other.
func (n *net) tokens(name string, holds graph.Holds, s sizes) graph.TensorID {
	return n.rows(name, holds, graph.Int64, s)
}

// classes is tokens for a loss: those that are to be said.
func (n *net) classes(name string, holds graph.Holds, s sizes) graph.TensorID {
	return n.rows(name, holds, graph.Float32, s)
}

func (n *net) rows(name string, holds graph.Holds, dtype graph.DType, s sizes) graph.TensorID {
	return n.b.View(name+".ids", n.b.Input(name, holds, dtype, graph.Shape{s.batch, s.steps}), 0, graph.Shape{s.rows()})
}

// table is a parameter with a row of width elements for each of n things.
func (n *net) table(name string, rows, width int) graph.TensorID {
	return n.b.Persistent(name, graph.Parameter, graph.Shape{rows, width}, graph.Init{Kind: graph.InitNormal,
		Scale: 0.02})
}

// embed looks ids up: [N] -> [N,width].
func (n *net) embed(name string, table, ids graph.TensorID) graph.TensorID {
	return n.addOp(name, graph.Embedding, graph.Attrs{}, table, ids)
}

// linearPlain is linear without a bias.
func (n *net) linearPlain(name string, x graph.TensorID, out int) graph.TensorID {
	in := n.b.Shape(x)[1]
	return n.addOp(name, graph.Linear, graph.Attrs{}, x, n.weight(name+".w", in, linearGain, out, in))
}

// tied is a linear layer whose weights are a table, with a bias if bias is true: [N,width] -> [N,rows].
func (n *net) tied(name string, x, table graph.TensorID, bias bool) graph.TensorID {
	inputs := []graph.TensorID{x, table}
	if bias {
		inputs = append(inputs, n.vector(name+".b", graph.Parameter, graph.InitZero, n.b.Shape(table)[0]))
	}
	return n.addOp(name, graph.Linear, graph.Attrs{}, inputs...)
}

// plus is the sum of two tensors.
func (n *net) plus(name string, a, b graph.TensorID) graph.TensorID {
	return n.addOp(name, graph.Add, graph.Attrs{}, a, b)
}

// joined puts tensors one after the other along a dimension; a single one is itself.
func (n *net) joined(name string, dim int, parts ...graph.TensorID) graph.TensorID {
	if len(parts) == 1 {
		return parts[0]
	}
	return n.addOp(name, graph.Concat, graph.Attrs{Dim: dim}, parts...)
}

// part cuts length elements along a dimension out of a tensor; all of them are the tensor itself.
func (n *net) part(name string, x graph.TensorID, dim, begin, length int) graph.TensorID {
	if n.b.Shape(x)[dim] == length {
		return x
	}
	return n.addOp(name, graph.Slice, graph.Attrs{Dim: dim, Begin: begin, Length: length}, x)
}

// shown is x with another shape.
func (n *net) shown(x graph.TensorID, shape ...int) graph.TensorID {
	return n.b.View(n.b.Peek().Tensors[x].Name+".view", x, 0, shape)
}
