package controller

import (
	"maps"
	"slices"
	"time"

	"tensile/cost"
	"tensile/graph"
	"tensile/planner"
	"tensile/predictor/correct"
)

// kind is what a profile depends on, and what is learnt of a graph but for the differences between devices of one kind.
type kind struct {
	identity string
	facts    cost.Facts
	graph    graph.Digest
}

// expectation is what a job is planned for with on a device.
type expectation struct {
	profile  *planner.Profile
	latency  []time.Duration // per op, as if it ran alone; nobody changes it
	slack    []time.Duration
	measured bool
}

// know takes down the profile of a graph on a device, for all of its kind. The controller's own device has one profile
// per job: what others use of it while it is made may be in it.
func (d *domain) know(j *job, p planner.Profile) {
	if d.brought == nil {
		return
	}
	k := d.kind(j)
	if d.m.kinds[k] == nil {
		latency, slack, measured := expected(j.graph, &p, d.line, d.learnt.find)
		d.m.kinds[k] = &expectation{profile: &p, latency: latency, slack: slack, measured: measured}
	}
}

func (d *domain) kind(j *job) kind {
	return kind{d.brought.Identity, d.brought.Facts, j.record.Spec.Graph}
}

// forgetKinds drops what is known of a graph that no job has any more.
func (m *Machine) forgetKinds(digest graph.Digest) {
	maps.DeleteFunc(m.kinds, func(k kind, _ *expectation) bool { return k.graph == digest })
}

// expectation is what a job is planned for with on a device, where it is or where it may come, and whether that is
// known. What was learnt since it was last used counts from when it differs by more than half of the threshold of
// drift: so small differences between devices, which noise makes, leave equal jobs equal, and plans for them too.
func (d *domain) expectation(j *job) (expectation, bool) {
	var e expectation
	if j.domain == d && j.profile != nil {
		e.profile, e.latency, e.slack, e.measured = j.profile, d.steady(j), j.slack(), j.learnt
		return e, true
	}
	if d.brought == nil {
		return e, false
	}
	known := d.m.kinds[d.kind(j)]
	if known == nil {
		return e, false
	}
	e.profile = known.profile
	e.latency, e.slack, e.measured = expected(j.graph, e.profile, d.line, d.learnt.find)
	if d.even(e.latency, known.latency) {
		e.latency = known.latency
	} else {
		known.latency = e.latency
	}
	if e.measured {
		e.slack = nil
	}
	return e, true
}

// steady are the latencies that a job is planned for with: those of before, until they have changed by more than is
// even.
func (d *domain) steady(j *job) []time.Duration {
	if d.brought != nil && len(j.assumed) == len(j.latency) && d.even(j.latency, j.assumed) {
		return j.assumed
	}
	return slices.Clone(j.latency)
}

// even reports whether latencies are as good as others: they have changed by no more than half of what has plans made
// again.
func (d *domain) even(now, before []time.Duration) bool {
	return correct.Drift(now, before) <= d.config.Threshold/2
}
