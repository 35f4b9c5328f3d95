package graph

import (
	"fmt"
	"slices"
)

// Kind names an operator. Each family of kinds has a file of its own, which holds everything that the graph knows of
// them: operands, outputs in place, shapes, arithmetic, traffic and attributes. Kernels, autodiff and planners rely on
// the operand orders documented beside the names.
type Kind string

// families are all kinds. A new kind is a row of its family, a new family a file and a name here.
var families = []map[Kind]kind{
	convolutions, products, elementwise, broadcasts, pooling, norms, moves, embeddings, attention, recurrent, losses,
	optimizers, opaque, collectives,
}

// kind is what follows from the name of an operator.
type kind struct {
	inputs [2]int // min and max number
	// per output: the input that it updates in place, or fresh; nil: Opaque
	outputs []int
	inPlace []int                                      // see overwrites
	shapes  func(a Attrs, in []Shape) ([]Shape, error) // Shapes of the outputs.
	flops   func(a Attrs, in, out []Shape) int64
	dtypes  func(in []DType, outputs int) ([]DType, error) // Types of the outputs; nil means the function alike.
	// of inputs of these shapes and sizes and outputs of these sizes; nil: each operand is read or written once, from
	// end to end
	traffic func(a Attrs, shapes []Shape, in, out []Bytes) Bytes
	attrs   attrSet             // attributes that it has; others are refused
	check   func(a Attrs) error // nil: any finite attributes will do
}

// fresh marks an output that is a new storage.
const fresh = -1

var kinds = func() map[Kind]*kind {
	all := make(map[Kind]*kind)
	for _, family := range families {
		for name, k := range family {
			if all[name] != nil {
				panic(fmt.Sprintf("graph: kind %s has two rows", name))
			}
			k.inPlace = overwrites[name]
			all[name] = &k
		}
	}
	return all
}()

// Kinds returns every kind that one device can compute, all but Opaque and AllReduce, in no order.
func Kinds() []Kind {
	names := make([]Kind, 0, len(kinds))
	for k := range kinds {
		if k != Opaque && k != AllReduce {
			names = append(names, k)
		}
	}
	return names
}

// Infer returns the shapes of the outputs that an op of this kind makes.
func Infer(name Kind, a Attrs, in []Shape) ([]Shape, error) {
	k, ok := kinds[name]
	if !ok {
		return nil, fmt.Errorf("unknown op kind %q", name)
	}
	if minimum, maximum := k.inputs[0], k.inputs[1]; len(in) < minimum || len(in) > maximum {
		if minimum == maximum {
			return nil, fmt.Errorf("%s takes %d inputs, got %d", name, minimum, len(in))
		}
		return nil, fmt.Errorf("%s takes %d to %d inputs, got %d", name, minimum, maximum, len(in))
	}
	if err := k.accepts(a); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out, err := k.shapes(a, in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// inferTypes returns the types of the outputs that an op of this kind makes.
func inferTypes(name Kind, in []DType) ([]DType, error) {
	k := kinds[name]
	rule := k.dtypes
	if rule == nil {
		rule = alike
	}
	out, err := rule(in, len(k.outputs))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// accepts returns an error unless an op of the kind can have these attributes.
func (k *kind) accepts(a Attrs) error {
	if a.InPlace != 0 && k.inPlace != nil {
		if !slices.Contains(k.inPlace, a.InPlace-1) {
			return fmt.Errorf("in_place %d: its output may take the place of operands %v, counted from 0", a.InPlace,
				k.inPlace)
		}
		a.InPlace = 0
	}
	if stray := a.set() &^ k.attrs; stray != 0 {
		return fmt.Errorf("has no attribute %s", stray)
	}
	if err := a.finite(); err != nil {
		return err
	}
	if k.check == nil {
		return nil
	}
	return k.check(a)
}

// updated returns the input that output i updates in place, or fresh. The kind is not Opaque.
func (k *kind) updated(a Attrs, i int) int {
	if i == 0 && a.InPlace > 0 {
		return a.InPlace - 1
	}
	return k.outputs[i]
}

// MayOverwrite returns the inputs of an op of a kind in whose place its first output may be made (Attrs.InPlace).
func MayOverwrite(name Kind) []int {
	return slices.Clone(overwrites[name])
}

// Cost is what an op does in the roofline's terms.
type Cost struct {
	FLOPs int64
	Bytes Bytes // read and written: each operand once, or the part of it that the op touches

	// Of an AllReduce: what each replica sends and receives over the network, each way, and over how many connections
	// the first and the last of it go one after the other. 0 of others.
	Network Bytes
	Hops    int
}

// moves returns the traffic of an op with inputs of these shapes and operands of these sizes.
func (k *kind) moves(a Attrs, shapes []Shape, in, out []Bytes) Bytes {
	if k.traffic != nil {
		return k.traffic(a, shapes, in, out)
	}
	return sumOf(in, out)
}

// sumOf is the traffic of an op that reads or writes each operand once, from end to end.
func sumOf(in, out []Bytes) Bytes {
	var sum Bytes
	for _, sizes := range [2][]Bytes{in, out} {
		for _, s := range sizes {
			sum += s
		}
	}
	return sum
}
