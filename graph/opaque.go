package graph

import "fmt"

// Opaque is an operator of which only its effects are known: any operands of any types, any outputs. An output is a
// fresh storage, or the next version of an input. Attributes: FLOPs; Once if the op must not run twice in an iteration,
// because it draws random numbers or has effects beside its outputs. A device that holds data has no kernel for it.
const Opaque Kind = "opaque"

var opaque = map[Kind]kind{
	Opaque: {inputs: [2]int{0, mostParts}, shapes: opaqueShapes, flops: opaqueFLOPs, attrs: names("flops", "once"),
		check: opaqueCheck},
}

func opaqueShapes(Attrs, []Shape) ([]Shape, error) {
	return nil, fmt.Errorf("what it makes does not follow from its inputs")
}

func opaqueFLOPs(a Attrs, _, _ []Shape) int64 { return a.FLOPs }

func opaqueCheck(a Attrs) error {
	if a.FLOPs < 0 {
		return fmt.Errorf("flops %d must not be negative", a.FLOPs)
	}
	return nil
}
