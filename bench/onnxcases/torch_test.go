package onnxcases

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tensile/controller/local"
	"tensile/data/weights"
	"tensile/device"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models"
	"tensile/models/onnx"
)

// told is what PyTorch computed of a network (scripts/onnx-cases.py).
type told struct {
	Batch         int
	Input, Labels [][]float32
	Losses        []float64
	Gradients     map[string][]float64
	Weights       map[string][]float64
	Evaluation    []float64
	Rate          float64
}

// Networks that PyTorch exported in training mode have its loss and its gradients within 1e-4, its weights after two
// steps within 1e-5, and its outputs in evaluation. Exported again with these weights and read, they have equal
// outputs.
func TestTorch(t *testing.T) {
	for _, name := range []string{"cnn", "encoder", "encoder17", "lstm", "unet", "gates", "functions", "pieces",
		"masked", "fresh", "tied", "norms", "norms_folded"} {
		t.Run(name, func(t *testing.T) {
			testTorch(t, filepath.Join("..", "..", "models", "onnx", "testdata", name))
		})
	}
}

func testTorch(t *testing.T, path string) {
	var want told
	text, err := os.ReadFile(path + ".json")
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Read(nil, path+".onnx")
	if err != nil {
		t.Fatal(err)
	}
	g, contents, err := onnx.Job(m, "torch", onnx.Training{Batch: want.Batch,
		Optimizer: autodiff.SGD{LearningRate: want.Rate}})
	if err != nil {
		t.Fatal(err)
	}
	gradients := make(map[graph.StorageID]string)
	for _, op := range g.Ops {
		if op.Kind == graph.SGD {
			s := g.Tensors[op.Inputs[1]].Storage
			g.Storages[s].Role = graph.Output
			gradients[s] = g.Tensors[op.Inputs[0]].Name
		}
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	loss := lossOf(g)
	var losses []float64
	execute(t, g, contents, &want, 2, func(iteration int, s graph.StorageID, from []float32) {
		if s == loss {
			losses = append(losses, float64(from[0]))
		} else if name := gradients[s]; iteration == 0 {
			near(t, "gradient of "+name, from, want.Gradients[name], 1e-4)
			delete(want.Gradients, name)
		}
	})
	for name, v := range want.Gradients {
		if norm(v) > 1e-6 {
			t.Errorf("%s has no gradient", name)
		}
	}
	for i, l := range losses {
		if math.Abs(l-want.Losses[i]) > 1e-4*math.Abs(want.Losses[i]) {
			t.Errorf("loss %d is %v, want %v", i, l, want.Losses[i])
		}
	}
	learned := weightsAfter(t, g, contents, &want)
	for name, v := range want.Weights {
		if got, ok := learned[name]; ok {
			near(t, name, got, v, 1e-5)
		} else if kept := initializer(t, m, name); kept != nil { // of the module, and no parameter
			near(t, name, kept, v, 0)
		} else {
			t.Errorf("there is no %s", name)
		}
	}
	got := evaluated(t, g, learned, &want)
	near(t, "evaluation", got, want.Evaluation, 1e-4)

	// the same from a file that was exported
	for name, v := range learned {
		m.Replace(name, v)
	}
	out := filepath.Join(t.TempDir(), "out.onnx")
	if err := os.WriteFile(out, m.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := onnx.Read(nil, out)
	if err != nil {
		t.Fatal(err)
	}
	g2, contents2, err := onnx.Job(again, "torch", onnx.Training{Batch: want.Batch})
	if err != nil {
		t.Fatal(err)
	}
	if got2 := evaluated(t, g2, contents2, &want); !slices.Equal(got, got2) {
		t.Errorf("exported and read again it has outputs %v, want %v", got2, got)
	}
}

// initializer are the numbers that a model has under a name; nil: it has none.
func initializer(t *testing.T, m *onnx.Model, name string) []float32 {
	t.Helper()
	for i := range m.Graph.Initializers {
		if x := &m.Graph.Initializers[i]; x.Name == name {
			content, err := x.Floats()
			if err != nil {
				t.Fatal(err)
			}
			return content
		}
	}
	return nil
}

func lossOf(g *graph.Graph) graph.StorageID {
	for _, op := range g.Ops {
		if op.Kind == graph.SoftmaxXent {
			return g.Tensors[op.Outputs[0]].Storage
		}
	}
	return -1
}

// execute trains a graph on torch's inputs.
func execute(t *testing.T, g *graph.Graph, contents map[string][]float32, want *told, steps int,
	output func(iteration int, s graph.StorageID, from []float32)) {
	t.Helper()
	err := local.Execute(t.Context(), newCPU(t), local.Execution{Graph: g, Iterations: steps,
		Init:   begin(contents),
		Input:  feed(g, want),
		Output: output})
	if err != nil {
		t.Fatal(err)
	}
}

// feed fills inputs with torch's.
func feed(g *graph.Graph, want *told) func(iteration int, s graph.StorageID, to device.Memory) {
	types := g.DTypes()
	return func(iteration int, s graph.StorageID, to device.Memory) {
		from := want.Input[iteration]
		if g.Storages[s].Name == "labels" {
			from = want.Labels[iteration]
		}
		if types[s] != graph.Int64 {
			copy(to.Float32(), from)
			return
		}
		for i, v := range from {
			to.Int64()[i] = int64(v)
		}
	}
}

func begin(contents map[string][]float32) func(s graph.Storage, to []float32) {
	return func(s graph.Storage, to []float32) {
		if content, ok := contents[s.Name]; ok {
			copy(to, content)
			return
		}
		weights.Initialise(s, 1, to)
	}
}

// weightsAfter are the persistent storages after two steps.
func weightsAfter(t *testing.T, g *graph.Graph, contents map[string][]float32, want *told) map[string][]float32 {
	t.Helper()
	learned := make(map[string][]float32)
	err := local.Execute(t.Context(), newCPU(t), local.Execution{Graph: g, Iterations: len(want.Input),
		Init: begin(contents), Input: feed(g, want), Output: func(int, graph.StorageID, []float32) {},
		Ended: func(s graph.Storage, content []float32) { learned[s.Name] = slices.Clone(content) }})
	if err != nil {
		t.Fatal(err)
	}
	return learned
}

// evaluated are the outputs of a network for the first input.
func evaluated(t *testing.T, g *graph.Graph, contents map[string][]float32, want *told) (out []float32) {
	t.Helper()
	e, err := models.Evaluation(g)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, e, contents, want, 1, func(_ int, _ graph.StorageID, from []float32) { out = slices.Clone(from) })
	return out
}

// near compares all elements at once: the norm of the difference with that of what is wanted.
func near(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s has %d elements, want %d", what, len(got), len(want))
		return
	}
	difference := make([]float64, len(want))
	for i, v := range want {
		difference[i] = float64(got[i]) - v
	}
	if d, n := norm(difference), norm(want); !(d <= tolerance*n || d <= 1e-7) {
		few := min(4, len(got))
		t.Errorf("%s differs by %.3g of %.3g: %v, want %v", what, d, n, got[:few], want[:few])
	}
}

func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}
