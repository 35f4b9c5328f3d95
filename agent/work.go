package agent

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tensile/executor"
	"tensile/graph"
	"tensile/internal/text"
	"tensile/peak"
	"tensile/program"
	"tensile/task"
	"tensile/weights"
	"tensile/wire"
)

// work is what training a job brings forth.
type work struct {
	graph      *graph.Graph
	iterations int // that are wanted
	begin, end time.Duration
	stall      time.Duration
	reported   int
	peaks      map[int64]graph.Bytes // of the plans that were ordered, by epoch
	peak       graph.Bytes           // the highest of those that came into force
	arena      graph.Bytes           // the largest of theirs
	logged     time.Time
	losses     losses
}

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

// at returns the loss of an iteration, nil on a device without data.
func (l *losses) at(iteration int) *float32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if iteration >= len(l.values) {
		return nil
	}
	loss := l.values[iteration]
	return &loss
}

// all returns the losses of a job that has ended. Those of a very long one do not fit a message, and are left out.
func (l *losses) all() []float32 {
	const most = 1 << 16
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.values) > most {
		return nil
	}
	return slices.Clone(l.values)
}

// open submits a job to the host.
func (r *runner) open(o *Open) {
	w := &work{iterations: o.Spec.Iterations, graph: o.Task.Graph, peaks: make(map[int64]graph.Bytes)}
	w.plan(o.Proven)
	r.works[o.Spec.Name] = w
	r.host.Submit(executor.Spec{Name: o.Spec.Name, Graph: o.Task.Graph, Seed: o.Spec.Seed, Iterations: o.Spec.Iterations,
		Init: o.Task.Init, Input: o.Task.Feeder(), Output: o.Task.Reader(w.losses.set)}, o.Proven)
}

// change has a job that was opened go on with another program.
func (r *runner) change(c *Change) {
	r.works[c.Job].plan(c.Proven)
	r.host.Change(c.Job, c.Proven)
}

// plan takes down a plan that may come into force.
func (w *work) plan(proven program.Proven) {
	p := proven.Program()
	w.peaks[p.Plan.Epoch] = peak.Of(p.Graph, p.Plan).Peak
}

// note keeps what an event says of a job, and returns the loss of an iteration that it reports.
func (r *runner) note(e *executor.Event) *float32 {
	w := r.works[e.Job]
	switch {
	case e.Removed:
		delete(r.works, e.Job)
	case e.Applied != nil && w != nil:
		w.peak, w.arena = max(w.peak, w.peaks[e.Applied.Epoch]), max(w.arena, e.Applied.Arena)
	case e.Report != nil && w != nil:
		return r.iteration(w, e.Report)
	}
	return nil
}

// iteration adds one to the work, and to the log unless that had a line of the job within the last second.
func (r *runner) iteration(w *work, rep *executor.Report) *float32 {
	if w.reported++; w.reported == 1 {
		w.begin = rep.Begin
	}
	w.end = rep.End
	w.stall += rep.Stall
	loss := w.losses.at(rep.Iteration)
	if now := time.Now(); now.Sub(w.logged) >= time.Second || rep.Iteration+1 == w.iterations {
		w.logged = now
		line := fmt.Sprintf("iteration %d: %v, stall %v", rep.Iteration, text.Duration(rep.End-rep.Begin), text.Duration(rep.Stall))
		if loss != nil {
			line += fmt.Sprintf(", loss %.4g", *loss)
		}
		r.sender.line(&Line{rep.Job, line})
	}
	return loss
}

// errNoData is why nothing can be saved on a simulated device.
var errNoData = errors.New("save: the device has no data")

// keep takes what a job has come to, while it rests in Home, and saves its weights. origin is that of the device's clock.
func (w *work) keep(k *Keep, origin time.Duration) *Kept {
	e := k.Ended
	result := &wire.Result{Losses: w.losses.all(), Begin: origin + w.begin, End: origin + w.end, Stall: w.stall, Touched: e.Touched,
		Arena: w.arena, SlotPeak: w.peak, Plans: e.Plans, Transition: e.Transition}
	for s, content := range e.Weights {
		if result.Weights == nil {
			result.Weights = make(map[int32]string)
		}
		result.Weights[int32(s)] = task.Digest(content)
	}
	kept := &Kept{Ticket: k.Ticket, Result: result}
	switch {
	case k.Spec.Save == "" || e.Iterations == 0:
	case e.Weights == nil:
		kept.Err = errNoData
	default:
		if kept.Err = weights.Write(k.Spec.Save, k.Task.File(e.Iterations, e.Weights)); kept.Err == nil {
			result.Saved = k.Spec.Save
		}
	}
	return kept
}
