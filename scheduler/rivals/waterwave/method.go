package waterwave

import (
	"fmt"
	"slices"
	"time"

	"tensile/device/lease"
)

// Options are the settings of a method. The zero value is the recommended one.
type Options struct {
	// Split is by how many pages a node group grows or shrinks (the paper's split_size). 0: 3/16 of the capacity, the
	// paper's 6 of 32 GB, with which most networks had their largest batch (section 5.4).
	Split int
}

// Method is a [lease.Method].
type Method struct {
	options  Options
	capacity int
	jobs     []*job // by their Join
	fresh    bool   // nothing was issued in this round
	began    time.Duration
	took     time.Duration // by the newest round that all jobs have ended
	expected time.Duration // of this round
}

// job is one that has joined.
type job struct {
	*lease.Join
	body, snapshot nodeGroups
	pairs          []int // of each node group the pair that it is in; nil: the job waits for the next round
	issued         int   // so many of its node groups are issued in this round
	granted        int   // so many groups of its iteration are granted; 0: it is within none
	inSnapshot     bool  // it is that of a snapshot
	asking         bool
	heard          time.Duration
}

// New returns a method that knows of no jobs.
func New(o Options) *Method { return &Method{options: o, fresh: true} }

// Tell implements [lease.Method].
func (m *Method) Tell(now time.Duration, n lease.Note) {
	switch {
	case n.Joined != nil:
		m.jobs = append(m.jobs, &job{Join: n.Joined, heard: now})
		if m.fresh {
			m.begin()
		}
	case n.Rejoined != nil:
		j := &job{Join: &n.Rejoined.Join, heard: now}
		if n.Rejoined.Seniority > 0 {
			j.granted, j.inSnapshot = n.Rejoined.Group+1, n.Rejoined.InSnapshot
		}
		m.jobs = append(m.jobs, j)
		m.begin()
	case n.Asked != nil:
		j := m.jobNamed(n.Asked.Job)
		j.asking, j.heard = true, now
	case n.Granted != nil:
		j := m.jobNamed(n.Granted.Job)
		j.asking, j.heard = false, now
		m.granted(now, j, n.Granted)
	case n.Passed != nil:
		m.jobNamed(n.Passed.Job).heard = now
	case n.Left != nil:
		m.jobs = slices.DeleteFunc(m.jobs, func(j *job) bool { return j.Job == n.Left.Job })
		m.fresh = m.fresh || len(m.jobs) == 0
	case n.Capacity != nil:
		m.capacity = n.Capacity.Pages
		if m.fresh {
			m.begin()
		}
	}
	if m.roundEnded() {
		m.took = now - m.began
		m.begin()
	}
}

func (m *Method) jobNamed(name lease.Job) *job {
	for _, j := range m.jobs {
		if j.Job == name {
			return j
		}
	}
	panic(fmt.Sprintf("pairs: %s has not joined", name))
}

// granted counts what was issued. If the lease has granted the next iteration of a job that has issued all of this
// round, others were not waited for: the next round begins, and they go on in it where they are.
func (m *Method) granted(now time.Duration, j *job, w *lease.Want) {
	if w.First && (j.pairs == nil || j.issued > 0) {
		m.begin()
	}
	if m.fresh {
		m.fresh, m.began = false, now
	}
	j.granted, j.inSnapshot = w.Group+1, w.Snapshot
	j.issued = j.issuedPairs()
	if w.Last {
		j.granted, j.issued = 0, len(j.pairs)
	}
}

// issuedPairs returns how many node groups of an iteration that is not over are issued with the groups that are
// granted.
func (j *job) issuedPairs() int {
	return min(j.section(j.inSnapshot).nodeGroupOf(j.granted), len(j.pairs)-1)
}

// section returns the node groups of a section.
func (j *job) section(snapshot bool) *nodeGroups {
	if snapshot {
		return &j.snapshot
	}
	return &j.body
}

// roundEnded reports whether no job has anything more to issue in the round.
func (m *Method) roundEnded() bool {
	return len(m.jobs) > 0 && !slices.ContainsFunc(m.jobs, func(j *job) bool { return j.issued < len(j.pairs) })
}

// begin begins a round of all jobs. One that is within an iteration goes on with it.
func (m *Method) begin() {
	split := m.options.Split
	if split == 0 {
		split = max(1, m.capacity*3/16)
	}
	shapes := make([]Shape, len(m.jobs))
	bases := 0
	for i, j := range m.jobs {
		j.body, j.snapshot = cut(j.Body, j.Base, split), cut(j.Snapshot, j.Base, split)
		j.pairs = make([]int, len(j.body.ends))
		j.issued = j.issuedPairs()
		shapes[i] = Shape{len(j.body.ends), j.body.grow, j.Peak - j.Base}
		bases += j.Base
	}
	m.fresh, m.expected = true, 0
	for k, pair := range Pairs(shapes, m.capacity-bases, split) {
		var longest time.Duration
		for _, g := range pair {
			if g != None {
				j := m.jobs[g.Job]
				j.pairs[g.Group] = k
				longest = max(longest, j.body.times[g.Group])
			}
		}
		m.expected = min(m.expected+longest, patient)
	}
}

// When implements [lease.Method].
func (m *Method) When(now time.Duration, w *lease.Want) time.Duration {
	j := m.jobNamed(w.Job)
	// A job that has issued all of this round, or came within it, waits for its end.
	pair := 1 << 62
	if j.pairs != nil && !(w.First && j.issued > 0) {
		pair = j.pairs[min(j.section(w.Snapshot).nodeGroupOf(w.Group), len(j.pairs)-1)]
	}
	at := now
	for _, other := range m.jobs {
		if other.issued < len(other.pairs) && other.pairs[other.issued] < pair {
			at = max(at, m.missed(other))
		}
	}
	return at
}

// The time after which a job that does not ask is missed is from impatient to patient.
const (
	impatient = 10 * time.Millisecond
	patient   = 10 * time.Second
)

// missed returns from when on the barrier is open without a job: it does not ask, and was not heard of for twice as
// long as a round takes. One that asks waits for the lease.
func (m *Method) missed(j *job) time.Duration {
	if j.asking {
		return lease.Never
	}
	round := max(m.took, m.expected)
	if round == 0 { // not known
		round = patient
	}
	return j.heard + min(max(2*round, impatient), patient)
}
