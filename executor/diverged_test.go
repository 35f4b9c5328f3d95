package executor_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tensile/device/cpu"
	"tensile/executor"
	"tensile/graph/autodiff"
	"tensile/models"
	tasks "tensile/models/task"
)

// A job whose loss is no finite number ends in that very iteration, the first one of its kind, whenever the device has
// come to the next one; and no state is handed out with which that loss was computed.
func TestDiverges(t *testing.T) {
	for _, aside := range []bool{false, true} {
		d := openEngine(t, cpu.Options{})
		k := newTask(t, "job", "lenet", models.Config{Image: 12, Batch: 2,
			Optimizer: autodiff.SGD{LearningRate: 4e3}}, 3)
		k.aside = aside
		p := k.plan(d, "none-live", 0)
		losses := make([]float32, 100)
		var taken []*executor.Snapshot
		var ended *executor.Ended
		var h *executor.Host
		h = executor.NewHost(d, func(e executor.Event) {
			switch {
			case e.Report != nil:
				if v := float64(losses[e.Report.Iteration]); math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("aside %t: iteration %d is reported, and has loss %v", aside, e.Report.Iteration, v)
				}
				h.Checkpoint("job", 0)
			case e.Snapshot != nil && e.Snapshot.Err == nil:
				taken = append(taken, e.Snapshot)
			case e.Ended != nil:
				ended = e.Ended
			}
		})
		spec := executor.SpecOf(tasks.Task{Name: "job", Graph: k.g, Seed: 3, Data: k.set}, len(losses),
			func(iteration int, loss float32) { losses[iteration] = loss })
		h.Submit(spec, p)
		if err := run(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		if ended == nil {
			t.Fatalf("aside %t: the job has not ended", aside)
		}
		diverged, ok := errors.AsType[*tasks.DivergedError](ended.Err)
		if !ok || ended.Weights != nil || ended.Iterations != diverged.Iteration+1 || diverged.Iteration < 1 {
			t.Fatalf("aside %t: it has ended as %+v with losses %v", aside, ended, losses)
		}
		for i, v := range losses[:diverged.Iteration+1] {
			if finite := !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0); finite != (i < diverged.Iteration) {
				t.Errorf("aside %t: iteration %d has loss %v, and it has ended since that of %d", aside, i, v,
					diverged.Iteration)
			}
		}
		for _, s := range taken {
			if aside && s.Iteration >= diverged.Iteration || s.Iteration > diverged.Iteration {
				t.Errorf("aside %t: the state after %d iterations was taken", aside, s.Iteration)
			}
			s.Release()
		}
		closeHost(t, h)
	}
}

// A picture that is broken in the middle is passed over: the job goes on, and says so once.
func TestPassedOver(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"oak/a.png", "elm/a.png"} {
		var out bytes.Buffer
		if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 12, 12))); err != nil {
			t.Fatal(err)
		}
		text := out.Bytes()
		if name == "oak/a.png" {
			clear(text[len(text)/2 : 3*len(text)/4])
		}
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	g, err := models.Build("lenet", models.Config{Image: 12, Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	k, err := tasks.Open(nil, g, 3, dir)
	if err != nil {
		t.Fatal(err)
	}
	d := openEngine(t, cpu.Options{})
	program := (&task{t: t, name: "lenet", g: g, seed: 3}).plan(d, "none-live", 0)
	var troubles []error
	var ended *executor.Ended
	h := executor.NewHost(d, func(e executor.Event) {
		if e.Troubled != nil {
			troubles = append(troubles, e.Troubled)
		}
		if e.Ended != nil {
			ended = e.Ended
		}
	})
	h.Submit(executor.SpecOf(k, 4, func(int, float32) {}), program)
	if err := run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if ended == nil || ended.Err != nil || ended.Iterations != 4 {
		t.Errorf("the job has ended as %+v", ended)
	}
	want := filepath.Join(dir, "oak", "a.png") + ": is no image that can be read (png: "
	if len(troubles) != 1 || !strings.Contains(troubles[0].Error(), want) {
		t.Errorf("of the picture it was said: %v", troubles)
	}
	closeHost(t, h)
}
