package controller

import (
	"slices"

	"tensile/graph"
	"tensile/wire"
)

// Drop is what is of no use any more.
type Drop struct {
	Job   string       // whose record it is; "": none
	Graph graph.Digest // "": none
}

// retire forgets the oldest of the jobs that are over, if they have become too many.
func (m *Machine) retire() {
	var over []*job
	for _, j := range m.jobs {
		if j.record.Phase.Over() {
			over = append(over, j)
		}
	}
	if m.config.Keep == 0 || len(over) <= m.config.Keep {
		return
	}
	for _, j := range over[:len(over)-m.config.Keep] {
		m.jobs = slices.DeleteFunc(m.jobs, func(o *job) bool { return o == j })
		m.say(Output{Drop: &Drop{Job: j.record.Spec.Name}})
		m.dropGraph(j.record.Spec.Graph)
	}
}

// dropGraph drops a graph if no job has it.
func (m *Machine) dropGraph(digest graph.Digest) {
	if !m.uses(digest) {
		m.say(Output{Drop: &Drop{Graph: digest}})
	}
}

// uses reports whether a job has a graph.
func (m *Machine) uses(digest graph.Digest) bool {
	return slices.ContainsFunc(m.jobs, func(j *job) bool { return j.record.Spec.Graph == digest })
}

// drop removes a record or a graph.
func (r *runner) drop(d *Drop) error {
	if d.Graph != "" {
		r.unused = append(r.unused, d.Graph)
		return r.insist(r.sweep)
	}
	return r.insist(func() error { return r.bus.Delete(r.ctx, wire.RecordKey(d.Job)) })
}

// sweep removes the graphs that no job has, unless one is just being submitted: then it waits for another time.
func (r *runner) sweep() error {
	if len(r.unused) == 0 || !r.submitting.TryLock() {
		return nil
	}
	defer r.submitting.Unlock()
	for len(r.unused) > 0 {
		if digest := r.unused[0]; !r.machine.uses(digest) {
			if err := r.bus.Remove(r.ctx, wire.Graphs, wire.GraphObject(digest)); err != nil {
				return err
			}
		}
		r.unused = r.unused[1:]
	}
	return nil
}
