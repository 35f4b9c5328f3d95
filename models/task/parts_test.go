package task

import (
	"slices"
	"strings"
	"testing"

	"tensile/data/weights"
	"tensile/graph"
	"tensile/models"
	"tensile/models/passes"
)

// divided returns a small network as it is, and with parameters and what the optimizer keeps of them in tiles.
func divided(t *testing.T) (g, tiled *graph.Graph) {
	t.Helper()
	g, err := models.Build("lenet", models.Config{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	tiled, o, err := passes.Tiles(g, func(s graph.Shape) int { return (s[0] + 2) / 3 })
	if err != nil || o.Changed == 0 {
		t.Fatalf("%d parameters in tiles, %v", o.Changed, err)
	}
	return g, tiled
}

// numbered fills each persistent storage of a task with numbers of its own and returns them.
func numbered(task Task) map[graph.StorageID][]float32 {
	contents := make(map[graph.StorageID][]float32)
	for _, s := range task.Graph.Storages {
		if s.Role.Persistent() {
			contents[s.ID] = make([]float32, s.Bytes/graph.ElementBytes)
			for i := range contents[s.ID] {
				contents[s.ID][i] = float32(1000*int(s.ID) + i)
			}
		}
	}
	return contents
}

// Files hold what is divided in one piece, of the same shape, so that a graph begins with the weights or the checkpoint
// of another one of the same network in other parts, and comes to the same file again.
func TestPartsInFiles(t *testing.T) {
	g, tiled := divided(t)
	for _, test := range []struct {
		what     string
		from, to *graph.Graph
	}{{"divided from whole", g, tiled}, {"whole from divided", tiled, g}, {"divided from divided", tiled, tiled}} {
		file := Task{Graph: test.from}.File(5, numbered(Task{Graph: test.from}))
		for _, x := range file.Tensors {
			if strings.Contains(x.Name, "tile") {
				t.Errorf("%s: the file has a tensor %s", test.what, x.Name)
			}
		}
		task := Task{Graph: test.to}
		if err := task.Restore(file.Tensors); err != nil {
			t.Fatalf("%s: %v", test.what, err)
		}
		contents := make(map[graph.StorageID][]float32)
		for _, s := range test.to.Storages {
			if s.Role.Persistent() {
				contents[s.ID] = make([]float32, s.Bytes/graph.ElementBytes)
				task.Init(s, contents[s.ID])
			}
		}
		again := task.File(5, contents)
		byName := func(a, b weights.Tensor) int { return strings.Compare(a.Name, b.Name) }
		slices.SortFunc(file.Tensors, byName)
		slices.SortFunc(again.Tensors, byName)
		if !slices.EqualFunc(again.Tensors, file.Tensors, func(a, b weights.Tensor) bool {
			return a.Name == b.Name && slices.Equal(a.Shape, b.Shape) && slices.Equal(a.Data, b.Data)
		}) {
			t.Errorf("%s: it began with other contents than it was given", test.what)
		}
	}
}

// A tensor of which a part is missing, or that has not the elements of all parts, is told by its own name.
func TestPartsThatDoNotFit(t *testing.T) {
	g, tiled := divided(t)
	file := Task{Graph: g}.File(5, numbered(Task{Graph: g}))
	name := tiled.Storages[tiled.Parts()[0][0]].PartOf
	i := slices.IndexFunc(file.Tensors, func(x weights.Tensor) bool { return x.Name == name })
	short := slices.Clone(file.Tensors)
	short[i].Data = short[i].Data[1:]
	for what, tensors := range map[string][]weights.Tensor{
		"there is no tensor " + name + ", which": slices.Delete(slices.Clone(file.Tensors), i, i+1),
		"tensor " + name + " has":                short,
	} {
		task := Task{Graph: tiled}
		if err := task.Restore(tensors); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %q", err, what)
		}
	}
	contents := numbered(Task{Graph: tiled})
	delete(contents, tiled.Parts()[0][1])
	for _, x := range (Task{Graph: tiled}).File(5, contents).Tensors {
		if x.Name == name {
			t.Errorf("%s is kept without one of its parts", name)
		}
	}
}
