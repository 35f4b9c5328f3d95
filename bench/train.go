package bench

import (
	"context"
	"math"
	"slices"
	"time"

	"tensile/device"
	"tensile/executor"
	"tensile/graph"
	"tensile/peak"
	"tensile/task"
)

// Run is what training a workload came to.
type Run struct{ Jobs []JobRun }

// JobRun is one job's part of a run.
type JobRun struct {
	Losses     []float32 // per iteration; nil on a device without data
	Iterations int
	Begin, End time.Duration // of the first and of the last iteration, by the device's clock
	Stall      time.Duration
	Touched    graph.Bytes
	Arena      graph.Bytes // the largest of all plans that were in force
	SlotPeak   graph.Bytes // the highest
	Plans      int
	Transition time.Duration
	Watched    Watched
	Weights    map[graph.StorageID]string // digests of persistent storages after the last iteration; nil without data
}

// Iterated tells an observer of a run about one iteration.
type Iterated struct {
	Job    int
	Report *executor.Report
	Loss   float32 // NaN on a device without data
}

// Train runs all jobs of a planned workload together for a number of iterations within a budget (0: none). observe may
// be nil. Everything that was opened is closed when it returns.
func Train(ctx context.Context, d device.Device, w Workload, p *Planned, budget graph.Bytes, iterations int, observe func(Iterated)) (run *Run, err error) {
	run = &Run{Jobs: make([]JobRun, len(w))}
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
	for i, t := range w {
		index[t.Name] = i
		run.Jobs[i].Losses = slices.Repeat([]float32{float32(math.NaN())}, iterations)
		if err := host.Add(t.spec(run.Jobs[i].Losses), p.Programs[i]); err != nil {
			return nil, err
		}
	}
	if err := host.Run(ctx); err != nil {
		return nil, err
	}
	run.finish(host, w, p)
	return run, nil
}

// finish takes the results out of the host.
func (r *Run) finish(host *executor.Host, w Workload, p *Planned) {
	for i, t := range w {
		j := &r.Jobs[i]
		m := host.Machine(t.Name)
		j.Touched, j.Plans, j.Transition = host.Touched(t.Name), m.Plans(), m.Transition()
		j.Arena, j.SlotPeak = p.Programs[i].Program().Arena, peak.Of(t.Graph, p.Programs[i].Program().Plan).Peak
		for _, s := range t.Graph.Storages {
			if content := host.Weights(t.Name, s.ID); s.Role.Persistent() && content != nil {
				if j.Weights == nil {
					j.Weights = make(map[graph.StorageID]string)
				}
				j.Weights[s.ID] = task.Digest(content)
			}
		}
		if j.Weights == nil {
			j.Losses = nil // a device without data
		}
	}
}
