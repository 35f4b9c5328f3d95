package local

import (
	"tensile/executor"
	"tensile/task"
)

// spec makes a task ready for the executor. losses is written by the job's host lane, an entry per iteration, which may
// be read once that iteration's report has come.
func spec(t task.Task, losses []float32) executor.Spec {
	return executor.Spec{Name: t.Name, Graph: t.Graph, Seed: t.Seed, Iterations: len(losses),
		Init: t.Init, Input: t.Feeder(), Output: t.Reader(func(iteration int,
			loss float32) {
			losses[iteration] = loss
		})}
}
