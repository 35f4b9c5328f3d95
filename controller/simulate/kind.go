package simulate

import (
	"fmt"
	"time"

	"tensile/executor"
	"tensile/graph"
	"tensile/models/task"
	"tensile/plan/proof"
)

// kind is what equal jobs share: their graph, and how one of them trains alone on a device, without a plan.
type kind struct {
	task    task.Task
	program proof.Proven
	peak    graph.Bytes   // the arena of that
	each    time.Duration // an iteration alone
	beside  time.Duration // what a job takes beside its iterations
}

// kind makes the task of a network and trains it for a few iterations.
func (w *world) kind(of Kind) (*kind, error) {
	t, err := w.Load(of.Model, of.Batch)
	if err != nil {
		return nil, err
	}
	profile, err := w.planner.Profile(t.Graph)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.Model, err)
	}
	r := w.planner.Request(profile.Job(t.Name, 1, t.Graph))
	r.Policy = "none-live"
	planned, err := w.planner.Plan(w.ctx, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.Model, err)
	}
	k := &kind{task: t, program: planned.Programs[0]}
	k.peak = k.program.Program().Arena
	return k, k.train(w)
}

// train measures how a job trains alone, on a device of its own with as much memory as it needs.
func (k *kind) train(w *world) error {
	facts := w.Facts
	facts.Memory = max(facts.Memory, k.peak)
	n := newNode("alone", facts, false)
	defer n.device.Close()
	defer n.host.Close()
	const iterations = 2*alike + 1
	spec := executor.SpecOf(k.task, iterations, nil)
	c := n.add(spec)
	if err := n.tell(0, func(h *executor.Host) { h.Submit(spec, k.program) }); err != nil {
		return err
	}
	var ends []time.Duration
	for !c.ended {
		if err := n.poll(); err != nil {
			return err
		}
		if len(c.ends) > len(ends) {
			ends = append(ends, c.ends[len(c.ends)-1])
		}
	}
	k.each = (ends[iterations-1] - ends[iterations-1-alike]) / alike
	k.beside = max(0, n.now()-iterations*k.each)
	return nil
}

// takes is how long a job of so many iterations takes alone.
func (k *kind) takes(iterations int) time.Duration {
	return k.beside + time.Duration(iterations)*k.each
}

// within is how many iterations a job does alone in some time, at least one.
func (k *kind) within(d time.Duration) int { return max(1, int((d-k.beside)/max(1, k.each))) }
