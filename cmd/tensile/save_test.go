package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/data/weights"
	"tensile/graph"
	"tensile/models"
)

// TestSave trains two copies and reads what was saved of each.
func TestSave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"run", "lenet:2", "--batch", "4", "--iterations", "3", "--save", "w.safetensors"}
	tensile(t, dir, append(args, "--budget", "80%")...)
	names := []string{"w-lenet.1.safetensors", "w-lenet.2.safetensors"}
	if diff := cmp.Diff(names, files(t, dir)); diff != "" {
		t.Fatalf("files (-want +got):\n%s", diff)
	}

	g, err := models.Build("lenet", models.Config{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]graph.Shape)
	for _, x := range g.Tensors {
		if g.Storages[x.Storage].Role.Persistent() && x.Version == 0 {
			want[x.Name] = x.Shape
		}
	}
	var contents [][]byte
	for i, name := range names {
		file, err := weights.Read(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]graph.Shape)
		moved := false
		for _, x := range file.Tensors {
			got[x.Name] = x.Shape
			first := make([]float32, len(x.Data))
			s := storage(t, g, x.Name)
			weights.Initialise(s, uint64(1+i), first) // the copies' seeds are 1 and 2
			moved = moved || s.Role == graph.Parameter && !cmp.Equal(first, x.Data)
			for _, v := range x.Data {
				if math.IsNaN(float64(v)) {
					t.Fatalf("%s: %s has a NaN", name, x.Name)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: tensors (-want +got):\n%s", name, diff)
		}
		if !moved {
			t.Errorf("%s holds the initial parameters", name)
		}
		metadata := map[string]string{"model": "lenet", "iterations": "3", "step": "3", "seed": strconv.Itoa(1 + i),
			"optimizer": "adam"}
		if diff := cmp.Diff(metadata, file.Metadata); diff != "" {
			t.Errorf("%s: metadata (-want +got):\n%s", name, diff)
		}
		contents = append(contents, read(t, filepath.Join(dir, name)))
	}
	if bytes.Equal(contents[0], contents[1]) {
		t.Error("two copies with two seeds have the same weights")
	}

	// A second run replaces the files. Without a budget it comes to the same bytes.
	tensile(t, dir, append(args, "--policy", "none-live")...)
	if diff := cmp.Diff(names, files(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for i, name := range names {
		if !bytes.Equal(contents[i], read(t, filepath.Join(dir, name))) {
			t.Errorf("%s differs between a run within a budget and one without", name)
		}
	}
}

// One job takes the name as it is given, in another folder too.
func TestSaveOne(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	tensile(t, dir, "run", "lenet", "--batch", "2", "--iterations", "1", "--save", filepath.Join(other, "w"))
	if diff := cmp.Diff([]string{"w"}, files(t, other)); diff != "" || len(files(t, dir)) > 0 {
		t.Errorf("working folder holds %q, the other (-want +got):\n%s", files(t, dir), diff)
	}
	if _, err := weights.Read(filepath.Join(other, "w")); err != nil {
		t.Error(err)
	}
}

func storage(t *testing.T, g *graph.Graph, name string) graph.Storage {
	t.Helper()
	for _, s := range g.Storages {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("%s is no storage of the graph", name)
	return graph.Storage{}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
