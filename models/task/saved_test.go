package task

import (
	"path/filepath"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/models/onnx"
)

// What a task has saved is read again, in each of the forms, with all that its graph keeps.
func TestSaved(t *testing.T) {
	source := filepath.Join("..", "onnx", "testdata", "cnn.onnx")
	m, err := onnx.Read(nil, source)
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := onnx.Job(m, "cnn", onnx.Training{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	task := Task{Graph: g, Source: source}
	contents := make(map[graph.StorageID][]float32)
	for _, s := range g.Storages {
		if s.Role.Persistent() {
			data := make([]float32, s.Bytes/graph.ElementBytes)
			for i := range data {
				data[i] = float32(s.ID) + float32(i)/8
			}
			contents[s.ID] = data
		}
	}
	for _, name := range []string{"w.safetensors", "w.onnx"} {
		path := filepath.Join(t.TempDir(), name)
		if err := task.Save(path, source, task.File(3, contents)); err != nil {
			t.Fatal(err)
		}
		saved, err := task.Saved(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range g.Storages {
			if s.Role == graph.Parameter && !slices.Equal(saved[s.Name], contents[s.ID]) {
				t.Errorf("%s: %s is %v, want %v", name, s.Name, saved[s.Name], contents[s.ID])
			}
		}
	}
}
