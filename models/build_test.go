package models

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/graph/autodiff"
	_ "tensile/internal/long" // the flag -long
)

func build(t *testing.T, name string, c Config) *graph.Graph {
	t.Helper()
	g, err := Build(name, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestParameters holds the numbers of trained elements to published ones, or to a closed form of docs/models.md.
func TestParameters(t *testing.T) {
	tests := []struct {
		model string
		c     Config
		want  int64
	}{
		{"mlp", Config{}, 2_913_290},
		{"lenet", Config{}, 61_706}, // LeNet-5 with all of conv2's connections
		{"alexnet", Config{}, 60_965_224},
		{"vgg11", Config{}, 132_863_336},
		{"vgg13", Config{}, 133_047_848},
		{"vgg16", Config{}, 138_357_544},
		{"vgg19", Config{}, 143_667_240},
		{"resnet18", Config{}, 11_689_512},
		{"resnet50", Config{}, 25_557_032},
		{"resnet101", Config{}, 44_549_160},
		{"resnet152", Config{}, 60_192_808},
		{"resnet:3,4,6,3", Config{}, 25_557_032},
		{"resnet:3,4,23,3", Config{}, 44_549_160},
		{"resnet:3,8,36,3", Config{}, 60_192_808},
		{"resnet:834,833,833,833", Config{}, bottlenecks([4]int64{834, 833, 833, 833})},
		{"resnet110-cifar", Config{}, cifarResidual(18)},
		{"vgg11-cifar", Config{}, cifarVGG([]int64{64, 128, 256, 256, 512, 512, 512, 512})},
		{"vgg13-cifar", Config{}, cifarVGG([]int64{64, 64, 128, 128, 256, 256, 512, 512, 512, 512})},
		{"vgg16-cifar", Config{}, cifarVGG([]int64{64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512})},
		{"vgg19-cifar", Config{}, cifarVGG([]int64{64, 64, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512, 512, 512,
			512, 512})},
		{"inceptionv3", Config{}, 23_834_568},
		{"inceptionv4", Config{}, 42_679_816},
		{"densenet121", Config{}, 7_978_856},
		{"nasnet-mobile", Config{}, 5_289_978},
		{"nasnet-large", Config{}, 88_753_150},
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

// TestParametersWithStatistics: a published table counts running statistics too.
func TestParametersWithStatistics(t *testing.T) {
	for name, want := range map[string]int64{"nasnet-mobile": 5_326_716, "nasnet-large": 88_949_818} {
		g := build(t, name, Config{Optimizer: autodiff.SGD{}}) // without state of its own
		got := g.Parameters()
		for _, s := range g.Storages {
			if s.Role == graph.State {
				got += int64(s.Bytes / graph.ElementBytes)
			}
		}
		if got != want {
			t.Errorf("%s has %d parameters and statistics, want %d", name, got, want)
		}
	}
}

// bottlenecks, cifarResidual and cifarVGG are the closed forms of docs/models.md.
func bottlenecks(blocks [4]int64) int64 {
	sum := int64(3*64*49 + 2*64 + 2048*1000 + 1000)
	in := int64(64)
	for i, n := range blocks {
		w := int64(64) << i
		sum += in*4*w + 8*w                                // projected shortcut
		sum += in*w + (n-1)*4*w*w + n*(13*w*w+2*w+2*w+8*w) // 1x1, then 3x3 and 1x1, three normalisations
		in = 4 * w
	}
	return sum
}

func cifarResidual(n int64) int64 {
	sum := int64(3*16*9 + 2*16 + 64*10 + 10)
	in := int64(16)
	for _, w := range []int64{16, 32, 64} {
		sum += 9*in*w + (2*n-1)*9*w*w + 2*n*2*w
		in = w
	}
	return sum
}

func cifarVGG(convs []int64) int64 {
	sum, in := int64(512*512+512+512*10+10), int64(3)
	for _, w := range convs {
		sum += 9*in*w + w + 2*w
		in = w
	}
	return sum
}

// cifarVGGMACs and cifarResidualMACs are the closed forms of docs/models.md.
func cifarVGGMACs(convs [5]int) float64 {
	sum, in := 512*512+512*10, 3
	for stage, count := range convs {
		w, pixels := min(512, 64<<stage), (32>>stage)*(32>>stage)
		for range count {
			sum += 9 * in * w * pixels
			in = w
		}
	}
	return float64(sum)
}

func cifarResidualMACs(n int) float64 {
	sum, in := 64*10+9*3*16*32*32, 16
	for stage, w := range []int{16, 32, 64} {
		pixels := (32 >> stage) * (32 >> stage)
		sum += 9 * pixels * (in*w + (2*n-1)*w*w)
		in = w
	}
	return float64(sum)
}

// TestMACs compares the arithmetic of one image's forward pass with published figures, in 1e9 multiply-adds: those of
// the references that docs/models.md names, or a closed form.
func TestMACs(t *testing.T) {
	for _, test := range []struct {
		model string
		want  float64
	}{
		{"alexnet", 0.72}, {"vgg16", 15.47}, {"vgg19", 19.63}, {"resnet18", 1.81}, {"resnet50", 4.11},
		{"resnet101", 7.83},
		{"resnet152", 11.56}, {"inceptionv3", 5.73}, {"inceptionv4", 12.28}, {"densenet121", 2.87},
		{"nasnet-large", 23.89},
		{"nasnet-mobile", 0.564}, {"vgg16-cifar", cifarVGGMACs([5]int{2, 2, 3, 3, 3}) / 1e9},
		{"resnet110-cifar", cifarResidualMACs(18) / 1e9},
	} {
		got := float64(MACs(build(t, test.model, Config{Batch: 1}))) / 1e9
		t.Logf("%s: %.3f G multiply-adds, %.3f wanted", test.model, got, test.want)
		if math.Abs(got-test.want) > 0.02*test.want {
			t.Errorf("%s: %.3f G multiply-adds, want %.2f within 2 %%", test.model, got, test.want)
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
		{"vgg16", Config{Image: 32, Optimizer: autodiff.Adam{LearningRate: 0.5}}, graph.Shape{16, 3, 32, 32},
			graph.Shape{16, 10}, 0.5},
		{"resnet50", Config{}, graph.Shape{16, 3, 224, 224}, graph.Shape{16, 1000}, 1e-3},
		{"resnet50", Config{Image: 223, Channels: 1}, graph.Shape{16, 1, 223, 223}, graph.Shape{16, 10}, 1e-3},
		{"alexnet", Config{Batch: 1}, graph.Shape{1, 3, 227, 227}, graph.Shape{1, 1000}, 1e-4},
		{"resnet110-cifar", Config{}, graph.Shape{16, 3, 32, 32}, graph.Shape{16, 10}, 1e-3},
		{"inceptionv3", Config{Batch: 1}, graph.Shape{1, 3, 299, 299}, graph.Shape{1, 1000}, 1e-3},
		{"inceptionv4", Config{Image: 224, Batch: 1}, graph.Shape{1, 3, 224, 224}, graph.Shape{1, 1000}, 1e-3},
		{"nasnet-large", Config{Image: 224, Batch: 1}, graph.Shape{1, 3, 224, 224}, graph.Shape{1, 1000}, 1e-3},
		{"nasnet-mobile", Config{Image: 224, Batch: 1}, graph.Shape{1, 3, 224, 224}, graph.Shape{1, 1000}, 1e-3},
		{"inceptionv3", Config{Image: 223, Batch: 1}, graph.Shape{1, 3, 223, 223}, graph.Shape{1, 10}, 1e-3},
		{"nasnet-large", Config{Batch: 1}, graph.Shape{1, 3, 331, 331}, graph.Shape{1, 1000}, 1e-3},
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
	{"alexnet", Config{Image: 67, Batch: 1, Thin: 16}},
	{"vgg11-cifar", Config{Batch: 2, Thin: 8}},
	{"resnet18", Config{Image: 33, Batch: 1, Thin: 8}},
	{"resnet110-cifar", Config{Batch: 1}},
	{"inceptionv3", Config{Image: 75, Batch: 2}},
	{"inceptionv4", Config{Image: 75, Batch: 2, Thin: 2}},
	{"densenet121", Config{Image: 32, Batch: 2}},
	{"nasnet-mobile", Config{Image: 32, Batch: 2}},
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
				t.Errorf("%s: op %s of layer %s belongs to layer %s", test.model, op.Name, op.Layer,
					g.Ops[op.Forward].Layer)
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
