package controller

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"tensile/graph"
	"tensile/predictor/correct"
	"tensile/scheduler/planner"
	"tensile/wire"
	"tensile/wire/recording"
)

const (
	// averagingReports is of how many reports, about, a latency that was learnt is the average: enough to even out
	// noise, few enough to follow a device that becomes slower.
	averagingReports = 16
	// storeEvery is how often at most what was learnt is stored while jobs train.
	storeEvery = time.Minute
)

// learnt has the latencies of ops on a device while nothing else of ours runs there, by signature, as the reports of
// all jobs have shown.
type learnt struct {
	// lessons has at most wire.MaxLearnt entries.
	lessons map[graph.Signature]*lesson
	// reportCount is how many reports have taught something.
	reportCount int64
	// storedAt is when the latencies were stored last, since the Unix epoch.
	storedAt time.Duration
	// unstored says that something was learnt since then.
	unstored bool
}

// lesson is the latency of the ops of one signature.
type lesson struct {
	// latency is an average. It means nothing while reports is 0.
	latency time.Duration
	// reports is how many reports it is the average of.
	reports int
	// lastReport is learnt.reportCount at the newest of these.
	lastReport int64

	// sum and steps are the total time and the number of the signature's steps in the report that is being read.
	sum   time.Duration
	steps time.Duration
}

// restoreLearnt takes over what a controller before this one has learnt of a device.
func restoreLearnt(device string, stored *wire.Learnt) learnt {
	l := learnt{lessons: make(map[graph.Signature]*lesson), storedAt: -storeEvery}
	if stored == nil || stored.Device != device {
		return l
	}
	for _, op := range stored.Ops {
		l.reportCount++
		l.lessons[op.Signature] = &lesson{latency: op.Latency, reports: op.Reports, lastReport: l.reportCount}
	}
	return l
}

// learnFrom learns from the steps of an iteration of a job that trains with a layout, as if it had run alone. The first
// report of an incarnation shows a process that warms up, and teaches nothing.
func (k *learnt) learnFrom(j *job, l *layout, steps []time.Duration) {
	if j.warmIncarnation != j.record.Incarnation {
		j.warmIncarnation = j.record.Incarnation
		return
	}
	signatures := j.profile.Signatures
	if signatures == nil {
		return
	}
	k.reportCount++
	if j.lessons == nil {
		j.lessons = k.lessonsOf(signatures)
	}
	for i, s := range l.Wire.Plan.Steps {
		if s.Variant == firstVariant(j.profile, s.Op) {
			x := j.lessons[s.Op]
			x.sum, x.steps = x.sum+min(steps[i], wire.MaxLatency), x.steps+1
		}
	}
	for _, x := range j.lessons { // a lesson that several ops share is updated at the first of them
		if x.steps > 0 {
			x.add(x.sum/x.steps, k.reportCount)
		}
	}
	k.unstored = true
}

// firstVariant is the name of the variant to which a signature in a profile refers.
func firstVariant(p *planner.Profile, op graph.OpID) string {
	if p.Variants == nil {
		return ""
	}
	return p.Variants[op][0].Name
}

// add takes what the ops of a signature took in a report, on average.
func (x *lesson) add(took time.Duration, at int64) {
	part := 1 / float64(min(x.reports+1, averagingReports))
	x.latency = correct.Latency(x.latency, took, part, false)
	x.reports, x.lastReport, x.sum, x.steps = x.reports+1, at, 0, 0
}

// lessonsOf returns the lesson of each signature of a list. Where new ones make them too many, those that were reported
// longest ago are forgotten: a job that has such a lesson still teaches it, but in vain.
func (k *learnt) lessonsOf(signatures []graph.Signature) []*lesson {
	list := make([]*lesson, len(signatures))
	for i, s := range signatures {
		x := k.lessons[s]
		if x == nil {
			x = new(lesson)
			k.lessons[s] = x
		}
		x.lastReport, list[i] = k.reportCount, x
	}
	if more := len(k.lessons) - wire.MaxLearnt; more > 0 {
		for _, s := range k.oldestFirst()[:more] {
			delete(k.lessons, s)
		}
	}
	return list
}

// oldestFirst lists the signatures, those that were reported longest ago first.
func (k *learnt) oldestFirst() []graph.Signature {
	return slices.SortedFunc(maps.Keys(k.lessons), func(a, b graph.Signature) int {
		return cmp.Or(cmp.Compare(k.lessons[a].lastReport, k.lessons[b].lastReport), cmp.Compare(a, b))
	})
}

// latencies are those that were learnt, for a plan request.
func (k *learnt) latencies() map[graph.Signature]time.Duration {
	all := make(map[graph.Signature]time.Duration, len(k.lessons))
	for s, x := range k.lessons {
		if x.reports > 0 {
			all[s] = x.latency
		}
	}
	return all
}

// latencyOf is the latency of a signature, if it was learnt.
func (k *learnt) latencyOf(s graph.Signature) (latency time.Duration, ok bool) {
	x := k.lessons[s]
	if x == nil || x.reports == 0 {
		return 0, false
	}
	return x.latency, true
}

// storeLearnt has what was learnt stored.
func (d *domain) storeLearnt() {
	k := &d.learnt
	if d.registered != nil {
		k.unstored = false // the next controller learns it anew
		return
	}
	l := Learnt{Wire: wire.Learnt{Device: d.config.Device, Ops: []wire.LearntOp{}}}
	for _, s := range k.oldestFirst() {
		if x := k.lessons[s]; x.reports > 0 {
			l.Wire.Ops = append(l.Wire.Ops, wire.LearntOp{Signature: s, Latency: x.latency, Reports: x.reports})
		}
	}
	k.unstored, k.storedAt = false, d.m.now
	d.m.emit(Output{Learnt: &l})
}

// Learnt is what was learnt of a device, to be stored for later controllers.
type Learnt struct{ Wire wire.Learnt }

// MarshalJSON writes the digest of what is stored.
func (l *Learnt) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Ops    int    `json:"ops"`
		Digest string `json:"digest"`
	}{len(l.Wire.Ops), recording.Digest(l.Wire)})
}
