package simulate

import (
	"fmt"
	"time"

	"tensile/executor"
	"tensile/graph"
	"tensile/models/task"
	"tensile/plan/proof"
)

// profiledKind is what equal jobs share: their graph, and how one of them trains alone on a device, without a plan.
type profiledKind struct {
	task    task.Task
	program proof.Proven
	// peak is the arena of program.
	peak graph.Bytes
	// iterationTime is the time of an iteration alone.
	iterationTime time.Duration
	// overhead is the time that a job takes beside its iterations.
	overhead time.Duration
}

// profileKind makes the task of a network and trains it for a few iterations.
func (w *world) profileKind(of Kind) (*profiledKind, error) {
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
	k := &profiledKind{task: t, program: planned.Programs[0]}
	k.peak = k.program.Program().Arena
	return k, k.measureAlone(w)
}

// measureAlone measures how a job trains alone, on a device of its own with as much memory as it needs.
func (k *profiledKind) measureAlone(w *world) error {
	facts := w.Facts
	facts.Memory = max(facts.Memory, k.peak)
	n := newNode("alone", facts, false)
	defer n.device.Close()
	defer n.host.Close()
	const iterations = 2*window + 1
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
		if len(c.endTimes) > len(ends) {
			ends = append(ends, c.endTimes[len(c.endTimes)-1])
		}
	}
	k.iterationTime = (ends[iterations-1] - ends[iterations-1-window]) / window
	k.overhead = max(0, n.now()-iterations*k.iterationTime)
	return nil
}

// timeFor is how long a job of so many iterations takes alone.
func (k *profiledKind) timeFor(iterations int) time.Duration {
	return k.overhead + time.Duration(iterations)*k.iterationTime
}

// iterationsIn is how many iterations a job does alone in some time, at least one.
func (k *profiledKind) iterationsIn(d time.Duration) int {
	return max(1, int((d-k.overhead)/max(1, k.iterationTime)))
}
