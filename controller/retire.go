package controller

import (
	"maps"
	"slices"

	"tensile/graph"
	"tensile/wire"
)

// Drop names something that is stored and of no use any more. One of the fields is set, or Executor and Object.
type Drop struct {
	// Job is the job whose record and log are dropped.
	Job string `json:"job,omitzero"`
	// Log is the job whose log is dropped, as another has its name.
	Log string `json:"log,omitzero"`
	// Result is the object of a result.
	Result string       `json:"result,omitzero"`
	Graph  graph.Digest `json:"graph,omitzero"`

	// Settings is the object of settings.
	Settings string `json:"settings,omitzero"`
	// Device is the name of a device that no executor registers any more.
	Device string `json:"device,omitzero"`

	// Executor is the one in whose bucket Object is dropped.
	Executor string `json:"executor,omitzero"`
	Object   string `json:"object,omitzero"`
}

// forgetOldJobs forgets jobs that are over, if there are too many: the oldest of the owner who has most of them, so
// that a user with many does not have those of others forgotten.
func (m *Machine) forgetOldJobs() {
	var over []*job
	for _, j := range m.jobs {
		if j.record.State.Over() && len(j.record.Held) == 0 {
			over = append(over, j)
		}
	}
	if m.config.KeepJobs == 0 || len(over) <= m.config.KeepJobs {
		return
	}
	of := make(map[string]int)
	for _, j := range over {
		of[j.record.Spec.Owner]++
	}
	for len(over) > m.config.KeepJobs {
		most := slices.Max(slices.Collect(maps.Values(of)))
		at := slices.IndexFunc(over, func(j *job) bool { return of[j.record.Spec.Owner] == most })
		j := over[at]
		over = slices.Delete(over, at, at+1)
		of[j.record.Spec.Owner]--
		m.jobs = slices.DeleteFunc(m.jobs, func(o *job) bool { return o == j })
		m.emit(Output{Drop: &Drop{Job: j.record.Spec.Name}})
		m.dropResult(j)
		m.dropGraph(j.record.Spec.Graph)
	}
}

// dropResult drops the result of a job that is forgotten.
func (m *Machine) dropResult(j *job) {
	if r := j.record.Result; r != nil && r.Stored != "" {
		m.emit(Output{Drop: &Drop{Result: r.Stored}})
	}
}

// dropGraph drops a graph if no job has it.
func (m *Machine) dropGraph(digest graph.Digest) {
	if !m.usesGraph(digest) {
		m.forgetProfiles(digest)
		m.emit(Output{Drop: &Drop{Graph: digest}})
	}
}

// usesGraph reports whether a job has a graph.
func (m *Machine) usesGraph(digest graph.Digest) bool {
	return slices.ContainsFunc(m.jobs, func(j *job) bool { return j.record.Spec.Graph == digest })
}

// graphsOf are the graphs of a user's jobs.
func (m *Machine) graphsOf(user string) map[graph.Digest]bool {
	of := make(map[graph.Digest]bool)
	for _, j := range m.jobs {
		if j.record.Spec.Owner == user {
			of[j.record.Spec.Graph] = true
		}
	}
	return of
}

// dropDelivered drops what was stored for an executor and a job and is not needed any more: layouts and, when the job
// is over or leaves the executor, its graph, unless another job there has the same.
func (m *Machine) dropDelivered(j *job, layouts []*layout, leaves bool) {
	x := m.executors[j.record.Executor]
	if x == nil || x.IsGone() {
		return // all that is stored for the executor is removed
	}
	drop := func(object string) {
		m.drops = append(m.drops, Output{Drop: &Drop{Executor: x.Name, Object: object}})
	}
	for _, l := range layouts {
		if l.delivered {
			drop(wire.LayoutObject(j.record.Spec.Name, j.record.Spec.ID, l.Epoch()))
		}
	}
	others := func(o *job) bool {
		return o != j && o.hasExecutor() && o.record.Executor == x.Name && o.record.Spec.Graph == j.record.Spec.Graph
	}
	if leaves && !slices.ContainsFunc(m.jobs, others) {
		drop(wire.GraphObject(j.record.Spec.Graph))
	}
}
