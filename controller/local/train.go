package local

import (
	"context"
	"fmt"
	"slices"

	"tensile/controller"
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

	Iterations int       // of each task
	From       string    // the checkpoint that the only task begins with; "": none
	AnyDevice  bool      // also one of a device where other bits come out
	Priorities []int     // per task; nil: all the same
	SwapRates  []float64 // per task: the max swap rate; nil: no limit

	// Plan makes plans; nil: a controller.Planner does.
	Plan func(ctx context.Context, q *controller.PlanRequest) *controller.PlanResult

	Observe func(Iterated) // is called after each iteration; may be nil
	// Trace is told what each section of a job has done; may be nil.
	Trace func(job string, t *executor.Trace)

	ended func(e *executor.Ended) // is told what a job came to; may be nil
}

// Iterated tells an observer of a run about one iteration.
type Iterated struct {
	Job      int // the task
	Report   *wire.Report
	SlotPeak graph.Bytes // of the plan in force
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
