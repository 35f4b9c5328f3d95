package agent

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"tensile/executor"
	"tensile/executor/reduce"
	"tensile/models/task"
	"tensile/wire"
)

// losses are written by a job's host lane and read when the iteration was reported.
type losses struct {
	mu     sync.Mutex
	values []float32
}

func (l *losses) set(iteration int, loss float32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.values) <= iteration {
		l.values = append(l.values, 0)
	}
	l.values[iteration] = loss
}

// lossAt returns the loss of an iteration, nil on a device without data.
func (l *losses) lossAt(iteration int) *wire.Loss {
	l.mu.Lock()
	defer l.mu.Unlock()
	if iteration >= len(l.values) {
		return nil
	}
	loss := wire.Loss(l.values[iteration])
	return &loss
}

// list returns the losses of a job that has ended. Those of a very long one do not fit a message, and are left out.
func (l *losses) list() []float32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.values) > wire.MaxLosses {
		return nil
	}
	return slices.Clone(l.values)
}

// prefix returns the losses of the first iterations, which are complete; none on a device without data.
func (l *losses) prefix(iterations int) []float32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.values[:min(iterations, len(l.values))])
}

// submitJob submits a job to the host.
func (r *runner) submitJob(o *Open) {
	l := new(losses)
	t := o.Task
	if line := r.lines[o.Spec.Name]; line != nil {
		t.Mean = line.Mean
	}
	spec := executor.SpecOf(t, o.Spec.Iterations, l.set)
	spec.Weight, spec.Every = o.Spec.Priority, o.Every
	if o.Begin != nil {
		spec.Begin, l.values = o.Begin.Iteration, o.Begin.Losses
	}
	r.losses[o.Spec.Name] = l
	r.host.Submit(spec, o.Proven)
}

// listenForNext lets a replica listen for the next one. A simulated device reduces without the others.
func (r *runner) listenForNext(m *Meet) {
	if isSimulated(r.Device) {
		return
	}
	line, meeting, err := reduce.Open(r.Address, reduce.Place{Number: m.Spec.Replica.Number,
		Replicas: m.Spec.Replica.Of, Begin: m.Begin, Network: string(m.Task.Graph.Network())})
	if err == nil {
		r.lines[m.Spec.Name] = line
	}
	r.enqueue(Input{Met: &Met{m.Ticket, meeting, err}})
}

// closeConnections closes the connections of a replica, if it has any.
func (r *runner) closeConnections(job string) {
	if line := r.lines[job]; line != nil {
		line.Close()
		delete(r.lines, job)
	}
}

// takeLoss is that of the iteration that an event reports; nil if there is none. What is kept of a job that is over
// goes.
func (r *runner) takeLoss(e *executor.Event) *wire.Loss {
	l := r.losses[e.Job]
	if e.Ended != nil || e.Removed {
		r.closeConnections(e.Job) // the other replicas wait for this one no longer
	}
	if e.Removed {
		delete(r.losses, e.Job)
	}
	if e.Report == nil || l == nil {
		return nil
	}
	return l.lossAt(e.Report.Iteration)
}

// errNoData is why nothing can be saved on a simulated device.
var errNoData = errors.New("save: the device has no data")

// Take takes what a job has come to, while it rests in Home, and saves nothing.
func (k *Keep) Take(losses []float32) *Kept {
	kept := &Kept{Ticket: k.Ticket, Losses: losses}
	for s, content := range k.Ended.Weights {
		if kept.Weights == nil {
			kept.Weights = make(map[int32]string)
		}
		kept.Weights[int32(s)] = task.Digest(content)
	}
	return kept
}

// keepResult takes the result of a job, which rests in Home, and saves its weights. If they cannot be saved they go to
// a checkpoint.
func (c *Checkpoints) keepResult(k *Keep, l *losses) *Kept {
	kept := k.Take(l.list())
	if kept.Err = k.Task.Check(k.Ended.Iterations, k.Ended.Weights); kept.Err != nil {
		return kept
	}
	switch {
	case k.Spec.Save == "" || k.Ended.Iterations == 0:
	case k.Ended.Weights == nil:
		kept.Err = errNoData
	default:
		files, spec := c.Access.place(k.Spec)
		kept.Err = c.Access.forbids(files, spec.Save) // again: what a path leads to may be another since
		if kept.Err == nil {
			kept.Err = k.Task.Save(spec.Save, cmp.Or(spec.Source, spec.Weights),
				k.Task.File(k.Ended.Iterations, k.Ended.Weights))
		}
		if kept.Err == nil {
			kept.Saved = spec.Save
			return kept
		}
		s := &executor.Snapshot{Iteration: k.Ended.Iterations, Contents: k.Ended.Weights, Release: func() {}}
		w := c.Write(&Write{k.Ticket, k.Spec, k.Incarnation, k.Task, s, math.MaxInt}, l.prefix(k.Ended.Iterations))
		if kept.Checkpoint = w.Checkpoint; w.Err != nil {
			kept.Err, kept.Again = fmt.Errorf("%w, and %w", kept.Err, w.Err), true
		}
	}
	return kept
}
