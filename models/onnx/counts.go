package onnx

import "slices"

// Inputs of whole numbers that become floats before anything is done with them, such as masks of tokens and pixels of
// bytes, are fed as floats. What a node does with whole numbers before it is done with floats then.
var passing = []string{"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Tile",
	"Slice", "Gather", "GatherND", "Concat", "Split", "Add", "Sub", "Mul", "Neg"}

// comparing are operators that make truth values.
var comparing = []string{"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}

// counts returns the inputs of whole numbers that are fed as floats, and the casts between whole types that such
// numbers pass through as they are.
func (m *Model) counts() (inputs map[string]bool, casts map[*Node]bool) {
	readers := make(map[string][]*Node)
	for k := range m.Graph.Nodes {
		n := &m.Graph.Nodes[k]
		for _, in := range n.Inputs {
			readers[in] = append(readers[in], n)
		}
	}
	inputs, casts = make(map[string]bool), make(map[*Node]bool)
	for _, in := range m.Graph.Inputs {
		if _, known := types[in.Type]; !known || in.Type.float() {
			continue
		}
		if passed, only := castOnly(in.Name, readers); only {
			inputs[in.Name] = true
			for _, n := range passed {
				casts[n] = true
			}
		}
	}
	return inputs, casts
}

// castOnly reports whether all that reads a value casts it to floats in the end, and which casts to whole types stand
// before that.
func castOnly(name string, readers map[string][]*Node) (passed []*Node, only bool) {
	seen := map[string]bool{name: true}
	for left := []string{name}; len(left) > 0; left = left[1:] {
		for _, n := range readers[left[0]] {
			to := Type((&call{node: n}).int("to", 0))
			switch {
			case n.Op == "Shape" || n.Op == "Size":
				continue
			case n.Op == "Cast" && (to.float() || to == Bool), slices.Contains(comparing, n.Op):
				only = true
				continue
			case n.Op == "Cast" && (to == Int64 || to == Int32 || to == Uint64 || to == Uint32):
				passed = append(passed, n)
			case !slices.Contains(passing, n.Op), (n.Op == "Gather" || n.Op == "GatherND") && n.Inputs[0] != left[0]:
				return nil, false
			}
			for _, out := range n.Outputs {
				if !seen[out] {
					seen[out] = true
					left = append(left, out)
				}
			}
		}
	}
	return passed, only
}
