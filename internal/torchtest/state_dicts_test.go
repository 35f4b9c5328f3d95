package torchtest

import (
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"tensile/data/weights"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
	"tensile/models"
	"tensile/models/task"
)

// TestStateDicts begins networks with state_dicts that have the names of torchvision and transformers, and compares
// what they make of some inputs with what torch makes: scores of an evaluation, or the loss.
func TestStateDicts(t *testing.T) {
	long.Only(t)
	python := needs.Torch(t)
	script, err := filepath.Abs(filepath.Join("testdata", "state_dicts.py"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command(python, "-B", script, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	images := models.Config{Batch: 2, Image: 40, Classes: 7}
	texts := models.Config{Batch: 3, Sequence: 6, Vocabulary: 50}
	for name, c := range map[string]models.Config{"resnet18": images, "resnet:1,2,1,1": images, "gpt:2,16,2": texts,
		"bert:2,16,2": texts} {
		t.Run(name, func(t *testing.T) {
			g, err := models.Build(name, c)
			if err != nil {
				t.Fatal(err)
			}
			k := task.Task{Graph: g, Seed: 1}
			if err := k.Begin(filepath.Join(dir, name+".pt")); err != nil {
				t.Fatal(err)
			}
			for _, s := range g.Storages {
				if _, found := k.First[s.Name]; s.Role == graph.Parameter && !found {
					t.Errorf("%s does not come from the file", s.Name)
				}
			}
			checkSaved(t, k, filepath.Join(dir, name+".pt"), filepath.Join(dir, name+".safetensors"))
			if c.Image > 0 {
				if k.Graph, err = models.Evaluation(g); err != nil {
					t.Fatal(err)
				}
			}
			file, err := weights.Load(nil, filepath.Join(dir, name+".io.pt"))
			if err != nil {
				t.Fatal(err)
			}
			io := make(map[string][]float32)
			for _, x := range file.Tensors {
				io[x.Name] = x.Data
			}
			if len(io["out"]) == 0 {
				t.Fatal("torch has made nothing")
			}
			got := forward(t, k, io)[:len(io["out"])]
			for i, want := range io["out"] {
				if math.Abs(float64(got[i]-want)) > 1e-4*max(1, math.Abs(float64(want))) {
					t.Errorf("output %d is %v, torch has %v", i, got[i], want)
				}
			}
		})
	}
}

// checkSaved saves what a task begins with, and wants every tensor of the state_dict that it came from in the file, to
// the bit, and beside those nothing but the optimizer's.
func checkSaved(t *testing.T, k task.Task, from, to string) {
	t.Helper()
	contents := make(map[graph.StorageID][]float32)
	for _, s := range k.Graph.Storages {
		if s.Role.Persistent() {
			contents[s.ID] = make([]float32, s.Bytes/graph.ElementBytes)
			k.Init(s, contents[s.ID])
		}
	}
	if err := k.Save(to, "", k.File(3, contents)); err != nil {
		t.Fatal(err)
	}
	want, err := weights.Load(nil, from)
	if err != nil {
		t.Fatal(err)
	}
	got, err := weights.Read(to)
	if err != nil {
		t.Fatal(err)
	}
	saved := make(map[string]weights.Tensor)
	for _, x := range got.Tensors {
		saved[x.Name] = x
	}
	for _, x := range want.Tensors {
		if x.Name == "transformer.h.0.attn.masked_bias" || x.Name == "transformer.h.1.attn.masked_bias" {
			continue // of the state_dict of an older transformers, which is no parameter
		}
		if y := saved[x.Name]; !slices.Equal(x.Shape, y.Shape) || !slices.Equal(x.Data, y.Data) {
			t.Errorf("%s is saved with a difference", x.Name)
		}
		delete(saved, x.Name)
	}
	for name := range saved {
		if i := slices.IndexFunc(k.Graph.Storages, func(s graph.Storage) bool { return s.Name == name }); i < 0 ||
			k.Graph.Storages[i].Role == graph.Parameter {
			t.Errorf("%s is saved, which the state_dict does not have", name)
		}
	}
	again := task.Task{Graph: k.Graph}
	if err := again.Begin(to); err != nil {
		t.Fatal(err)
	}
	for name, content := range k.First {
		if !slices.Equal(content, again.First[name]) {
			t.Errorf("%s begins with something else", name)
		}
	}
}

// forward carries out the forward ops of a task, without dropout, and returns its output.
func forward(t *testing.T, k task.Task, inputs map[string][]float32) []float32 {
	m := begin[float32](t, k, 0, &notes{index: make(map[string][]int)}, "")
	for _, s := range k.Graph.Storages {
		if s.Role != graph.Input || inputs[s.Name] == nil {
			continue
		}
		for i, v := range inputs[s.Name] {
			if m.types[s.ID] == graph.Int64 {
				m.contents[s.ID].Int64()[i] = int64(v)
			} else {
				m.content(s.ID)[i] = v
			}
		}
	}
	for _, op := range k.Graph.Ops {
		if op.Kind == graph.Dropout {
			op.Attrs.Rate = 0
		}
		if op.Phase == graph.Forward {
			m.step(&op, 0)
		}
	}
	return m.content(k.Graph.OutputStorage())
}
