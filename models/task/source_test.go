package task

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tensile/data/weights"
	"tensile/graph"
	"tensile/models/onnx"
)

// shifted adds a constant to the scores of a model.
func shifted(m *onnx.Model) *onnx.Model {
	g := &m.Graph
	y := g.Outputs[0].Name
	for i := range g.Nodes {
		if k := slices.Index(g.Nodes[i].Outputs, y); k >= 0 {
			g.Nodes[i].Outputs[k] = "scores"
		}
	}
	classes := g.Initializers[slices.IndexFunc(g.Initializers, func(x onnx.Tensor) bool {
		return slices.Contains(g.Nodes[len(g.Nodes)-1].Inputs[2:], x.Name)
	})].Dims
	shift := &onnx.Tensor{Type: onnx.Float32, Dims: classes}
	for i := range classes[0] {
		shift.Raw = binary.LittleEndian.AppendUint32(shift.Raw, math.Float32bits(float32(i)))
	}
	g.Nodes = append(g.Nodes,
		onnx.Node{Op: "Constant", Outputs: []string{"shift"}, Attributes: []onnx.Attribute{
			{Name: "value", Type: onnx.AttributeTensor, Tensor: shift}}},
		onnx.Node{Op: "Add", Inputs: []string{"scores", "shift"}, Outputs: []string{y}})
	return m
}

// A task of an ONNX file begins with other weights and the file's constants, which no file of weights has. What is
// trained may not be missing among the weights.
func TestBeginSource(t *testing.T) {
	m, err := onnx.Read(nil, filepath.Join("..", "onnx", "testdata", "cnn.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "shifted.onnx")
	if err := weights.Replace(nil, source, shifted(m).Encode()); err != nil {
		t.Fatal(err)
	}
	g, contents, err := onnx.Job(m, "shifted", onnx.Training{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	initializer := func(s graph.Storage) bool {
		return slices.ContainsFunc(m.Graph.Initializers, func(x onnx.Tensor) bool { return x.Name == s.Name })
	}
	var file weights.File
	constants := 0
	for _, s := range g.Storages {
		switch {
		case s.Init == nil || s.Init.Kind != graph.InitFile:
		case initializer(s):
			data := make([]float32, len(contents[s.Name]))
			for i := range data {
				data[i] = float32(i) + 0.5
			}
			file.Tensors = append(file.Tensors, tensorOf(s.Name, data, shapesOf(g)[s.ID]))
		default:
			constants++
		}
	}
	if constants == 0 {
		t.Fatal("the model has no constants: the test shows nothing")
	}
	begun := func(f weights.File, source string) (Task, error) {
		path := filepath.Join(t.TempDir(), "w.safetensors")
		if err := weights.Write(nil, path, f); err != nil {
			t.Fatal(err)
		}
		task := Task{Graph: g, Source: source}
		return task, task.Begin(path)
	}
	task, err := begun(file, source)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range g.Storages {
		if s.Init == nil || s.Init.Kind != graph.InitFile {
			continue
		}
		want := contents[s.Name]
		if i := slices.IndexFunc(file.Tensors, func(x weights.Tensor) bool { return x.Name == s.Name }); i >= 0 {
			want = file.Tensors[i].Data
		}
		got := make([]float32, len(want))
		task.Init(s, got)
		if !slices.Equal(got, want) {
			t.Errorf("%s begins with %v, want %v", s.Name, got[0], want[0])
		}
	}
	if _, err := begun(file, ""); err == nil {
		t.Error("without its ONNX file the graph has its constants from nowhere")
	}
	missing := file.Tensors[0].Name
	file.Tensors = file.Tensors[1:]
	if _, err := begun(file, source); err == nil || !strings.Contains(err.Error(), "there is no tensor "+missing) {
		t.Errorf("weights without %s: %v", missing, err)
	}
}
