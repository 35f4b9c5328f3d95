// Package learn keeps what reports of jobs teach about a device: how long ops take while nothing else of ours runs
// there.
package learn

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/predictor/correct"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// averagingReports is of how many reports, about, a latency that was learnt is the average: enough to even out noise,
// few enough to follow a device that becomes slower.
const averagingReports = 16

// Latencies has the latencies of ops on a device while nothing else of ours runs there, by signature, as the reports of
// all jobs have shown.
type Latencies struct {
	// lessons has at most wire.MaxLearnt entries.
	lessons map[graph.Signature]*lesson
	// reportCount is how many reports have taught something.
	reportCount int64
	// unstored says that something was learnt since Stored was called last.
	unstored bool
}

// lesson is the latency of the ops of one signature.
type lesson struct {
	// latency is an average. It means nothing while reports is 0.
	latency time.Duration
	// reports is how many reports it is the average of.
	reports int
	// lastReport is Latencies.reportCount at the newest of these.
	lastReport int64

	// sum and steps are the total time and the number of the signature's steps in the report that is being read.
	sum   time.Duration
	steps time.Duration
}

// Restore takes over what a controller before this one has learnt of a device. stored may be nil.
func Restore(device string, stored *wire.Learnt) *Latencies {
	l := &Latencies{lessons: make(map[graph.Signature]*lesson)}
	if stored == nil || stored.Device != device {
		return l
	}
	for _, op := range stored.Ops {
		l.reportCount++
		l.lessons[op.Signature] = &lesson{latency: op.Latency, reports: op.Reports, lastReport: l.reportCount}
	}
	return l
}

// Teacher is a job whose reports teach. The zero value is one of which no report has come.
type Teacher struct {
	// lessons holds, per op, the average that the job's reports improve. It is nil before the first report.
	lessons []*lesson
	// warm is the newest incarnation of which a report has come. 0: none has come.
	warm int64
}

// Hear learns from the steps of an iteration of a job with a profile that trains by a plan, as if it had run alone. The
// first report of an incarnation shows a process that warms up, and teaches nothing.
func (k *Latencies) Hear(j *Teacher, incarnation int64, profile *planner.Profile, p *plan.Plan, steps []time.Duration) {
	if j.warm != incarnation {
		j.warm = incarnation
		return
	}
	if profile.Signatures == nil {
		return
	}
	k.reportCount++
	if j.lessons == nil {
		j.lessons = k.lessonsOf(profile.Signatures)
	}
	for i, s := range p.Steps {
		if s.Variant == firstVariant(profile, s.Op) {
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
func (k *Latencies) lessonsOf(signatures []graph.Signature) []*lesson {
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
func (k *Latencies) oldestFirst() []graph.Signature {
	return slices.SortedFunc(maps.Keys(k.lessons), func(a, b graph.Signature) int {
		return cmp.Or(cmp.Compare(k.lessons[a].lastReport, k.lessons[b].lastReport), cmp.Compare(a, b))
	})
}

// AllLatencies are the latencies that were learnt, by signature.
func (k *Latencies) AllLatencies() map[graph.Signature]time.Duration {
	all := make(map[graph.Signature]time.Duration, len(k.lessons))
	for s, x := range k.lessons {
		if x.reports > 0 {
			all[s] = x.latency
		}
	}
	return all
}

// LatencyOf is the latency of a signature, if it was learnt.
func (k *Latencies) LatencyOf(s graph.Signature) (latency time.Duration, ok bool) {
	x := k.lessons[s]
	if x == nil || x.reports == 0 {
		return 0, false
	}
	return x.latency, true
}

// HasNews reports whether something was learnt since Stored was called last.
func (k *Latencies) HasNews() bool { return k.unstored }

// Stored is what was learnt of a device in the form in which it is stored, those first that were reported longest ago.
func (k *Latencies) Stored(device string) wire.Learnt {
	k.unstored = false
	l := wire.Learnt{Device: device, Ops: []wire.LearntOp{}}
	for _, s := range k.oldestFirst() {
		if x := k.lessons[s]; x.reports > 0 {
			l.Ops = append(l.Ops, wire.LearntOp{Signature: s, Latency: x.latency, Reports: x.reports})
		}
	}
	return l
}
