package controller

import (
	"maps"
	"slices"
	"time"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/predictor/correct"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// profileKey is what a profile and working sets depend on, and what is learnt of a graph. Devices of equal facts share
// it.
type profileKey struct {
	identity string
	align    graph.Bytes
	facts    cost.Facts
	graph    graph.Digest
}

// expectation is what plans for a job on a device reckon with.
type expectation struct {
	profile *planner.Profile
	// latency holds, per op, how long it takes alone. Nobody may change it.
	latency []time.Duration
	// slack holds, per op, by how much latency may be off. It may be nil.
	slack []time.Duration
	// measured says that latency follows measurements.
	measured bool
}

// knownProfile is what is known of a graph on devices of one kind.
type knownProfile struct {
	profile *planner.Profile
	// workingSet is the largest working set of an op, in bytes.
	workingSet graph.Bytes
	// usedLatencies are those that jobs were planned for with, oldest first, at most maxUsedLatencies.
	usedLatencies [][]time.Duration
}

// maxUsedLatencies is how many sets of latencies are kept per knownProfile.
const maxUsedLatencies = 16

// rememberProfile keeps the profile of a graph on a device for all jobs and devices of its key. The controller's own
// device has one profile per job: what other programs used of it while the profile was made may be in it.
func (d *domain) rememberProfile(j *job, p planner.Profile) {
	if d.registered == nil {
		return
	}
	k := d.profileKeyOf(j)
	if d.m.profiles[k] == nil {
		latency, _, _ := plans.ExpectedLatencies(j.graph, &p, d.lineOrEqual(), d.learnt.LatencyOf)
		d.m.profiles[k] = &knownProfile{profile: &p, usedLatencies: [][]time.Duration{latency},
			workingSet: scheduler.WorkingSetOf(p.Job("", 0, j.graph), d.config.Align).Bytes}
	}
}

// profileKeyOf is the key of a job's graph on the device.
func (d *domain) profileKeyOf(j *job) profileKey {
	return profileKey{d.registered.Identity, d.config.Align, d.registered.Facts, j.record.Spec.Graph}
}

// forgetProfiles drops what is known of a graph that no job has any more.
func (m *Machine) forgetProfiles(digest graph.Digest) {
	maps.DeleteFunc(m.profiles, func(k profileKey, _ *knownProfile) bool { return k.graph == digest })
}

// expectationOf is what plans for a job on the device reckon with, whether the job is there or may come, and whether
// that is known.
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
	e.latency, e.slack, e.measured = plans.ExpectedLatencies(j.graph, e.profile, d.lineOrEqual(), d.learnt.LatencyOf)
	e.latency = d.canonicalLatencies(k, e.latency)
	if e.measured {
		e.slack = nil
	}
	return e, true
}

// plannedLatencies are the latencies that a job is planned for with: those of the last request, until they have changed
// by more than nearlyEqual allows.
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

// canonicalLatencies returns latencies that jobs of the same profile were planned for with and that are nearly equal to
// some, or else a copy of these, which is used from then on. So small differences, by noise or by the jobs beside,
// leave equal jobs equal, and their plans too.
func (d *domain) canonicalLatencies(k *knownProfile, latency []time.Duration) []time.Duration {
	for _, used := range k.usedLatencies {
		if d.nearlyEqual(latency, used) {
			return used
		}
	}
	if len(k.usedLatencies) == maxUsedLatencies {
		k.usedLatencies = slices.Delete(k.usedLatencies, 1, 2) // those at index 0 follow from the profile, and stay
	}
	k.usedLatencies = append(k.usedLatencies, slices.Clone(latency))
	return k.usedLatencies[len(k.usedLatencies)-1]
}

// nearlyEqual reports whether latencies differ by no more than half of the drift that has plans made again.
func (d *domain) nearlyEqual(now, before []time.Duration) bool {
	return correct.Drift(now, before) <= d.config.Threshold/2
}
