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

// profileKey is what a profile and working sets depend on, and what is learnt of a graph but for the differences
// between devices of one kind.
type profileKey struct {
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

// knownProfile is what is known of a kind.
type knownProfile struct {
	profile       *planner.Profile
	workingSet    graph.Bytes       // the largest working set of an op
	usedLatencies [][]time.Duration // latencies that jobs were planned for with, at most mostUsed, oldest first
}

// maxUsedLatencies is how many latencies of a kind are kept.
const maxUsedLatencies = 16

// rememberProfile takes down the profile of a graph on a device, for all of its kind. The controller's own device has
// one profile per job: what others use of it while it is made may be in it.
func (d *domain) rememberProfile(j *job, p planner.Profile) {
	if d.registered == nil {
		return
	}
	k := d.profileKeyOf(j)
	if d.m.profiles[k] == nil {
		latency, _, _ := expectedLatencies(j.graph, &p, d.lineOrEqual(), d.learnt.latencyOf)
		d.m.profiles[k] = &knownProfile{profile: &p, usedLatencies: [][]time.Duration{latency},
			workingSet: scheduler.WorkingSetOf(p.Job("", 0, j.graph), d.config.Align).Bytes}
	}
}

func (d *domain) profileKeyOf(j *job) profileKey {
	return profileKey{d.registered.Identity, d.config.Align, d.registered.Facts, j.record.Spec.Graph}
}

// forgetProfiles drops what is known of a graph that no job has any more.
func (m *Machine) forgetProfiles(digest graph.Digest) {
	maps.DeleteFunc(m.profiles, func(k profileKey, _ *knownProfile) bool { return k.graph == digest })
}

// expectationOf is what a job is planned for with on a device, where it is or where it may come, and whether that is
// known.
func (d *domain) expectationOf(j *job) (expectation, bool) {
	var e expectation
	if j.domain == d && j.profile != nil {
		e.profile, e.latency, e.slack, e.measured = j.profile, d.plannedLatencies(j), j.slack(), j.measured
		return e, true
	}
	if d.registered == nil {
		return e, false
	}
	k := d.m.profiles[d.profileKeyOf(j)]
	if k == nil {
		return e, false
	}
	e.profile = k.profile
	e.latency, e.slack, e.measured = expectedLatencies(j.graph, e.profile, d.lineOrEqual(), d.learnt.latencyOf)
	e.latency = d.canonicalLatencies(k, e.latency)
	if e.measured {
		e.slack = nil
	}
	return e, true
}

// plannedLatencies are the latencies that a job is planned for with: those of before, until they have changed by more
// than is even.
func (d *domain) plannedLatencies(j *job) []time.Duration {
	if d.registered == nil {
		return slices.Clone(j.latency)
	}
	if len(j.plannedLatency) == len(j.latency) && d.nearlyEqual(j.latency, j.plannedLatency) {
		return j.plannedLatency
	}
	if k := d.m.profiles[d.profileKeyOf(j)]; k != nil {
		return d.canonicalLatencies(k, j.latency)
	}
	return slices.Clone(j.latency)
}

// canonicalLatencies returns latencies with which jobs of a kind were planned for and that are as good as some, or else
// a copy of these, which are used from then on: so what differs little, by noise or by the jobs beside it, leaves equal
// jobs equal, and plans for them too.
func (d *domain) canonicalLatencies(k *knownProfile, latency []time.Duration) []time.Duration {
	for _, used := range k.usedLatencies {
		if d.nearlyEqual(latency, used) {
			return used
		}
	}
	if len(k.usedLatencies) == maxUsedLatencies {
		k.usedLatencies = slices.Delete(k.usedLatencies, 1, 2) // the first are of the profile
	}
	k.usedLatencies = append(k.usedLatencies, slices.Clone(latency))
	return k.usedLatencies[len(k.usedLatencies)-1]
}

// nearlyEqual reports whether latencies are as good as others: they differ by no more than half of what has plans made
// again.
func (d *domain) nearlyEqual(now, before []time.Duration) bool {
	return correct.Drift(now, before) <= d.config.Threshold/2
}
