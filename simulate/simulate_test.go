package simulate

import (
	"math"
	"testing"
	"time"

	"tensile/autodiff"
	"tensile/cost"
	"tensile/graph"
	"tensile/task"
	"tensile/workload"
)

// load makes tasks of networks for small images.
func load(model string, batch int) (task.Task, error) {
	tasks, err := workload.Load([]string{model}, workload.Settings{Image: 32, Batch: batch,
		Optimizer: autodiff.Adam{}})
	if err != nil {
		return task.Task{}, err
	}
	return tasks[0], nil
}

func options(t *testing.T, way Way, devices int, budget graph.Bytes) Options {
	t.Helper()
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	return Options{Way: way, Facts: facts, Devices: devices, Budget: budget, Fold: true, Load: load}
}

// small is a trace of twenty jobs of which two or three share a device of 64 MiB.
func small() []Arrival {
	return Generator{Jobs: 20, Seed: 3, Gap: 200 * time.Millisecond, Fewest: 20, Most: 400, Tail: 1, Tenants: 2,
		Mix: []Kind{{"lenet", 64}, {"vgg11-cifar", 16}, {"resnet:1,1,1,1", 8}}}.Trace()
}

// A folded run says of every job what one says that trains each iteration.
func TestFoldedIsUnfolded(t *testing.T) {
	for _, way := range Ways() {
		t.Run(string(way), func(t *testing.T) {
			o := options(t, way, 1, graph.GiB)
			folded, err := Run(t.Context(), small(), o)
			if err != nil {
				t.Fatal(err)
			}
			o.Fold = false
			each, err := Run(t.Context(), small(), o)
			if err != nil {
				t.Fatal(err)
			}
			for i, j := range folded.Jobs {
				want := each.Jobs[i]
				t.Logf("%-5s %-15s %5d submit %.3f start %.3f %.3f end %.3f %.3f slow %.2f", j.Name, j.Model, j.Iterations, j.Submit, j.Start, want.Start, j.End, want.End, j.Slowdown)
				if took := want.End - want.Submit; math.Abs(j.End-want.End) > 0.01*took {
					t.Errorf("job %s ends at %.3f s, and unfolded at %.3f s", j.Name, j.End, want.End)
				}
			}
			t.Logf("makespan %.3f %.3f mean %.3f wait %.3f memory %.3f link %.3f replans %d %d", folded.Makespan, each.Makespan, folded.Mean, folded.Waiting, folded.Memory, folded.Link, folded.Replans, each.Replans)
		})
	}
}
