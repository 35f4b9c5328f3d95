package models

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/internal/needs"
)

// layer is what a measured profile says of a module, and a graph of an op: its kind, the bytes of what it makes and of
// what it trains, and the layers whose output it reads, by their positions among the layers, ascending. A layer that
// reads the network's input reads nothing.
type layer struct {
	kind       graph.Kind
	activation graph.Bytes
	parameters graph.Bytes
	reads      []int
}

// modules maps the names of modules in a profile to kinds. Input, Size and View are left out: loading is no op here,
// nor is looking at a shape, and a view makes nothing.
var modules = map[string]graph.Kind{
	"Conv2d": graph.Conv2D, "BatchNorm2d": graph.BatchNorm, "ReLU": graph.ReLU, "MaxPool2d": graph.MaxPool,
	"AvgPool2d": graph.AvgPool,
	"Linear":    graph.Linear, "Concat": graph.Concat, "Add": graph.Add, "Dropout": graph.Dropout,
}

var (
	node = regexp.MustCompile(`(?m)^node(\d+) -- (\w+).* activation_size=([\d.]+), parameter_size=([\d.]+)$`)
	edge = regexp.MustCompile(`(?m)^\tnode(\d+) -- node(\d+)$`)
)

// profile reads the layers of a profile in the order in which they ran, without those of the ids in [from, to).
func profile(t *testing.T, name string, from, to int) []layer {
	t.Helper()
	text, err := os.ReadFile(needs.Data(t, "pipedream", name+".graph.txt"))
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) int {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return int(v)
	}
	nodes := node.FindAllStringSubmatch(string(text), -1)
	slices.SortFunc(nodes, func(a, b []string) int { return cmp.Compare(number(a[1]), number(b[1])) })
	var layers []layer
	position := make(map[int]int) // of the nodes that are layers
	for _, n := range nodes {
		kind, ok := modules[n[2]]
		if id := number(n[1]); ok && (id < from || id >= to) {
			position[id] = len(layers)
			layers = append(layers, layer{kind: kind, activation: graph.Bytes(number(n[3])),
				parameters: graph.Bytes(number(n[4]))})
		}
	}
	sizes := make(map[int]bool) // of nodes that ask for a shape: they read no content
	for _, n := range nodes {
		sizes[number(n[1])] = n[2] == "Size"
	}
	before := make(map[int][]int)
	for _, e := range edge.FindAllStringSubmatch(string(text), -1) {
		if from, to := number(e[1]), number(e[2]); !sizes[to] {
			before[to] = append(before[to], from)
		}
	}
	for id, at := range position {
		layers[at].reads = readBy(id, func(id int) []int { return before[id] }, position)
	}
	return layers
}

// layersOf returns the layers of a graph's forward pass.
func layersOf(g *graph.Graph) []layer {
	var layers []layer
	position := make(map[int]int) // of the ops that are layers
	for _, op := range g.Ops {
		if op.Phase != graph.Forward || op.Kind == graph.BatchNormStats || op.Kind == graph.BatchNormUpdate ||
			op.Kind == graph.SoftmaxXent {
			continue // a batch norm is one module there; the loss is not in a profile
		}
		l := layer{kind: op.Kind, activation: g.Tensors[op.Outputs[0]].Bytes()}
		for _, in := range op.Inputs {
			if s := g.Storages[g.Tensors[in].Storage]; s.Role == graph.Parameter {
				l.parameters += s.Bytes
			}
		}
		position[int(op.ID)] = len(layers)
		layers = append(layers, l)
	}
	maker := make(map[graph.Version]int)
	for _, op := range g.Ops {
		for _, v := range g.Writes(op.ID) {
			maker[v] = int(op.ID)
		}
	}
	before := func(id int) (ops []int) {
		for _, v := range g.Reads(graph.OpID(id)) {
			if op, ok := maker[v]; ok {
				ops = append(ops, op)
			}
		}
		return ops
	}
	for id, at := range position {
		layers[at].reads = readBy(id, before, position)
	}
	return layers
}

// readBy returns the positions of the layers that a node reads, itself or through nodes that are no layers, each once
// and ascending.
func readBy(id int, before func(id int) []int, position map[int]int) []int {
	var reads []int
	for _, b := range before(id) {
		if at, ok := position[b]; ok {
			reads = append(reads, at)
		} else {
			reads = append(reads, readBy(b, before, position)...)
		}
	}
	slices.Sort(reads)
	return slices.Compact(reads)
}

// TestAgainstProfiles compares the image networks, layer by layer and in order, with the graphs of PipeDream's
// profiles: the bytes of every activation and of every layer's parameters, and which layers each layer reads. They
// agree but for what a row names.
func TestAgainstProfiles(t *testing.T) {
	tests := []struct {
		profile  string
		model    model
		batch    int
		from, to int // ids of nodes of the profile that the network lacks
	}{
		{profile: "alexnet", model: torchAlexNet, batch: 256},
		{profile: "squeezenet1_0", model: squeezeNet, batch: 256},
		{profile: "vgg16", model: vgg([5]int{2, 2, 3, 3, 3}), batch: 128},
		{profile: "resnet50", model: resnet([4]int{3, 4, 6, 3}), batch: 128},
		{profile: "resnet101", model: resnet([4]int{3, 4, 23, 3}), batch: 64},
		{profile: "densenet121", model: densenet([4]int{6, 12, 24, 16}), batch: 64},
		// The auxiliary classifier: a pool, two normalised convolutions and a linear layer beside the first of the
		// modules d.
		{profile: "inception_v3", model: inceptionV3, batch: 128, from: 230, to: 240},
	}
	for _, test := range tests {
		t.Run(test.profile, func(t *testing.T) {
			want := profile(t, test.profile, test.from, test.to)
			g, err := test.model.build(test.profile, Config{Batch: test.batch})
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(want, layersOf(g), gocmp.AllowUnexported(layer{})); diff != "" {
				t.Errorf("(-profile +graph):\n%s", diff)
			}
		})
	}
}
