package onnx

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/models"
)

// lightSizes are the parameters of the whole networks as published.
var lightSizes = map[string]int64{"light_bvlc_alexnet": 60_965_224, "light_inception_v1": 6_998_552,
	"light_resnet50": 25_557_032, "light_squeezenet": 1_235_496, "light_vgg19": 143_667_240}

// Six whole networks are trained as they are: their shapes are inferred, all of their weights are parameters.
func TestImportLight(t *testing.T) {
	for _, path := range lightFiles(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".onnx")
		t.Run(name, func(t *testing.T) {
			m, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			net, err := Import(m, name, Options{Batch: 1})
			if err != nil {
				t.Fatal(err)
			}
			if s := net.Outputs[0].Shape; s.Elements() != 1000 {
				t.Errorf("its output has shape %v, want 1000 scores", s)
			}
			g, _, err := Job(m, name, Training{Batch: 2})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d ops, %d parameters, %d MACs", len(g.Ops), g.Parameters(), models.MACs(g)/2)
			if want, ok := lightSizes[name]; ok && g.Parameters() != want {
				t.Errorf("it has %d parameters, want %d", g.Parameters(), want)
			}
		})
	}
}

// The training graph of a file is that of the same network built here.
func TestImportPerceptron(t *testing.T) {
	g, contents, err := Job(perceptron(), "perceptron", Training{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range g.Storages {
		if s.Role == graph.Parameter {
			names = append(names, s.Name)
		}
	}
	if got := strings.Join(names, " "); got != "fc1.weight fc1.bias fc2.weight fc2.bias" {
		t.Errorf("parameters %s", got)
	}
	if len(contents["fc2.weight"]) != 15 {
		t.Errorf("contents %v", contents["fc2.weight"])
	}
}

// All operators that are not supported are named at once.
func TestUnsupported(t *testing.T) {
	m := perceptron()
	m.Graph.Nodes[0].Op, m.Graph.Nodes[1].Op, m.Graph.Nodes[2].Op = "TopK", "FFT", "TopK"
	_, err := Import(m, "x", Options{})
	want := `FFT in 1 nodes: node "Relu_r" (FFT); TopK in 2 nodes: node "Gemm_h" (TopK), node "Gemm_y" (TopK)`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A weight that was left out of the file is trained under its own name and in its own shape, also where the model
// reshapes or transposes it, so that it can be put into the file.
func TestLeftOutWeights(t *testing.T) {
	for op, attributes := range map[string][]any{"Transpose": {"perm", []int64{1, 0}}, "Reshape": nil,
		"Identity": nil} {
		m := perceptron()
		g := &m.Graph
		dims := []int64{5, 6}
		in := list("w")
		switch op {
		case "Transpose":
			dims = []int64{6, 5}
		case "Reshape":
			dims = []int64{2, 15}
			in = list("w", "to")
			g.Initializers = append(g.Initializers, whole("to", 5, 6))
		}
		g.Initializers[0] = whole("dims", dims...)
		g.Nodes[0].Inputs[1] = "w2"
		g.Nodes = append([]Node{node("ConstantOfShape", list("dims"), list("w")), node(op, in, list("w2"),
			attributes...)}, g.Nodes...)
		if err := m.check(); err != nil {
			t.Fatal(err)
		}
		job, _, err := Job(m, "x", Training{Batch: 2})
		if err != nil {
			t.Errorf("%s: %v", op, err)
			continue
		}
		var first *graph.Init
		for _, s := range job.Storages {
			if s.Role == graph.Parameter && s.Name == "w" {
				first = s.Init
			}
		}
		if first == nil || first.Kind != graph.InitNormal || first.Scale != math.Sqrt(2.0/6) {
			t.Errorf("%s: w begins as %+v, want a parameter that begins as ReLUs like it", op, first)
		}
		m.Replace("w", sequence(30))
		again, contents, err := Job(m, "x", Training{Batch: 2})
		if err != nil || !slices.Equal(contents["w"], sequence(30)) || len(again.Ops) != len(job.Ops) {
			t.Errorf("%s: written into the file it is %v, %v", op, contents["w"], err)
		}
	}
}
