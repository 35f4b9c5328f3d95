package local

import (
	"context"
	"math"
	"slices"

	"tensile/device"
	"tensile/executor"
	"tensile/graph"
	"tensile/peak"
	"tensile/program"
	"tensile/report"
	"tensile/task"
)

// Iterated tells an observer of a run about one iteration.
type Iterated struct {
	Job    int
	Report *executor.Report
	Loss   float32 // NaN on a device without data
}

// Train trains tasks together by the program of each, for a number of iterations, within a budget for all arenas (0:
// none). observe is called after each iteration and may be nil. Everything that was opened is closed when it returns.
func Train(ctx context.Context, d device.Device, tasks []task.Task, programs []program.Proven, budget graph.Bytes,
	iterations int, observe func(Iterated)) (run *report.Run, err error) {
	run = &report.Run{Jobs: make([]report.JobRun, len(tasks))}
	index := make(map[string]int)
	host := executor.NewHost(d, budget, func(r *executor.Report) {
		i := index[r.Job]
		j := &run.Jobs[i]
		if j.Iterations++; j.Iterations == 1 {
			j.Begin = r.Begin
		}
		j.End = r.End
		j.Stall += r.Stall
		j.Watched.Add(r.Iteration, r.Epoch, r.End-r.Begin, r.Steps)
		if observe != nil {
			observe(Iterated{i, r, j.Losses[r.Iteration]})
		}
	})
	defer func() {
		if closing := host.Close(); err == nil {
			err = closing
		}
	}()
	for i, t := range tasks {
		index[t.Name] = i
		run.Jobs[i].Losses = slices.Repeat([]float32{float32(math.NaN())}, iterations)
		if err := host.Add(spec(t, run.Jobs[i].Losses), programs[i]); err != nil {
			return nil, err
		}
	}
	if err := host.Run(ctx); err != nil {
		return nil, err
	}
	finish(run, host, tasks, programs)
	return run, nil
}

// finish takes the results out of the host.
func finish(r *report.Run, host *executor.Host, tasks []task.Task, programs []program.Proven) {
	for i, t := range tasks {
		j := &r.Jobs[i]
		m := host.Machine(t.Name)
		j.Touched, j.Plans, j.Transition = host.Touched(t.Name), m.Plans(), m.Transition()
		j.Arena, j.SlotPeak = programs[i].Program().Arena, peak.Of(t.Graph, programs[i].Program().Plan).Peak
		for _, s := range t.Graph.Storages {
			if content := host.Weights(t.Name, s.ID); s.Role.Persistent() && content != nil {
				if j.Weights == nil {
					j.Weights = make(map[int32]string)
				}
				j.Weights[int32(s.ID)] = task.Digest(content)
			}
		}
		if j.Weights == nil {
			j.Losses = nil // a device without data
		}
	}
}
