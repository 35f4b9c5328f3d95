package onnx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/peak"
)

// randomModel is a network of branches that fork and meet, whose nodes stand in the file in any order. Each value is
// [N,width]; weights may pass through a Transpose, which depends on no input.
func randomModel(seed uint64) *Model {
	random := rand.New(rand.NewPCG(seed, 3))
	m := &Model{IR: 8, Opsets: []Opset{{Version: 17}}}
	g := &m.Graph
	g.Inputs = []Value{typed("x", Float32, -1, 4), typed("z", Float32, -1, 3)}
	values, widths := list("x", "z"), map[string]int{"x": 4, "z": 3}
	add := func(width int, n Node) {
		g.Nodes = append(g.Nodes, n)
		values, widths[n.Outputs[0]] = append(values, n.Outputs[0]), width
	}
	linear := func(in string, width int, out string) Node {
		w := "w." + out
		if random.IntN(3) == 0 {
			g.Initializers = append(g.Initializers, floats(w, sequence(width*widths[in]), int64(width),
				int64(widths[in])))
			g.Nodes = append(g.Nodes, node("Transpose", list(w), list(w+".t"), "perm", []int64{1, 0}))
			return node("MatMul", list(in, w+".t"), list(out))
		}
		g.Initializers = append(g.Initializers, floats(w, sequence(width*widths[in]), int64(widths[in]),
			int64(width)))
		return node("MatMul", list(in, w), list(out))
	}
	for i := range 4 + random.IntN(10) {
		in := values[max(0, len(values)-1-random.IntN(4))]
		out := fmt.Sprintf("v%d", i)
		switch random.IntN(5) {
		case 0:
			add(widths[in], node([]string{"Relu", "Tanh", "Sigmoid"}[random.IntN(3)], list(in), list(out)))
		case 1:
			other := values[random.IntN(len(values))]
			if widths[other] == widths[in] && other != in {
				add(widths[in], node("Add", list(in, other), list(out)))
				continue
			}
			add(widths[in]+widths[other], node("Concat", list(in, other), list(out), "axis", 1))
		case 2:
			add(widths[in], node("Dropout", list(in), list(out))) // without a flag it does nothing
		default:
			width := 1 + random.IntN(40)
			add(width, linear(in, width, out))
		}
	}
	add(3, node("Concat", values[2:], list("all"), "axis", 1)) // nothing is left out
	widths["all"] = 0
	for _, v := range values[2 : len(values)-1] {
		widths["all"] += widths[v]
	}
	g.Nodes = append(g.Nodes, linear("all", 3, "y"))
	g.Outputs = []Value{typed("y", Float32, -1, 3)}
	random.Shuffle(len(g.Nodes), func(i, j int) { g.Nodes[i], g.Nodes[j] = g.Nodes[j], g.Nodes[i] })
	for i := range g.Nodes {
		g.Nodes[i].index = i
	}
	return m
}

// slowDepthFirst is Algorithm 1 of SuperNeurons word by word, over the nodes that depend on an input: a node counts
// calls, goes on at the last of them, and calls what reads from it one after the other.
func slowDepthFirst(r *route) []int {
	calls := make([]int, len(r.nodes))
	var all []int
	var construct func(at int)
	construct = func(at int) {
		layers := 0 // before it
		for _, from := range r.from[at] {
			if r.fed[from] {
				layers++
			}
		}
		if calls[at]++; calls[at] < layers {
			return
		}
		all = append(all, at)
		for _, next := range r.to[at] {
			construct(next)
		}
	}
	for at := range r.nodes {
		if r.fed[at] && !slices.ContainsFunc(r.from[at], func(from int) bool { return r.fed[from] }) {
			construct(at)
		}
	}
	return all
}

// checkOrders checks all orders of one random model.
func checkOrders(t *testing.T, seed uint64) (better bool) {
	t.Helper()
	m := randomModel(seed)
	if err := m.check(); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	nodes, err := m.Graph.sorted()
	if err != nil {
		t.Fatal(err)
	}
	r := newRoute(&m.Graph, nodes)
	g, net, err := train(m, "random", nodes, Training{Batch: 5})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	depth := r.depthFirst()
	for what, order := range map[string][]*Node{"depth first": depth,
		"least growth": r.leastGrowth(g, net.importer.ops)} {
		made := map[string]bool{"x": true, "z": true}
		for _, w := range m.Graph.Initializers {
			made[w.Name] = true
		}
		for _, n := range order {
			for _, in := range n.Inputs {
				if !made[in] {
					t.Fatalf("seed %d: %s: %v reads %s, which is made later", seed, what, n, in)
				}
			}
			made[n.Outputs[0]] = true
		}
		trained, _, err := train(m, "random", order, Training{Batch: 5})
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, what, err)
		}
		_, live := peak.Vanilla(trained)
		if foreseen := liveIn(g, net.importer.ops, order); foreseen < live*95/100 || foreseen > live*105/100 {
			t.Errorf("seed %d: %s: it needs %v, and was to need %v", seed, what, live, foreseen)
		}
		if len(order) != len(nodes) || len(made) != 2+len(m.Graph.Initializers)+len(nodes) {
			t.Fatalf("seed %d: %s: %d nodes of %d", seed, what, len(order), len(nodes))
		}
	}
	var fed []*Node
	for _, n := range depth {
		if n.Op != "Transpose" {
			fed = append(fed, n)
		}
	}
	for i, at := range slowDepthFirst(r) {
		if fed[i] != nodes[at] {
			t.Fatalf("seed %d: node %d of Algorithm 1 is %v, want %v", seed, i, fed[i], nodes[at])
		}
	}
	live := func(o Order) graph.Bytes {
		g, _, err := Job(m, "random", Training{Batch: 5, Order: o})
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, o, err)
		}
		_, live := peak.Vanilla(g)
		return live
	}
	file, least := live(InFile), live(LeastMemory)
	if least > file || least > live(DepthFirst)*105/100 {
		t.Errorf("seed %d: in the order of least memory it needs %v, in that of the file %v, depth-first %v", seed,
			least, file, live(DepthFirst))
	}
	return least < file
}

// Every order is one in which the nodes can be executed, depth-first is Algorithm 1 of SuperNeurons, and least memory
// is never above the order of the file, and below it for some.
func TestOrders(t *testing.T) {
	better := 0
	for seed := range uint64(200) {
		if checkOrders(t, seed) {
			better++
		}
	}
	t.Logf("less memory than in the order of the file: %d of 200", better)
	if better == 0 {
		t.Error("the order of least memory never needs less")
	}
}

func FuzzOrders(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkOrders(t, seed) })
}
