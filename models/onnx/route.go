package onnx

import (
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/peak"
)

// Order says in which order the nodes of a model become ops. Nodes that depend on no input of the model come right
// before the first node that reads from them.
type Order string

// The orders.
const (
	// InFile is the order of the file, each node after those that it reads from.
	InFile Order = "file"
	// DepthFirst follows a branch until it meets another one: Algorithm 1 of SuperNeurons (section 3.1).
	DepthFirst Order = "depth"
	// LeastMemory is that of three whose training graph is to need least without a plan, with everything freed after
	// its last use, and never needs more than that of InFile. The three are InFile, DepthFirst, and one that takes, of
	// the nodes that are ready, the one by which memory grows least.
	LeastMemory Order = "memory"
)

// Orders are the names of all orders.
func Orders() []string { return []string{string(InFile), string(DepthFirst), string(LeastMemory)} }

// route is a model's nodes and what they read from one another, by their places in the order of the file.
type route struct {
	nodes []*Node
	from  [][]int // places that a node reads from, once each
	to    [][]int // places that read from a node, once each
	fed   []bool  // whether a node depends on an input of the model
}

// newRoute takes nodes in an order in which they can be executed.
func newRoute(g *Graph, nodes []*Node) *route {
	r := &route{nodes: nodes, from: make([][]int, len(nodes)), to: make([][]int, len(nodes)),
		fed: make([]bool, len(nodes))}
	inputs := make(map[string]bool)
	for _, in := range g.Inputs {
		inputs[in.Name] = true
	}
	for _, t := range g.Initializers {
		delete(inputs, t.Name) // an input with a default
	}
	maker := make(map[string]int)
	reader := make([]int, len(nodes)) // 1 + the last that was noted for a node
	for i, n := range nodes {
		for _, in := range n.Inputs {
			at, made := maker[in]
			r.fed[i] = r.fed[i] || inputs[in] || made && r.fed[at]
			if made && reader[at] != i+1 {
				reader[at] = i + 1
				r.from[i], r.to[at] = append(r.from[i], at), append(r.to[at], i)
			}
		}
		for _, out := range n.Outputs {
			if out != "" {
				maker[out] = i
			}
		}
	}
	return r
}

// walk takes the nodes of a route one by one.
type walk struct {
	*route
	waits []int // fed nodes that a node still waits for
	taken []bool
	order []*Node
}

// newWalk returns also the places of the fed nodes that wait for none.
func newWalk(r *route) (w *walk, first []int) {
	w = &walk{route: r, waits: make([]int, len(r.nodes)), taken: make([]bool, len(r.nodes))}
	for at := range r.nodes {
		for _, from := range r.from[at] {
			if r.fed[from] {
				w.waits[at]++
			}
		}
		if r.fed[at] && w.waits[at] == 0 {
			first = append(first, at)
		}
	}
	return w, first
}

// take takes a node, and before it those that it wants and that depend on no input. It returns all of them.
func (w *walk) take(at int) []int {
	all := append(w.unfed(at), at)
	for _, at := range all {
		w.taken[at] = true
		w.order = append(w.order, w.nodes[at])
	}
	return all
}

// rest takes what nothing wanted.
func (w *walk) rest() []*Node {
	for at := range w.nodes {
		if !w.taken[at] {
			w.take(at)
		}
	}
	return w.order
}

// unfed are the nodes before one that depend on no input and were not taken yet, in the order of the file.
func (w *walk) unfed(at int) []int {
	var all []int
	seen := make(map[int]bool)
	for stack := []int{at}; len(stack) > 0; {
		last := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, from := range w.from[last] {
			if !w.fed[from] && !w.taken[from] && !seen[from] {
				seen[from] = true
				all, stack = append(all, from), append(stack, from)
			}
		}
	}
	slices.Sort(all)
	return all
}

// depthFirst is the order of Algorithm 1: a node calls those that read from it, one after the other; one that is called
// for the last time comes next, and calls in its turn.
func (r *route) depthFirst() []*Node {
	w, first := newWalk(r)
	slices.Reverse(first)
	for calls := first; len(calls) > 0; {
		at := calls[len(calls)-1]
		calls = calls[:len(calls)-1]
		if w.waits[at]--; w.waits[at] > 0 {
			continue
		}
		w.take(at)
		for _, next := range slices.Backward(r.to[at]) {
			calls = append(calls, next)
		}
	}
	return w.rest()
}

// mostLooked is how many of the nodes that are ready, the latest, are looked at for the next one.
const mostLooked = 256

// leastGrowth takes the node by which memory grows least, the first in the file of several. Memory is that of the
// forward ops of a training graph: ops are those of each node, and what is read again after them is not freed.
func (r *route) leastGrowth(g *graph.Graph, ops map[*Node][2]int) []*Node {
	const forever = 1 << 30
	uses := make([]int, len(g.Storages)) // nodes that still touch a storage
	touched := make([][]graph.StorageID, len(r.nodes))
	forward := 0
	for at, n := range r.nodes {
		for op := ops[n][0]; op < ops[n][1]; op++ {
			touched[at] = append(touched[at], g.Touches(graph.OpID(op))...)
		}
		slices.Sort(touched[at])
		touched[at] = slices.Compact(touched[at])
		for _, s := range touched[at] {
			uses[s]++
		}
		forward = max(forward, ops[n][1])
	}
	for op := forward; op < len(g.Ops); op++ {
		for _, s := range g.Touches(graph.OpID(op)) {
			uses[s] = forever
		}
	}
	here := make([]bool, len(g.Storages))
	for _, s := range g.Storages {
		here[s.ID] = s.Role.Persistent() || s.Role == graph.Input
		if here[s.ID] {
			uses[s.ID] = forever
		}
	}
	growth := func(at int) (b graph.Bytes) {
		for _, s := range touched[at] {
			if !here[s] {
				b += g.Storages[s].Bytes
			}
			if uses[s] == 1 {
				b -= g.Storages[s].Bytes
			}
		}
		return b
	}
	pick := func(ready []int) int {
		best := max(0, len(ready)-mostLooked)
		for i := best + 1; i < len(ready); i++ {
			a, b := growth(ready[i]), growth(ready[best])
			if a < b || a == b && ready[i] < ready[best] {
				best = i
			}
		}
		return best
	}
	w, ready := newWalk(r)
	for len(ready) > 0 {
		i := pick(ready)
		at := ready[i]
		ready = slices.Delete(ready, i, i+1)
		for _, taken := range w.take(at) {
			for _, s := range touched[taken] {
				here[s] = true
				uses[s]--
			}
		}
		for _, next := range r.to[at] {
			if w.waits[next]--; w.waits[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	return w.rest()
}

// ordered makes the training graph of a model with its nodes in an order.
func ordered(m *Model, name string, t Training) (*graph.Graph, *Network, error) {
	if t.Order == "" {
		t.Order = InFile
	}
	if !slices.Contains(Orders(), string(t.Order)) {
		return nil, nil, fmt.Errorf("unknown order %.40q: choose one of %v", t.Order, Orders())
	}
	nodes, err := m.Graph.sorted()
	if err != nil {
		return nil, nil, err
	}
	r := newRoute(&m.Graph, nodes)
	if t.Order == DepthFirst {
		return train(m, name, r.depthFirst(), t)
	}
	best, net, err := train(m, name, nodes, t)
	if err != nil || t.Order == InFile {
		return best, net, err
	}
	ops := net.importer.ops
	least, order := liveIn(best, ops, nodes), nodes
	for _, other := range [][]*Node{r.depthFirst(), r.leastGrowth(best, ops)} {
		if live := liveIn(best, ops, other); live < least {
			least, order = live, other
		}
	}
	if slices.Equal(order, nodes) {
		return best, net, nil
	}
	g, other, err := train(m, name, order, t)
	if err != nil {
		return nil, nil, err
	}
	_, before := peak.Vanilla(best)
	if _, live := peak.Vanilla(g); live < before {
		best, net = g, other
	}
	return best, net, nil
}

// liveIn is what a training graph will need without a plan, with everything freed after its last use, if its nodes come
// in another order; ops are those of each node. Gradients then come in the reverse of that. It may be off by a little
// where a gradient is a sum, whose terms then come in another order.
func liveIn(g *graph.Graph, ops map[*Node][2]int, nodes []*Node) graph.Bytes {
	order := make([]graph.OpID, 0, len(g.Ops))
	taken := make([]bool, len(g.Ops))
	take := func(op graph.OpID) {
		if !taken[op] {
			taken[op] = true
			order = append(order, op)
		}
	}
	for _, n := range nodes {
		for op := ops[n][0]; op < ops[n][1]; op++ {
			take(graph.OpID(op))
		}
	}
	of := make(map[graph.OpID][]graph.OpID) // backward ops of a forward op
	for _, op := range g.Ops {
		switch op.Phase {
		case graph.Forward: // of the loss
			take(op.ID)
		case graph.Backward:
			of[op.Forward] = append(of[op.Forward], op.ID)
		}
	}
	for _, forward := range slices.Backward(slices.Clone(order)) {
		for _, op := range of[forward] {
			take(op)
		}
	}
	for _, op := range g.Ops { // updates
		take(op.ID)
	}
	_, live := peak.VanillaIn(g, order)
	return live
}
