package external

import "tensile/graph"

// Claim is the graph of a script of which nothing is known but how many bytes it may have on the device, 1 at least:
// one op that makes them. With it a script is planned for before it has recorded anything.
func Claim(size graph.Bytes) *graph.Graph {
	return &graph.Graph{Name: "script",
		Storages: []graph.Storage{{Name: "all", Role: graph.Activation, Bytes: size}},
		Tensors:  []graph.Tensor{{Name: "all", Shape: graph.Shape{int(size)}, DType: graph.Uint8}},
		Ops: []graph.Op{{Name: "train", Kind: graph.Opaque, Inputs: []graph.TensorID{}, Outputs: []graph.TensorID{0},
			Phase: graph.Forward, Forward: -1}}}
}
