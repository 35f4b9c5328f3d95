package onnx

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tensile/graph"
)

// How the values of a model become tensors: inputs, parameters, constants.

// tensor is input k as a tensor of its shape.
func (c *call) tensor(k int) (graph.TensorID, error) {
	v, err := c.value(k)
	if err != nil {
		return missing, err
	}
	return c.tensorOf(v)
}

// tensorOf is the tensor of a value, made if there is none yet: an input, a parameter, a constant.
func (i *importer) tensorOf(v *value) (graph.TensorID, error) {
	if v.tensor != missing {
		return v.tensor, nil
	}
	var err error
	switch {
	case v.key > 0:
		return missing, fmt.Errorf("%.80q holds random numbers, and something else than what a dropout keeps is made "+
			"of them: export the network without that", v.name)
	case v.listed:
		return missing, fmt.Errorf("%.80q is a sequence, and one value is wanted there", v.name)
	case v.input && v.known == nil:
		v.tensor = i.input(v)
	case v.init != nil && !v.whole:
		v.tensor, err = i.persistent(v, graph.Parameter)
	case v.known != nil && (!v.known.whole || len(i.counts) > 0): // whole numbers meet others that are fed as floats
		if v.known.elements() >= mostUntold {
			i.untrained(v)
		}
		v.tensor, err = i.persistent(v, graph.State)
	default:
		return missing, fmt.Errorf("%.80q holds whole numbers, of which it computes: export the network with "+
			"floats there", v.name)
	}
	return v.tensor, err
}

// mostUntold is from how many elements on a constant is named that is not where an operator has its weights.
const mostUntold = 1 << 10

// untrained records that a constant which may be a weight stands in a Constant node.
func (i *importer) untrained(v *value) {
	if v.held != "" && !slices.Contains(i.held, v.held) {
		i.held = append(i.held, v.held)
	}
}

// input is a tensor that is fed: floats, or whole numbers that index a table.
func (i *importer) input(v *value) graph.TensorID {
	if v.whole {
		return i.b.Input(v.name, graph.Anything, graph.Int64, full(v.shape))
	}
	holds := graph.Anything
	switch {
	case v.counts:
		holds = graph.Counts
	case len(v.shape) == 4:
		holds = graph.Images
	}
	return i.b.Input(v.name, holds, graph.Float32, full(v.shape))
}

// full is a shape with a dimension at least.
func full(s graph.Shape) graph.Shape {
	if len(s) == 0 {
		return graph.Shape{1}
	}
	return s
}

// persistent keeps a value as a storage of its name. Contents come from the file, or are zeros, ones, or, where the
// file has constants in place of weights, random as ReLUs like them.
func (i *importer) persistent(v *value, role graph.Role) (graph.TensorID, error) {
	if v.init != nil && v.init.stands == buffer {
		role = graph.State
	}
	if v.tensor != missing {
		s := i.b.Peek().Storages[i.b.Peek().Tensors[v.tensor].Storage]
		if i.options.Train && s.Role != role && s.Role.Persistent() {
			return missing, fmt.Errorf("%.80q is a running statistic and a parameter as well, as exporters have it "+
				"that keep one of equal initializers: export the network in training mode, or with an initializer "+
				"for each", v.name)
		}
		return v.tensor, nil
	}
	if v.shape.Elements() == 0 {
		return missing, fmt.Errorf("%.80q has shape %v: there is nothing in it", v.name, v.shape)
	}
	init := graph.Init{Kind: graph.InitFile}
	fill, alike := 0.0, false
	if v.known != nil {
		fill, alike = v.known.uniform()
	}
	switch {
	case alike && fill == 0:
		init.Kind = graph.InitZero
	case alike && fill == 1:
		init.Kind = graph.InitOne
	case v.init != nil:
		content, err := v.init.Floats()
		if err != nil {
			return missing, err
		}
		i.contents[v.name] = content
	case v.known.elements() > maxFolded:
		return missing, fmt.Errorf("constant %.80q has %d elements, of which there may be %d", v.name,
			v.known.elements(), maxFolded)
	default:
		i.contents[v.name] = v.known.make32()
	}
	v.tensor = i.b.Persistent(v.name, role, full(v.shape), init)
	return v.tensor, nil
}

// firstOf is how a weight of a shape begins that was left out of the file.
func firstOf(s graph.Shape) graph.Init {
	if len(s) < 2 {
		return graph.Init{Kind: graph.InitZero}
	}
	return graph.Init{Kind: graph.InitNormal, Scale: math.Sqrt(2 / float64(s[1:].Elements()))}
}

// derived is a weight that was left out of the file, in the shape and order that the model gives it. The parameter has
// the name that it would have in the file.
func (c *call) derived(v *value, init graph.Init) graph.TensorID {
	if v.tensor != missing {
		return v.tensor
	}
	if v.source == nil {
		v.tensor = c.b.Persistent(v.name, graph.Parameter, full(v.shape), init)
		return v.tensor
	}
	t := c.withShape(c.derived(v.source, init), v.source.shape...)
	if v.perm != nil {
		t = c.permute(t, v.perm)
	}
	v.tensor = c.withShape(t, v.shape...)
	return v.tensor
}

// constantOf is the content of a value that depends on nothing, nil if it is not known. An initializer is.
func (i *importer) constantOf(v *value) (*constant, error) {
	switch {
	case v.known != nil:
	case v.init != nil:
		return constantOf(v.init)
	case v.input && i.options.Known[v.name] != nil:
		return constantOf(i.options.Known[v.name])
	}
	return v.known, nil
}

// weight is input k where an operator has its weights: a parameter, even where the file has a constant.
func (c *call) weight(k int) (graph.TensorID, error) {
	return c.stored(k, graph.Parameter)
}

// stored is input k kept with a role if nothing else makes it.
func (c *call) stored(k int, role graph.Role) (graph.TensorID, error) {
	v, err := c.value(k)
	if err != nil {
		return missing, err
	}
	if v.fresh && role == graph.Parameter {
		return c.derived(v, firstOf(v.shape)), nil
	}
	if v.fresh || v.init != nil && !v.whole {
		return c.persistent(v, role)
	}
	// a normalisation of torch's without a scale has ones there
	if _, alike := uniformOf(v); role == graph.Parameter && !(alike && strings.HasSuffix(c.node.Op, "Normalization")) {
		c.untrained(v)
	}
	return c.tensorOf(v)
}
