package local

import (
	"testing"
	"time"

	"tensile/controller"
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/scheduler/planner"
)

// TestCrowded trains on a GPU of which other programs have so much that the first plan does not fit there: the job is
// planned for again, within what is free, and trains all its iterations.
func TestCrowded(t *testing.T) {
	const iterations = 3
	w, err := task.Load([]string{"resnet50"}, task.Settings{Image: 64, Batch: 8, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	open := func(memory graph.Bytes) *cuda.Device {
		facts.Memory = memory
		d, err := cuda.New(fakecuda.New(fakecuda.Options{Facts: facts, Dry: true,
			Latency: func(cuda.Launch) time.Duration { return 20 * time.Microsecond }}), cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	large := open(graph.GiB)
	peaks, err := planner.Vanilla(t.Context(), asked(t, w, large))
	if err != nil {
		t.Fatal(err)
	}
	if err := large.Close(); err != nil {
		t.Fatal(err)
	}
	small := open(peaks.Live[0] * 8 / 10)
	defer func() {
		if err := small.Close(); err != nil {
			t.Error(err)
		}
	}()
	run, err := Train(t.Context(), small, on(small), w, Options{Iterations: iterations,
		Config: controller.Config{Policy: "tensile", Budget: peaks.Live[0]}})
	if err != nil {
		t.Fatal(err)
	}
	if j := run.Jobs[0]; j.Iterations != iterations || j.Arena > small.Facts().Memory {
		t.Errorf("%d iterations in an arena of %s, want %d within %s", j.Iterations, j.Arena, iterations,
			small.Facts().Memory)
	}
}
