package agent

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tensile/data/checkpoint"
	"tensile/executor"
	"tensile/graph"
	"tensile/models"
	"tensile/models/task"
	"tensile/wire"
)

// Losses are kept to the bit; so many that no message holds them are left out.
func TestLosses(t *testing.T) {
	var l losses
	if l.lossAt(0) != nil || l.list() != nil {
		t.Error("there are losses before the first iteration")
	}
	nan := float32(math.NaN())
	for i, loss := range []float32{3, nan, -1} {
		l.set(i, loss)
	}
	if got := l.list(); len(got) != 3 || got[0] != 3 || !math.IsNaN(float64(got[1])) || *l.lossAt(2) != -1 ||
		l.lossAt(3) != nil {
		t.Errorf("losses %v", got)
	}
	l.set(wire.MaxLosses-1, 7)
	if got := l.list(); len(got) != wire.MaxLosses || !slices.Equal(got[2:3], []float32{-1}) {
		t.Errorf("%d losses", len(got))
	}
	l.set(wire.MaxLosses, 8)
	if got := l.list(); got != nil || *l.lossAt(wire.MaxLosses) != 8 {
		t.Errorf("%d losses are for a message", len(got))
	}
}

// learned is what a job of lenet has come to after three iterations, to be saved at a path.
func learned(t *testing.T, path string) (*Keep, *losses) {
	g, err := models.Build("lenet", models.Config{Image: 12, Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	k := &Keep{Spec: wire.Spec{Name: "job", ID: 7, Save: path}, Incarnation: 2, Task: task.Task{Graph: g, Seed: 5},
		Ended: &executor.Ended{Iterations: 3, Weights: make(map[graph.StorageID][]float32)}}
	for _, s := range g.Storages {
		if s.Role.Persistent() {
			k.Ended.Weights[s.ID] = make([]float32, s.Bytes/graph.ElementBytes)
		}
	}
	return k, &losses{values: []float32{3, 2, 1}}
}

// What cannot be saved goes to a checkpoint; and if that cannot be written either, it is on no disk. What is no finite
// number takes the place of neither.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gone", "w.safetensors")
	c := &Checkpoints{Folder: checkpoint.Folder{Dir: dir}}
	k, l := learned(t, path)
	kept := c.keepResult(k, l)
	if kept.Err == nil || kept.Again || kept.Saved != "" || kept.Checkpoint == nil || kept.Checkpoint.Iteration != 3 {
		t.Fatalf("without the folder: %+v", kept)
	}
	state, err := checkpoint.Read(nil, kept.Checkpoint.File)
	if err != nil || state.Iteration != 3 || !slices.Equal(state.Losses, l.values) || len(state.Tensors) == 0 {
		t.Errorf("the checkpoint is %+v: %v", state, err)
	}
	c.Quota = 1
	if kept := c.keepResult(k, l); kept.Err == nil || !kept.Again || kept.Checkpoint != nil {
		t.Errorf("without room for a checkpoint: %+v", kept)
	}
	c.Quota = 0
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if kept := c.keepResult(k, l); kept.Err != nil || kept.Again || kept.Saved != path || kept.Checkpoint != nil {
		t.Errorf("with the folder: %+v", kept)
	}
	saved, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	for _, s := range k.Task.Graph.Storages {
		if s.Role == graph.Parameter {
			k.Ended.Weights[s.ID][1] = float32(math.Inf(1))
		}
	}
	k.Ended.Iterations = 4
	kept = c.keepResult(k, l)
	if _, diverged := kept.Err.(*task.DivergedError); !diverged || kept.Saved != "" || kept.Checkpoint != nil ||
		!strings.Contains(kept.Err.Error(), "conv1.w has become +Inf after 4 iterations: lower --lr") {
		t.Errorf("of weights that are infinite: %+v", kept)
	}
	if now, err := os.ReadFile(path); err != nil || !slices.Equal(now, saved) {
		t.Errorf("the file that was saved before is another one: %v", err)
	}
	w := c.Write(&Write{Spec: k.Spec, Incarnation: 2, Task: k.Task, Snapshot: &executor.Snapshot{Iteration: 4,
		Contents: k.Ended.Weights, Release: func() {}}}, append(l.values, 1))
	if w.Checkpoint != nil || w.Err == nil || !strings.Contains(w.Err.Error(), "no checkpoint was taken: conv1.w has") {
		t.Errorf("a checkpoint of them: %+v", w)
	}
	if found, err := c.Newest("job", 7, 2, nil); err != nil || found.State == nil || found.State.Iteration != 3 {
		t.Errorf("the newest checkpoint is %+v: %v", found, err)
	}
}
