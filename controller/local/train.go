package local

import (
	"context"
	"fmt"
	"slices"

	"tensile/controller"
	"tensile/controller/plans"
	"tensile/device"
	"tensile/executor"
	"tensile/graph"
	"tensile/models/task"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Options say how tasks are trained together.
type Options struct {
	// Config is what the controller plans by: policy, budget, switches. Train fills in what follows from the device.
	controller.Config

	// Iterations is how many iterations each task trains.
	Iterations int
	// From is the checkpoint with which the only task begins. "": it begins from scratch.
	From string
	// AnyDevice also takes a checkpoint of a device that computes other bits.
	AnyDevice bool
	// Priorities has one priority per task. nil: all are the same.
	Priorities []int
	// SwapRates has the maximum swap rate of each task. nil: there is no limit.
	SwapRates []float64

	// Plan answers a plan request. nil: a a plans.Worker does.
	Plan func(ctx context.Context, q *plans.Request) *plans.Result

	// Observe is called after each iteration. It may be nil.
	Observe func(Iterated)
	// Trace is called with what each section of a job has done. It may be nil.
	Trace func(job string, t *executor.Trace)

	// ended is called with what became of a job. It may be nil.
	ended func(e *executor.Ended)
}

// Iterated tells an observer of a run about one iteration.
type Iterated struct {
	// Job is the index of the task.
	Job    int
	Report *wire.Report
	// SlotPeak is the largest footprint of a slot by the plan in force.
	SlotPeak graph.Bytes
}

// Train trains tasks together on a device. on describes the device for plans. It returns the cause of ctx if that is
// done first, and an error if a task cannot be trained here: the others are given up then. Everything that was opened
// on the device is closed when it returns.
func Train(ctx context.Context, d device.Device, on planner.Device, tasks []task.Task, o Options) (*Run, error) {
	return train(ctx, d, on, tasks, o, executor.SpecOf)
}

// specOf makes a task ready for a host, which calls loss after each iteration.
type specOf func(t task.Task, iterations int, loss func(iteration int, loss float32)) executor.Spec

// train is Train for jobs that need not train, as an evaluation.
func train(ctx context.Context, d device.Device, on planner.Device, tasks []task.Task, o Options, spec specOf) (
	run *Run, err error) {
	for i, t := range tasks {
		if slices.ContainsFunc(tasks[:i], func(other task.Task) bool { return other.Name == t.Name }) {
			return nil, fmt.Errorf("two jobs are called %s", t.Name)
		}
	}
	l := newLoop(ctx, d, on, tasks, o, spec)
	defer func() {
		if closing := l.host.Close(); err == nil {
			err = closing
		}
		if err != nil {
			run = nil
		}
	}()
	if err := l.run(); err != nil {
		return nil, err
	}
	return l.outcome(), nil
}
