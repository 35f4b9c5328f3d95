package controller

import (
	"slices"

	"tensile/graph"
)

// Drop is what is of no use any more.
type Drop struct {
	Job    string       `json:"job,omitzero"`    // whose record it is; "": none
	Result string       `json:"result,omitzero"` // the object; "": none
	Graph  graph.Digest `json:"graph,omitzero"`  // "": none
}

// retire forgets the oldest of the jobs that are over, if they have become too many.
func (m *Machine) retire() {
	var over []*job
	for _, j := range m.jobs {
		if j.record.State.Over() {
			over = append(over, j)
		}
	}
	if m.config.Keep == 0 || len(over) <= m.config.Keep {
		return
	}
	for _, j := range over[:len(over)-m.config.Keep] {
		m.jobs = slices.DeleteFunc(m.jobs, func(o *job) bool { return o == j })
		m.say(Output{Drop: &Drop{Job: j.record.Spec.Name}})
		m.dropResult(j)
		m.dropGraph(j.record.Spec.Graph)
	}
}

// dropResult drops the result of a job that is not remembered any more.
func (m *Machine) dropResult(j *job) {
	if r := j.record.Result; r != nil && r.Stored != "" {
		m.say(Output{Drop: &Drop{Result: r.Stored}})
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
