package torchtest

import (
	"math"
	"os/exec"
	"path/filepath"
	"testing"

	"tensile/graph"
	"tensile/internal/needs"
	"tensile/models"
	"tensile/task"
	"tensile/weights"
)

// TestStateDicts begins networks with state_dicts that have the names of torchvision and transformers, and compares
// what they make of some inputs with what torch makes: scores of an evaluation, or the loss.
func TestStateDicts(t *testing.T) {
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
			if c.Image > 0 {
				if k.Graph, err = models.Evaluation(g); err != nil {
					t.Fatal(err)
				}
			}
			file, err := weights.Load(filepath.Join(dir, name+".io.pt"))
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
