package bench

import (
	"context"
	"fmt"

	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/models/passes"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// superNeurons makes the tables and figures of the SuperNeurons paper (Wang et al., PPoPP 2018) with policy
// superneurons, the paper's own figures beside. quick leaves networks and batches out, no table. The error is the
// context's.
func superNeurons(ctx context.Context, quick bool) ([]Table, error) {
	var tables []Table
	for _, make := range []func(context.Context, bool) (Table, error){snTable1, snFigure10, snSteps, snFigure11,
		snTable3, snFigure12, snTable4, snTable5, snFigure13, snFigure14} {
		t, err := make(ctx, quick)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// snMemory is that of the paper's K40 (12 GB), snAlign the alignment of storages.
const (
	snMemory graph.Bytes = 12e9
	snAlign  graph.Bytes = 512
)

// snMiB is an amount as the paper's MB are: of 2^20 bytes.
func snMiB(b graph.Bytes) float64 { return float64(b*1000/graph.MiB) / 1000 }

// snDevice returns the facts of a device that is listed.
func snDevice(name string) cost.Facts {
	f, err := cost.Device(name)
	if err != nil {
		panic(fmt.Sprintf("bench: %v", err))
	}
	return f
}

// snJob is a network that the paper trains, with momentum, as a simulated device executes it.
func snJob(name string, batch int, rewrites []string, f cost.Facts) (scheduler.Job, error) {
	g, err := models.Build(name, models.Config{Batch: batch, Optimizer: autodiff.Momentum{}})
	if err != nil {
		return scheduler.Job{}, err
	}
	if g, _, err = passes.Apply(g, rewrites); err != nil {
		return scheduler.Job{}, err
	}
	profile, err := planner.Describe(sim.New(f, sim.Options{}), planner.Roofline(f)).Profile(g)
	if err != nil {
		return scheduler.Job{}, err
	}
	return profile.Job(name, 1, g), nil
}

// snInPlace are the passes that make ops in place.
var snInPlace = []string{"pooling", "activations", "dropout", "gradients"}

// snNetworks are those of the paper's tables.
func snNetworks(quick bool) []string {
	if quick {
		return []string{"alexnet", "vgg16", "resnet50"}
	}
	return []string{"alexnet", "vgg16", "inceptionv4", "resnet50", "resnet101", "resnet152"}
}

func snGiB(b graph.Bytes) float64 { return float64(b*100/graph.GiB) / 100 }
