package local

import (
	"context"
	"fmt"

	"tensile/controller"
	"tensile/device"
	"tensile/executor"
	"tensile/graph"
	"tensile/models/task"
	"tensile/scheduler/planner"
)

// Execution is a graph that is run for what it computes.
type Execution struct {
	Graph      *graph.Graph
	Iterations int
	// Seed is that of dropout.
	Seed   uint64
	Init   func(s graph.Storage, to []float32)
	Input  func(iteration int, s graph.StorageID, to device.Memory)
	Output func(iteration int, s graph.StorageID, from []float32)
	// Ended is called with the last content of each persistent storage, which is valid during the call. It may be nil.
	Ended func(s graph.Storage, content []float32)
}

// Execute runs a graph on a device without a budget. It returns an error if that cannot be done here.
func Execute(ctx context.Context, d device.Device, e Execution) error {
	o := Options{Config: controller.Config{Policy: "none-live", NoReplan: true}, Iterations: e.Iterations}
	if e.Ended != nil {
		o.ended = func(ended *executor.Ended) {
			for s, content := range ended.Weights {
				e.Ended(e.Graph.Storages[s], content)
			}
		}
	}
	spec := func(t task.Task, iterations int, _ func(int, float32)) executor.Spec {
		return executor.Spec{Graph: t.Graph, Iterations: iterations, Init: e.Init,
			JobOptions: device.JobOptions{Name: t.Name, Seed: e.Seed, Input: e.Input, Output: e.Output}}
	}
	t := task.Task{Name: e.Graph.Name, Model: e.Graph.Name, Graph: e.Graph, Seed: e.Seed}
	if _, err := train(ctx, d, planner.Of(d, planner.Roofline(d.Facts())), []task.Task{t}, o, spec); err != nil {
		return fmt.Errorf("execute %s: %w", e.Graph.Name, err)
	}
	return nil
}
