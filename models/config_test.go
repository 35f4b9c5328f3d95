package models

import (
	"math"
	"strings"
	"testing"

	"tensile/graph/autodiff"
)

func TestConfigErrors(t *testing.T) {
	tests := []struct {
		model string
		c     Config
		want  []string
	}{
		{"vgg16", Config{Image: 31}, []string{"model vgg16: image size 31 is too small at batch 16: the smallest " +
			"that works is 32"}},
		{"lenet", Config{Image: 11}, []string{"model lenet: image size 11 is too small", "smallest that works is 12"}},
		{"resnet50", Config{Image: 32, Batch: 1}, []string{"image size 32 is too small at batch 1",
			"smallest that works is 33"}},
		{"mlp", Config{Image: -1}, []string{"image size -1 is too small", "smallest that works is 1"}},
		{"mlp", Config{Image: 1 << 15}, []string{"image size 32768 must be 1 to 16384"}},
		{"mlp", Config{Batch: -3}, []string{"batch -3 must be 1 to 65536"}},
		{"mlp", Config{Classes: 1}, []string{"classes 1 must be 2 to 1048576"}},
		{"mlp", Config{Channels: -1, Batch: 1 << 20, Classes: -2}, []string{"channels -1", "batch 1048576",
			"classes -2"}},
		{"mlp", Config{Optimizer: autodiff.SGD{LearningRate: math.NaN()}},
			[]string{"model mlp: sgd: learning rate NaN must be at least 0 and finite"}},
		{"vgg16", Config{Image: 1 << 14, Batch: 1 << 16, Channels: 1 << 10}, []string{"too many elements"}},
		{"gpt2", Config{Image: 32}, []string{"model gpt2: it reads sequences, not images: leave --image out"}},
		{"rhn", Config{Channels: 1}, []string{"leave --channels out"}},
		{"bert", Config{Classes: 10}, []string{"leave --classes out"}},
		{"vgg16", Config{Sequence: 8}, []string{"model vgg16: it reads images, not sequences: leave --sequence out"}},
		{"mlp", Config{Vocabulary: 8}, []string{"leave --vocabulary out"}},
		{"gpt2", Config{Sequence: 1025}, []string{"model gpt2: sequence 1025 must be 2 to 1024"}},
		{"bert", Config{Sequence: 513, Vocabulary: 1, Batch: -1}, []string{"sequence 513 must be 2 to 512",
			"vocabulary 1 must be 2 to", "batch -1"}},
		{"gnmt", Config{Sequence: 1}, []string{"sequence 1 must be 2 to 8192"}},
		{"tacotron2", Config{Sequence: 8192}, []string{"sequence 8192 must be 2 to 1638"}},
	}
	for _, test := range tests {
		_, err := Build(test.model, test.c)
		if err == nil {
			t.Errorf("%s %+v: no error", test.model, test.c)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s %+v: error %q, want it to contain %q", test.model, test.c, err, want)
			}
		}
	}
}

// TestSmallestImage checks that the size which the error promises works, and that the one below really does not.
func TestSmallestImage(t *testing.T) {
	for _, name := range append(Names(), "resnet:1,1,1,1") {
		m, err := find(name)
		if err != nil {
			t.Fatal(err)
		}
		if m.sequence != nil {
			continue
		}
		for _, batch := range []int{1, 2} {
			minimum := m.smallest(batch)
			g := build(t, name, Config{Image: minimum, Batch: batch})
			for _, op := range g.Ops {
				if x := g.Tensors[op.Inputs[0]].Shape; op.Kind == "batch_norm" && x.Elements() == x[1] {
					t.Errorf("%s at batch %d, %d pixels: op %s normalises one value", name, batch, minimum, op.Name)
				}
			}
			if minimum > 1 {
				m := m
				m.smallest = func(int) int { return 1 }
				if works(m, Config{Image: minimum - 1, Batch: batch}) {
					t.Errorf("%s at batch %d works at %d pixels, which it refuses", name, batch, minimum-1)
				}
			}
		}
	}
}

// works reports whether the network can be built and normalises more than one value everywhere.
func works(m model, c Config) (ok bool) {
	defer func() { // after a failed op, layers look at shapes that are not there
		if recover() != nil {
			ok = false
		}
	}()
	g, err := m.build("test", c)
	if err != nil {
		return false
	}
	for _, op := range g.Ops {
		if x := g.Tensors[op.Inputs[0]].Shape; op.Kind == "batch_norm" && x.Elements() == x[1] {
			return false
		}
	}
	return true
}
