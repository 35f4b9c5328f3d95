package graph

import (
	"fmt"
	"slices"
)

// Opaque is an operator of which only its effects are known: any operands of any types, any outputs. An output is a
// fresh storage, or the next version of an input. Attributes: FLOPs; Scratch; Once if the op must not run twice in an
// iteration, because it has effects beside its outputs. A device that holds data has no kernel for it.
const Opaque Kind = "opaque"

var opaque = map[Kind]kind{
	Opaque: {inputs: [2]int{0, mostParts}, shapes: opaqueShapes, flops: opaqueFLOPs,
		attrs: names("flops", "once", "scratch"), check: opaqueCheck},
}

func opaqueShapes(Attrs, []Shape) ([]Shape, error) {
	return nil, fmt.Errorf("what it makes does not follow from its inputs")
}

func opaqueFLOPs(a Attrs, _, _ []Shape) int64 { return a.FLOPs }

func opaqueCheck(a Attrs) error {
	if a.FLOPs < 0 {
		return fmt.Errorf("flops %d must not be negative", a.FLOPs)
	}
	if a.Scratch < 0 || a.Scratch > MaxBytes {
		return fmt.Errorf("scratch %d must be 0 to %d bytes", a.Scratch, MaxBytes)
	}
	return nil
}

// Opaque reports whether all ops are opaque: the graph is what a script was seen to do. Such a graph says nothing of
// what elements mean, so that storages may have any number of bytes and any type, and the persistent ones no Init: the
// script fills them. Its ops run in their order.
func (g *Graph) Opaque() bool {
	return !slices.ContainsFunc(g.Ops, func(op Op) bool { return op.Kind != Opaque })
}

// Scratch is what an execution of an op allocates beside its outputs, as far as the graph says it. An opaque op that
// runs again makes its fresh outputs a second time, beside the storages that they are then copied into.
func (g *Graph) Scratch(op OpID, again bool) Bytes {
	o := &g.Ops[op]
	scratch := o.Attrs.Scratch
	if o.Kind != Opaque || !again {
		return scratch
	}
	for i, t := range o.Outputs {
		if g.Fresh(op, i) {
			scratch += g.Storages[g.Tensors[t].Storage].Bytes
		}
	}
	return scratch
}
