package onnxcases

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tensile/controller/local"
	"tensile/data/weights"
	"tensile/device"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
	"tensile/models"
	"tensile/models/onnx"
)

// lights are whole networks of the ONNX project. Those with a name in models are built there, too.
var lights = []struct {
	name, model string
	image       int // in place of 224 pixels; 0: these
}{
	{"bvlc_alexnet", "", 0}, {"inception_v1", "", 0}, {"shufflenet", "", 0}, {"squeezenet", "", 0},
	{"resnet50", "resnet50", 96}, {"vgg19", "vgg19", 32}, // 4 and 20 GMACs otherwise
}

// apart is how far scores in float32 may be from those in float64, as a share of their norm.
const apart = 2e-6

// With seeded weights as ReLUs like them (He et al., 2015), written to a file and read again, the networks of the ONNX
// project have the scores of a reference in float64; those that are built here, too, have the same bits there.
func TestLightNumerics(t *testing.T) {
	long.Only(t)
	for _, l := range long.Or(lights[:1], lights) {
		t.Run(l.name, func(t *testing.T) {
			m := filled(t, filepath.Join(needs.Data(t, "onnx/light"), "light_"+l.name+".onnx"), l.image)
			g, contents, err := onnx.Job(m, l.name, onnx.Training{Batch: 1})
			if err != nil {
				t.Fatal(err)
			}
			e := evaluation(t, g)
			x, scores := score(t, e, contents)

			in := e.Storages[e.Tensors[inputOf(t, e)].Storage].Name
			image := &array{shape: []int(e.Tensors[inputOf(t, e)].Shape)}
			for _, v := range x {
				image.v = append(image.v, float64(v))
			}
			last := m.Graph.Nodes[len(m.Graph.Nodes)-1]
			if last.Op != "Softmax" {
				t.Fatalf("its last node is %v", &last)
			}
			want, err := reference(m, map[string]*array{in: image}, last.Inputs[0])
			if err != nil {
				t.Fatal(err)
			}
			if len(want.v) != len(scores) {
				t.Fatalf("%d scores, want %d", len(scores), len(want.v))
			}
			difference := make([]float64, len(scores))
			for i, w := range want.v {
				difference[i] = float64(scores[i]) - w
			}
			share := norm(difference) / norm(want.v)
			t.Logf("scores are %.1e of their norm from those in float64", share)
			if !(share <= apart) {
				t.Errorf("scores are %v of their norm from those in float64, want at most %v", share, apart)
			}
			if l.model != "" {
				builtAlike(t, l.model, l.image, e, contents, scores)
			}
		})
	}
}

// filled reads a network whose weights were left out, gives it others, and reads the file that is written of it. Image
// replaces the extent of its images, and what follows from it, if it is not 0.
func filled(t *testing.T, path string, image int) *onnx.Model {
	t.Helper()
	m, err := onnx.Read(nil, path)
	if err != nil {
		t.Fatal(err)
	}
	if image != 0 {
		shrink(t, m, image)
	}
	g, _, err := onnx.Job(m, "light", onnx.Training{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 7))
	left := make(map[string]bool) // of weights that are no initializers
	for _, n := range m.Graph.Nodes {
		left[n.Outputs[0]] = n.Op == "ConstantOfShape"
	}
	for _, s := range g.Storages {
		if !s.Role.Persistent() || strings.HasSuffix(s.Name, ".m") || strings.HasSuffix(s.Name, ".v") {
			continue
		}
		content := make([]float32, s.Bytes/graph.ElementBytes)
		if s.Init.Kind == graph.InitNormal {
			weights.Initialise(s, 1, content)
		} else { // of biases and normalisations, whose scales and variances are about 1
			middle := float32(0)
			if s.Init.Kind == graph.InitOne || scales(m, s.Name) {
				middle = 1
			}
			for i := range content {
				content[i] = middle + (random.Float32()-0.5)/4
			}
		}
		m.Replace(s.Name, content)
		delete(left, s.Name)
	}
	for name, weight := range left {
		if weight {
			t.Errorf("%s is no parameter", name)
		}
	}
	if image != 0 { // the type of an input is written as it was read
		return m
	}
	out := filepath.Join(t.TempDir(), "filled.onnx")
	if err := os.WriteFile(out, m.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err = onnx.Read(nil, out); err != nil {
		t.Fatal(err)
	}
	return m
}

// scales reports whether an initializer is the scale or the variance of a normalisation.
func scales(m *onnx.Model, name string) bool {
	return slices.ContainsFunc(m.Graph.Nodes, func(n onnx.Node) bool {
		return n.Op == "BatchNormalization" && (n.Inputs[1] == name || n.Inputs[4] == name)
	})
}

// shrink has a network that halves its images five times read smaller ones: what takes 7 by 7 pixels in the end, a pool
// or a linear layer, takes fewer.
func shrink(t *testing.T, m *onnx.Model, image int) {
	t.Helper()
	left := int64(image / 32)
	for i := range m.Graph.Inputs {
		if in := &m.Graph.Inputs[i]; len(in.Dims) == 4 {
			in.Dims[2].Extent, in.Dims[3].Extent = int64(image), int64(image)
		}
	}
	changed := 0
	for i := range m.Graph.Nodes {
		for k := range m.Graph.Nodes[i].Attributes {
			if a := &m.Graph.Nodes[i].Attributes[k]; m.Graph.Nodes[i].Op == "AveragePool" && a.Name == "kernel_shape" {
				a.Ints = []int64{left, left}
				changed += 2
			}
		}
	}
	for i := range m.Graph.Initializers {
		w := &m.Graph.Initializers[i]
		shape, err := w.Ints()
		if err != nil || !slices.Contains(shape, 512*7*7) {
			continue
		}
		w.Raw = nil
		for _, d := range shape {
			if d == 512*7*7 {
				d = 512 * left * left
			}
			w.Raw = binary.LittleEndian.AppendUint64(w.Raw, uint64(d))
		}
		changed++
	}
	if changed != 2 { // a pool, or the weights and a Reshape
		t.Fatalf("%d things take 7 by 7 pixels, want a pool or two shapes", changed)
	}
}

func evaluation(t *testing.T, g *graph.Graph) *graph.Graph {
	t.Helper()
	e, err := models.Evaluation(g)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// inputOf is the images that a graph reads.
func inputOf(t *testing.T, g *graph.Graph) graph.TensorID {
	t.Helper()
	for _, x := range g.Tensors {
		if s := g.Storages[x.Storage]; s.Role == graph.Input && s.Holds == graph.Images {
			return x.ID
		}
	}
	t.Fatal("it reads no images")
	return 0
}

// score evaluates a graph on made-up images, which it returns, too.
func score(t *testing.T, g *graph.Graph, contents map[string][]float32) (x, scores []float32) {
	t.Helper()
	err := local.Execute(t.Context(), newCPU(t), local.Execution{Graph: g, Iterations: 1, Init: begin(contents),
		Input: func(_ int, _ graph.StorageID, to device.Memory) {
			for i := range to.Float32() {
				to.Float32()[i] = float32(math.Sin(float64(i*i%1009))) / 2
			}
			x = slices.Clone(to.Float32())
		},
		Output: func(_ int, _ graph.StorageID, from []float32) { scores = slices.Clone(from) }})
	if err != nil {
		t.Fatal(err)
	}
	return x, scores
}

// builtAlike builds a network here, gives it the weights of e in the order in which ops read them, and wants the scores
// that e had.
func builtAlike(t *testing.T, model string, image int, e *graph.Graph, contents map[string][]float32, want []float32) {
	t.Helper()
	g, err := models.Build(model, models.Config{Batch: 1, Classes: len(want), Image: image})
	if err != nil {
		t.Fatal(err)
	}
	built := evaluation(t, g)
	from, to := persistent(e), persistent(built)
	if len(from) != len(to) {
		t.Fatalf("%d weights here, %d in the file", len(to), len(from))
	}
	given := make(map[string][]float32)
	for i, s := range to {
		if f := from[i]; f.Bytes != s.Bytes {
			t.Fatalf("%s takes %v, and %s of the file %v", s.Name, s.Bytes, f.Name, f.Bytes)
		}
		given[s.Name] = contents[from[i].Name]
	}
	if _, scores := score(t, built, given); !slices.Equal(scores, want) {
		t.Errorf("built here it has other scores: %v, want %v", scores[:4], want[:4])
	}
}

// persistent are the weights of a graph in the order in which its ops read them.
func persistent(g *graph.Graph) []graph.Storage {
	var all []graph.Storage
	seen := make(map[graph.StorageID]bool)
	for _, op := range g.Ops {
		for _, in := range op.Inputs {
			if s := g.Storages[g.Tensors[in].Storage]; s.Role.Persistent() && !seen[s.ID] {
				seen[s.ID] = true
				all = append(all, s)
			}
		}
	}
	return all
}
