package onnx

import (
	"errors"
	"fmt"
)

// The operator sets of ONNX that are read.
const (
	oldest = 7
	newest = 28
)

// check returns an error unless every value has one source, every node finds its inputs, and no node waits for itself.
func (m *Model) check() error {
	g := &m.Graph
	for _, t := range m.tensors() {
		if err := t.check(); err != nil {
			return err
		}
	}
	if v := m.Version(); (v < oldest || v > newest) && (v != 0 || len(m.Opsets) == 0) { // 0: of other domains alone
		return fmt.Errorf("it uses operator set %d of ONNX: sets %d to %d are read, export it with one of "+
			"these (in PyTorch by opset_version)", v, oldest, newest)
	}
	if len(g.Outputs) == 0 {
		return errors.New("the graph has no output: export it with what is to be trained as one")
	}
	made := make(map[string]bool)
	for i := range g.Initializers {
		name := g.Initializers[i].Name
		if name == "" || made[name] {
			return fmt.Errorf("initializer %d: its name %.80q is empty or taken", i, name)
		}
		made[name] = true
	}
	inputs := make(map[string]bool)
	for i, v := range g.Inputs { // an initializer may be listed as an input, too: it is its default
		if v.Name == "" || inputs[v.Name] {
			return fmt.Errorf("input %d: its name %.80q is empty or taken", i, v.Name)
		}
		inputs[v.Name], made[v.Name] = true, true
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, out := range n.Outputs {
			if out != "" && made[out] {
				return fmt.Errorf("%v makes %.80q, which something else makes too", n, out)
			}
			made[out] = true
		}
	}
	for i := range g.Nodes {
		for _, in := range g.Nodes[i].Inputs {
			if in != "" && !made[in] {
				return fmt.Errorf("%v reads %.80q, which nothing makes: an initializer or input is missing",
					&g.Nodes[i], in)
			}
		}
	}
	for _, v := range g.Outputs {
		if !made[v.Name] {
			return fmt.Errorf("output %.80q is made by nothing", v.Name)
		}
	}
	_, err := g.sorted()
	return err
}

// sorted returns the nodes in an order in which they can be executed: that of the file, each node after those that it
// reads from.
func (g *Graph) sorted() ([]*Node, error) {
	maker := make(map[string]int)
	for i := range g.Nodes {
		for _, out := range g.Nodes[i].Outputs {
			if out != "" {
				maker[out] = i
			}
		}
	}
	// A depth-first walk with its own stack: files may be deep.
	const (
		unseen = iota
		open
		done
	)
	state := make([]int, len(g.Nodes))
	next := make([]int, len(g.Nodes)) // the input to look at next
	order := make([]*Node, 0, len(g.Nodes))
	var stack []int
	for root := range g.Nodes {
		if state[root] == unseen {
			stack = append(stack[:0], root)
			state[root] = open
		}
		for len(stack) > 0 && state[root] == open {
			i := stack[len(stack)-1]
			n := &g.Nodes[i]
			if next[i] == len(n.Inputs) {
				state[i], stack, order = done, stack[:len(stack)-1], append(order, n)
				continue
			}
			in := n.Inputs[next[i]]
			next[i]++
			from, ok := maker[in]
			if !ok || in == "" {
				continue
			}
			switch state[from] {
			case open:
				return nil, fmt.Errorf("%v waits for itself: its input %.80q comes from it by a cycle", n, in)
			case unseen:
				state[from], stack = open, append(stack, from)
			}
		}
	}
	return order, nil
}
