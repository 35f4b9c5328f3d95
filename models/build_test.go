package models

import (
	"bytes"
	"encoding/json"
	"testing"

	"tensile/autodiff"
	"tensile/graph"

	"github.com/google/go-cmp/cmp"
)

func build(t *testing.T, name string, c Config) *graph.Graph {
	t.Helper()
	g, err := Build(name, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestParameters(t *testing.T) {
	tests := []struct {
		model string
		c     Config
		want  int64
	}{
		{"mlp", Config{}, 2_913_290},
		{"lenet", Config{}, 61_706}, // LeNet-5 with all of conv2's connections
		{"vgg16", Config{}, 138_357_544},
		{"resnet50", Config{}, 25_557_032},
		{"resnet:3,4,6,3", Config{}, 25_557_032},
		{"resnet:3,4,23,3", Config{}, 44_549_160},
		{"resnet:3,8,36,3", Config{}, 60_192_808},
		// 32 pixels leave a feature map of one pixel: fc6 takes 512 of the 25088 inputs, fc8 makes 10 classes.
		{"vgg16", Config{Image: 32}, 138_357_544 - (25088-512)*4096 - 990*4097},
		// Parameters of convolutions and normalisations do not depend on the image.
		{"resnet50", Config{Image: 32}, 25_557_032 - 990*2049},
		{"mlp", Config{Image: 32, Channels: 3}, 2_913_290 + (3*32*32-28*28)*1024},
	}
	for _, test := range tests {
		if got := build(t, test.model, test.c).Parameters(); got != test.want {
			t.Errorf("%s %+v has %d parameters, want %d", test.model, test.c, got, test.want)
		}
	}
}

// TestMACs compares the arithmetic of one image's forward pass with published figures of the networks, in 1e9
// multiply-adds: VGG-16 15.47, ResNet-50 4.11, ResNet-152 11.56.
func TestMACs(t *testing.T) {
	for name, want := range map[string]float64{"vgg16": 15.47, "resnet50": 4.11, "resnet:3,8,36,3": 11.56} {
		g := build(t, name, Config{Batch: 1})
		var flops int64
		for _, op := range g.Ops {
			if op.Kind == graph.Conv2D || op.Phase == graph.Forward && op.Kind == graph.Linear {
				flops += g.Cost(op.ID).FLOPs
			}
		}
		if got := float64(flops) / 2e9; got < 0.99*want || got > 1.01*want {
			t.Errorf("%s: %.3f G multiply-adds, want %.2f within 1 %%", name, got, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	tests := []struct {
		model  string
		c      Config
		input  graph.Shape
		logits graph.Shape
		rate   float64
	}{
		{"mlp", Config{}, graph.Shape{16, 1, 28, 28}, graph.Shape{16, 10}, 1e-3},
		{"lenet", Config{Image: 224}, graph.Shape{16, 1, 224, 224}, graph.Shape{16, 10}, 1e-3},
		{"vgg16", Config{}, graph.Shape{16, 3, 224, 224}, graph.Shape{16, 1000}, 1e-4},
		{"vgg16", Config{Image: 64, Batch: 2}, graph.Shape{2, 3, 64, 64}, graph.Shape{2, 10}, 1e-4},
		{"vgg16", Config{Image: 32, Optimizer: autodiff.SGD{}}, graph.Shape{16, 3, 32, 32}, graph.Shape{16, 10}, 1e-3},
		{"vgg16", Config{Image: 32, Optimizer: autodiff.Adam{LearningRate: 0.5}}, graph.Shape{16, 3, 32, 32}, graph.Shape{16, 10}, 0.5},
		{"resnet50", Config{}, graph.Shape{16, 3, 224, 224}, graph.Shape{16, 1000}, 1e-3},
		{"resnet50", Config{Image: 223, Channels: 1}, graph.Shape{16, 1, 223, 223}, graph.Shape{16, 10}, 1e-3},
		{"resnet50", Config{Image: 256, Classes: 7}, graph.Shape{16, 3, 256, 256}, graph.Shape{16, 7}, 1e-3},
	}
	for _, test := range tests {
		g := build(t, test.model, test.c)
		loss := opNamed(t, g, "loss")
		if got := g.Tensors[0].Shape; !cmp.Equal(got, test.input) {
			t.Errorf("%s %+v: input %v, want %v", test.model, test.c, got, test.input)
		}
		if got := g.Tensors[loss.Inputs[0]].Shape; !cmp.Equal(got, test.logits) {
			t.Errorf("%s %+v: logits %v, want %v", test.model, test.c, got, test.logits)
		}
		if got := g.Ops[len(g.Ops)-1].Attrs.LearningRate; !closeTo(got, test.rate) {
			t.Errorf("%s %+v: learning rate %v, want %v", test.model, test.c, got, test.rate)
		}
	}
}

func closeTo(got, want float64) bool { return got > want*(1-1e-12) && got < want*(1+1e-12) }

func opNamed(t *testing.T, g *graph.Graph, name string) graph.Op {
	t.Helper()
	for _, op := range g.Ops {
		if op.Name == name {
			return op
		}
	}
	t.Fatalf("%s has no op %s", g.Name, name)
	return graph.Op{}
}

// small lists every network at a size that keeps tests quick.
var small = []struct {
	model string
	c     Config
}{
	{"mlp", Config{Image: 4, Batch: 2}},
	{"lenet", Config{Image: 12, Batch: 2}},
	{"vgg16", Config{Image: 32, Batch: 2}},
	{"resnet50", Config{Image: 32, Batch: 2}},
	{"resnet:1,2,1,1", Config{Image: 33, Batch: 1, Optimizer: autodiff.Momentum{}}},
	{"bert:2,8,2", Config{Sequence: 4, Vocabulary: 9, Batch: 2}},
	{"gpt:2,8,2", Config{Sequence: 4, Vocabulary: 9, Batch: 2}},
	{"gnmt:3,4", Config{Sequence: 3, Vocabulary: 9, Batch: 2}},
	{"rhn:2,4", Config{Sequence: 3, Vocabulary: 9, Batch: 2}},
	{"tacotron:1,16", Config{Sequence: 2, Vocabulary: 9, Batch: 2}},
}

// TestInvariants checks what every network promises to its users.
func TestInvariants(t *testing.T) {
	for _, test := range small {
		g := build(t, test.model, test.c)
		phase, updated, outputs := graph.Forward, 0, []string(nil)
		order := map[graph.Phase]int{graph.Forward: 0, graph.Backward: 1, graph.Optimize: 2}
		names := map[string]bool{}
		for _, op := range g.Ops {
			if names[op.Name] {
				t.Errorf("%s: two ops are named %s", test.model, op.Name)
			}
			names[op.Name] = true
			if op.Layer == "" {
				t.Errorf("%s: op %s has no layer", test.model, op.Name)
			}
			if order[op.Phase] < order[phase] {
				t.Errorf("%s: %s op %s after a %s op", test.model, op.Phase, op.Name, phase)
			}
			phase = op.Phase
			switch {
			case op.Phase == graph.Optimize:
				updated++
			case op.Phase == graph.Backward && op.Forward == graph.NoOp:
				t.Errorf("%s: backward op %s has no forward op", test.model, op.Name)
			case op.Phase == graph.Backward && g.Ops[op.Forward].Layer != op.Layer:
				t.Errorf("%s: op %s of layer %s belongs to layer %s", test.model, op.Name, op.Layer, g.Ops[op.Forward].Layer)
			}
		}
		parameters := 0
		read := map[graph.StorageID]bool{}
		for _, op := range g.Ops {
			for _, v := range g.Reads(op.ID) {
				read[v.Storage] = true
			}
		}
		for _, op := range g.Ops {
			var used bool
			for _, v := range g.Writes(op.ID) {
				role := g.Storages[v.Storage].Role
				used = used || read[v.Storage] || role == graph.Output || role.Persistent()
			}
			if !used {
				t.Errorf("%s: nothing reads what %s makes", test.model, op.Name)
			}
		}
		for _, s := range g.Storages {
			switch {
			case s.Role == graph.Parameter:
				parameters++
			case s.Role == graph.Output:
				outputs = append(outputs, s.Name)
			case s.Role.FromHost() && !read[s.ID]:
				t.Errorf("%s: nothing reads %s", test.model, s.Name)
			}
		}
		if parameters != updated || parameters == 0 {
			t.Errorf("%s: %d updates for %d parameters", test.model, updated, parameters)
		}
		if len(outputs) != 1 || outputs[0] != "loss.0" && outputs[0] != "loss" {
			t.Errorf("%s: outputs %v, want a loss", test.model, outputs)
		}
	}
}

func TestJSONKeepsDigest(t *testing.T) {
	for _, test := range small {
		g := build(t, test.model, test.c)
		text, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		again, err := graph.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", test.model, err)
		}
		if g.Digest() != again.Digest() {
			t.Errorf("%s: digest changed from %s to %s", test.model, g.Digest(), again.Digest())
		}
		if repeat := build(t, test.model, test.c); repeat.Digest() != g.Digest() {
			t.Errorf("%s: building twice gives two graphs", test.model)
		}
	}
}

func TestResNet50ByItsBlocks(t *testing.T) {
	a, b := build(t, "resnet50", Config{}), build(t, "resnet:3,4,6,3", Config{})
	b.Name = a.Name
	if a.Digest() != b.Digest() {
		t.Error("resnet:3,4,6,3 differs from resnet50")
	}
}
