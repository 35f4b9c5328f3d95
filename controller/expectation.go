package controller

import (
	"maps"
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/predictor/correct"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// kind is what a profile and working sets depend on, and what is learnt of a graph but for the differences between
// devices of one kind.
type kind struct {
	identity string
	align    graph.Bytes
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

// known is what is known of a kind.
type known struct {
	profile *planner.Profile
	need    graph.Bytes       // the largest working set of an op
	used    [][]time.Duration // latencies that jobs were planned for with, at most mostUsed, oldest first
}

// mostUsed is how many latencies of a kind are kept.
const mostUsed = 16

// know takes down the profile of a graph on a device, for all of its kind. The controller's own device has one profile
// per job: what others use of it while it is made may be in it.
func (d *domain) know(j *job, p planner.Profile) {
	if d.brought == nil {
		return
	}
	k := d.kind(j)
	if d.m.kinds[k] == nil {
		latency, _, _ := expected(j.graph, &p, d.corrects(), d.learnt.find)
		d.m.kinds[k] = &known{profile: &p, used: [][]time.Duration{latency},
			need: scheduler.WorkingSetOf(p.Job("", 0, j.graph), d.config.Align).Bytes}
	}
}

func (d *domain) kind(j *job) kind {
	return kind{d.brought.Identity, d.config.Align, d.brought.Facts, j.record.Spec.Graph}
}

// forgetKinds drops what is known of a graph that no job has any more.
func (m *Machine) forgetKinds(digest graph.Digest) {
	maps.DeleteFunc(m.kinds, func(k kind, _ *known) bool { return k.graph == digest })
}

// expectation is what a job is planned for with on a device, where it is or where it may come, and whether that is
// known.
func (d *domain) expectation(j *job) (expectation, bool) {
	var e expectation
	if j.domain == d && j.profile != nil {
		e.profile, e.latency, e.slack, e.measured = j.profile, d.steady(j), j.slack(), j.learnt
		return e, true
	}
	if d.brought == nil {
		return e, false
	}
	k := d.m.kinds[d.kind(j)]
	if k == nil {
		return e, false
	}
	e.profile = k.profile
	e.latency, e.slack, e.measured = expected(j.graph, e.profile, d.corrects(), d.learnt.find)
	e.latency = d.usual(k, e.latency)
	if e.measured {
		e.slack = nil
	}
	return e, true
}

// steady are the latencies that a job is planned for with: those of before, until they have changed by more than is
// even.
func (d *domain) steady(j *job) []time.Duration {
	if d.brought == nil {
		return slices.Clone(j.latency)
	}
	if len(j.assumed) == len(j.latency) && d.even(j.latency, j.assumed) {
		return j.assumed
	}
	if k := d.m.kinds[d.kind(j)]; k != nil {
		return d.usual(k, j.latency)
	}
	return slices.Clone(j.latency)
}

// usual returns latencies with which jobs of a kind were planned for and that are as good as some, or else a copy of
// these, which are used from then on: so what differs little, by noise or by the jobs beside it, leaves equal jobs
// equal, and plans for them too.
func (d *domain) usual(k *known, latency []time.Duration) []time.Duration {
	for _, used := range k.used {
		if d.even(latency, used) {
			return used
		}
	}
	if len(k.used) == mostUsed {
		k.used = slices.Delete(k.used, 1, 2) // the first are of the profile
	}
	k.used = append(k.used, slices.Clone(latency))
	return k.used[len(k.used)-1]
}

// even reports whether latencies are as good as others: they differ by no more than half of what has plans made again.
func (d *domain) even(now, before []time.Duration) bool {
	return correct.Drift(now, before) <= d.config.Threshold/2
}
