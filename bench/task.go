package bench

import (
	"tensile/device"
	"tensile/executor"
	"tensile/graph"
	"tensile/task"
)

// spec makes a task ready for the executor. losses is written by the job's host lane, an entry per iteration, which may
// be read once that iteration's report has come.
func (t Task) spec(losses []float32) executor.Spec {
	work := t.work()
	return executor.Spec{Name: t.Name, Graph: t.Graph, Seed: t.Seed, Iterations: len(losses),
		Init: work.Init, Input: t.feeder(), Output: work.Reader(func(iteration int, loss float32) { losses[iteration] = loss })}
}

func (t Task) work() task.Task { return task.Task{Graph: t.Graph, Seed: t.Seed, Data: t.Data} }

func (t Task) feeder() func(iteration int, s graph.StorageID, to device.Memory) {
	return t.work().Feeder()
}
