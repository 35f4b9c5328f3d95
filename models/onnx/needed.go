package onnx

import (
	"fmt"
	"slices"
	"strings"
)

// trained is the place of the output that a loss is made of: the first one of floats.
func (g *Graph) trained() int {
	return max(0, slices.IndexFunc(g.Outputs, func(v Value) bool { return v.Type == 0 || v.Type.float() }))
}

// forTraining returns the model with the output that is trained as its only one, and without the nodes that it does
// not need: what cannot be trained may stand there.
func (m *Model) forTraining() *Model {
	g := &m.Graph
	at := g.trained()
	needed := map[string]bool{g.Outputs[at].Name: true}
	nodes, err := g.sorted()
	if err != nil {
		return m // which Read has refused
	}
	keep := make(map[*Node]bool)
	for _, n := range slices.Backward(nodes) {
		if !slices.ContainsFunc(n.Outputs, func(out string) bool { return out != "" && needed[out] }) {
			continue
		}
		keep[n] = true
		for _, in := range n.Inputs {
			needed[in] = true
		}
	}
	t := *m
	t.Graph.Outputs, t.Graph.Nodes = g.Outputs[at:at+1], nil
	for k := range g.Nodes {
		if keep[&g.Nodes[k]] {
			t.Graph.Nodes = append(t.Graph.Nodes, g.Nodes[k])
		}
	}
	return &t
}

// unread are the initializers of floats that nodes of a model read and those of another one do not.
func (m *Model) unread(of *Model) (names []string) {
	var read [2]map[string]bool
	for i, m := range []*Model{m, of} {
		read[i] = make(map[string]bool)
		for _, n := range m.Graph.Nodes {
			for _, in := range n.Inputs {
				read[i][in] = true
			}
		}
	}
	for _, t := range m.Graph.Initializers {
		if t.Type.float() && read[0][t.Name] && !read[1][t.Name] {
			names = append(names, t.Name)
		}
	}
	return names
}

// ownLoss is the loss that a model has, nil if it has none.
func (m *Model) ownLoss() *Node {
	for k := range m.Graph.Nodes {
		if n := &m.Graph.Nodes[k]; n.Op == "SoftmaxCrossEntropyLoss" {
			return n
		}
	}
	return nil
}

// checkLoss returns an error if a model has a loss of its own that is not what is trained.
func (m *Model) checkLoss(kind string, trained *Model) error {
	switch n := m.ownLoss(); {
	case n == nil:
	case kind != "":
		return fmt.Errorf("the model has a loss of its own, %v: leave --loss out", n)
	case trained.ownLoss() == nil || trained.Graph.Outputs[0].Name != n.Outputs[0]:
		return fmt.Errorf("the model has a loss of its own, %v, which must be its first output of floats, and %.80q "+
			"is: export it with the loss first, or without it", n, trained.Graph.Outputs[0].Name)
	}
	return nil
}

// checkNorms returns an error if the exporter has put batch normalisations into products.
func (m *Model) checkNorms() error {
	var names []string
	for k := range m.Graph.Nodes {
		if n := &m.Graph.Nodes[k]; n.foldsNorm() {
			names = append(names, n.Name)
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("the exporter has folded %d batch normalisations into the products before them, at nodes %s: "+
		"what is left trains as another network; keep them by torch.onnx.export(model.train(), inputs, FILE, "+
		"dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, opset_version=18)",
		len(names), listed(names))
}

// weightSlots are the inputs of operators that hold weights and nothing else.
var weightSlots = map[string][]int{"Gemm": {1, 2}, "Conv": {1, 2}, "ConvTranspose": {1, 2}, "MatMul": {1},
	"BatchNormalization": {1, 2, 3, 4}, "InstanceNormalization": {1, 2}, "GroupNormalization": {1, 2},
	"LayerNormalization": {1, 2}, "LSTM": {1, 2, 3}, "GRU": {1, 2, 3}, "RNN": {1, 2, 3}, "PRelu": {1}, "Gather": {0}}

// checkValues returns an error if inputs of a model stand where operators have their weights, as they do in a file that
// was exported without parameters.
func (m *Model) checkValues() error {
	fixed := make(map[string]int) // inputs of floats whose shape has no symbol, and how many dimensions they have
	fed := make(map[string]bool)
	for _, in := range m.Graph.Inputs {
		open := slices.ContainsFunc(in.Dims, func(d Dim) bool { return d.Extent < 1 })
		if fed[in.Name] = true; in.Type.float() && len(in.Dims) > 0 && !open {
			fixed[in.Name] = len(in.Dims)
		}
	}
	matrices := make(map[string]bool) // initializers of floats
	for _, t := range m.Graph.Initializers {
		delete(fixed, t.Name)
		delete(fed, t.Name)
		if t.Type.float() && len(t.Dims) >= 2 {
			matrices[t.Name] = true
		}
	}
	from := make(map[string]string)   // what a node only shows in another form
	products := make(map[string]bool) // inputs of a MatMul, both of which may be fed
	exported := false                 // with parameters
	var names []string
	for k := range m.Graph.Nodes {
		n := &m.Graph.Nodes[k]
		if len(n.Inputs) == 0 {
			continue
		}
		if n.Op == "Transpose" || n.Op == "Identity" {
			from[n.Outputs[0]] = n.Inputs[0]
		}
		for _, slot := range weightSlots[n.Op] {
			if slot >= len(n.Inputs) {
				break
			}
			in := n.Inputs[slot]
			if before, shown := from[in]; shown {
				in = before
			}
			exported = exported || matrices[in]
			rank := fixed[in]
			switch {
			case rank == 0, n.Op == "MatMul" && rank != 2,
				n.Op == "Gather" && (rank != 2 || !fed[n.Inputs[len(n.Inputs)-1]]), slices.Contains(names, in):
			default:
				names = append(names, in)
				products[in] = n.Op == "MatMul"
			}
		}
	}
	if exported {
		names = slices.DeleteFunc(names, func(name string) bool { return products[name] })
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("its inputs %s hold weights, of which the file has no values: export it with its parameters "+
		"(in PyTorch with export_params=True)", listed(names))
}

// listed quotes the first few names of many.
func listed(names []string) string {
	const most = 5
	quoted := make([]string, 0, most)
	for _, name := range names[:min(most, len(names))] {
		quoted = append(quoted, fmt.Sprintf("%.80q", name))
	}
	text := strings.Join(quoted, ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
