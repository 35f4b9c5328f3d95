package tensile

import (
	"tensile/graph"
	"tensile/scheduler/draft"
)

// together plans jobs that share memory by gates. What they need is the sum of their bases and the largest rest, of a
// peak above its base. So a job's plan depends on two numbers alone: what it may keep between two iterations, and what
// one other may need above its base meanwhile, the rest. Its peak may be up to their sum. Each group of equal jobs is
// planned on its own for these; how a target is divided into bases and a rest is searched for.
type together struct {
	s       *draft.Session
	members []member
	best    *trial
	missed  bool
}

// member is a group of equal jobs.
type member struct {
	*hybrid
	copies graph.Bytes
	base   graph.Bytes // without a plan
	peak   graph.Bytes // without a plan
}

func newTogether(s *draft.Session, o Options, order func(job int) []graph.OpID, tight bool) *together {
	t := &together{s: s}
	for i := range s.Groups() {
		m := member{hybrid: newHybrid(s, o, order, []int{i})}
		m.tight = tight
		d := s.Group(i, m.hybrid.base[0], o.style())
		m.copies, m.base = d.Copies(), d.Base()
		_, m.peak = d.Peak()
		t.members = append(t.members, m)
	}
	return t
}

func (t *together) found() *trial { return t.best }

func (t *together) hasMissed() bool { return t.missed }

// parts is how finely it is searched how much of their bases jobs keep.
const parts = 4

// reach looks for the division of the target with which the jobs lose least.
func (t *together) reach(target graph.Bytes) {
	t.best = nil
	for part := graph.Bytes(parts); part >= 0; part-- {
		rest := target
		for _, m := range t.members {
			rest -= m.copies * (m.base * part / parts)
		}
		if rest <= 0 {
			continue
		}
		jobs, lost := make([]*draft.Draft, len(t.members)), int64(0)
		for i := range t.members {
			m := &t.members[i]
			found := m.plan(m.base*part/parts, rest)
			jobs[i], lost = found.jobs[0], lost+found.lost
			t.missed = t.missed || m.missed
		}
		t.keep(&trial{jobs: jobs, peak: draft.LeastTogether(jobs), lost: lost}, target)
		if t.best.peak <= target && t.best.lost <= 0 {
			break
		}
	}
}

// keep remembers what reaches the target and loses least, or else what is lowest.
func (t *together) keep(next *trial, target graph.Bytes) {
	switch b := t.best; {
	case b == nil, next.peak <= target && (b.peak > target || next.lost < b.lost),
		b.peak > target && next.peak < b.peak:
		t.best = next
	}
}

// plan plans the group with no more than a base between two iterations, when others need a rest above theirs.
func (m *member) plan(base, rest graph.Bytes) *trial {
	m.beside = rest
	m.reach(m.copies * (base + rest))
	return m.best
}
