package task

import "tensile/graph"

// Mark is what a storage holds at the end of a training in which the gradient of a parameter was zero all the time, by
// its digest: the optimizer's state, which begins as zeros, or without such the parameter itself.
type Mark struct {
	Parameter string
	Storage   graph.StorageID
	Digest    string
}

// largestMade bounds the bytes of a parameter without an optimizer's state that are made once more for its mark.
const largestMade = 16 * graph.MiB

// Marks returns those of the parameters that the graph updates. Of the ones without an optimizer's state large ones
// have none, nor have those whose learning rate is 0, which stay as they are by any gradient.
func (t Task) Marks() []Mark {
	var marks []Mark
	zeros := make(map[graph.Bytes]string)
	for _, op := range t.Graph.Ops {
		storage := func(k int) graph.Storage { return t.Graph.Storages[t.Graph.Tensors[op.Inputs[k]].Storage] }
		switch op.Kind {
		case graph.Adam, graph.Momentum:
			state := storage(2)
			if zeros[state.Bytes] == "" {
				zeros[state.Bytes] = Digest(make([]float32, state.Bytes/graph.ElementBytes))
			}
			p := storage(0)
			marks = append(marks, Mark{nameOf(&p), state.ID, zeros[state.Bytes]})
		case graph.SGD:
			if p := storage(0); p.Bytes <= largestMade && p.Init != nil && float32(op.Attrs.LearningRate) != 0 {
				content := make([]float32, p.Bytes/graph.ElementBytes)
				t.Init(p, content)
				marks = append(marks, Mark{nameOf(&p), p.ID, Digest(content)})
			}
		}
	}
	return marks
}

// Unmoved returns the names of the parameters all of whose marks are there at the end of a training, given the digests
// of its storages.
func Unmoved(marks []Mark, ended map[int32]string) []string {
	moved := make(map[string]bool)
	for _, m := range marks {
		moved[m.Parameter] = moved[m.Parameter] || ended[int32(m.Storage)] != m.Digest
	}
	var names []string
	for _, m := range marks {
		if is, left := moved[m.Parameter]; left && !is {
			names = append(names, m.Parameter)
			delete(moved, m.Parameter)
		}
	}
	return names
}
