package models

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tensile/graph"
)

// layer is what a measured profile says of a module, and a graph of an op: its kind, the bytes of what it makes, and of what
// it trains.
type layer struct {
	kind       graph.Kind
	activation graph.Bytes
	parameters graph.Bytes
}

// modules maps the names of modules in a profile to kinds. Input, Size and View are left out: loading is no op here, nor is
// looking at a shape, and a view makes nothing.
var modules = map[string]graph.Kind{
	"Conv2d": graph.Conv2D, "BatchNorm2d": graph.BatchNorm, "ReLU": graph.ReLU, "MaxPool2d": graph.MaxPool, "AvgPool2d": graph.AvgPool,
	"Linear": graph.Linear, "Concat": graph.Concat, "Add": graph.Add, "Dropout": graph.Dropout,
}

var node = regexp.MustCompile(`(?m)^node(\d+) -- (\w+).* activation_size=([\d.]+), parameter_size=([\d.]+)$`)

// profile reads the layers of a profile in the order in which they ran.
func profile(t *testing.T, name string) []layer {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "shared", "data", "pipedream", name+".graph.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the shared data stands beside the project, and is not there")
	} else if err != nil {
		t.Fatal(err)
	}
	nodes := node.FindAllStringSubmatch(string(text), -1)
	number := func(s string) int {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return int(v)
	}
	slices.SortFunc(nodes, func(a, b []string) int { return cmp.Compare(number(a[1]), number(b[1])) })
	var layers []layer
	for _, n := range nodes {
		if kind, ok := modules[n[2]]; ok {
			layers = append(layers, layer{kind, graph.Bytes(number(n[3])), graph.Bytes(number(n[4]))})
		}
	}
	return layers
}

// layersOf returns the layers of a graph's forward pass.
func layersOf(g *graph.Graph) []layer {
	var layers []layer
	for _, op := range g.Ops {
		if op.Phase != graph.Forward || op.Kind == graph.BatchNormStats || op.Kind == graph.BatchNormUpdate || op.Kind == graph.SoftmaxXent {
			continue // a batch norm is one module there; the loss is not in a profile
		}
		l := layer{kind: op.Kind, activation: g.Tensors[op.Outputs[0]].Bytes()}
		for _, in := range op.Inputs {
			if s := g.Storages[g.Tensors[in].Storage]; s.Role == graph.Parameter {
				l.parameters += s.Bytes
			}
		}
		layers = append(layers, l)
	}
	return layers
}

// TestAgainstProfiles compares the image networks, layer by layer and in order, with the graphs of PipeDream's profiles:
// the bytes of every activation and of every layer's parameters. They agree but for what a row names.
func TestAgainstProfiles(t *testing.T) {
	tests := []struct {
		profile  string
		model    model
		batch    int
		from, to int // layers of the profile that the network lacks
	}{
		{profile: "alexnet", model: torchAlexNet, batch: 256},
		{profile: "squeezenet1_0", model: squeezeNet, batch: 256},
		{profile: "vgg16", model: vgg([5]int{2, 2, 3, 3, 3}), batch: 128},
		{profile: "resnet50", model: resnet([4]int{3, 4, 6, 3}), batch: 128},
		{profile: "resnet101", model: resnet([4]int{3, 4, 23, 3}), batch: 64},
		{profile: "densenet121", model: densenet([4]int{6, 12, 24, 16}), batch: 64},
		// The auxiliary classifier: a pool, two normalised convolutions and a linear layer behind the last of the modules c.
		{profile: "inception_v3", model: inceptionV3, batch: 128, from: 228, to: 236},
	}
	for _, test := range tests {
		t.Run(test.profile, func(t *testing.T) {
			want := profile(t, test.profile)
			want = slices.Delete(want, test.from, test.to)
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
