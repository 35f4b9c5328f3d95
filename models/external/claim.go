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

// Need is the most that storages and scratch of a script's graph take at a time without a plan: what outlives the
// iteration is there all the time, the rest from the op that makes it until the script lets it go.
func Need(g *graph.Graph) (most graph.Bytes) {
	n := len(g.Ops)
	change := make([]graph.Bytes, n+1) // before each op
	last := g.LastTouches()
	var now graph.Bytes
	for i, s := range g.Storages {
		switch {
		case last[i] < 0:
		case s.Role.Persistent():
			now += s.Bytes
		default:
			change[max(s.Until, last[i]+1)] -= s.Bytes
		}
	}
	made := make([]bool, len(g.Storages))
	for op := range g.Ops {
		for _, t := range g.Ops[op].Outputs {
			if s := g.Tensors[t].Storage; !made[s] && !g.Storages[s].Role.Persistent() {
				made[s] = true
				change[op] += g.Storages[s].Bytes
			}
		}
	}
	for op := range g.Ops {
		now += change[op]
		most = max(most, now+g.Scratch(graph.OpID(op), false))
	}
	return max(most, now)
}
