package tensile

import (
	"cmp"
	"slices"

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
	kept    []graph.Bytes // what the members keep of their bases, in parts, by the first reach; nil: there was none
	best    *trial
	missed  bool
}

// member is a group of equal jobs.
type member struct {
	search *hybrid
	copies graph.Bytes
	base   graph.Bytes // without a plan
}

func newTogether(s *draft.Session, o Options, order func(job int) []graph.OpID, tight bool) *together {
	t := &together{s: s}
	for i := range s.Groups() {
		m := member{search: newHybrid(s, o, order, []int{i})}
		m.search.tight = tight
		d := s.Group(i, m.search.base[0], o.style())
		m.copies, m.base = d.Copies(), d.Base()
		t.members = append(t.members, m)
	}
	return t
}

func (t *together) bestTrial() *trial { return t.best }

func (t *together) hasMissed() bool { return t.missed }

// parts is how finely it is searched how much of their bases jobs keep.
const parts = 16

// reach looks for the division of the target with which the jobs lose least. All keep equal parts of their bases at
// first; then those that lose least by it give up more. Divisions for later targets, which are close to the first, are
// the same, unless that misses the target: then it is looked for anew.
func (t *together) reach(target graph.Bytes) {
	t.best = nil
	var best *divided
	if t.kept != nil {
		best = t.try(t.kept, target)
		if t.best = best.trial; best.peak <= target {
			return
		}
	}
	for part := graph.Bytes(parts); part >= 0; part -= parts / 4 {
		next := t.try(slices.Repeat([]graph.Bytes{part}, len(t.members)), target)
		if best == nil || next.better(best, target) {
			best = next
		}
		t.best = best.trial
		if best.peak <= target && best.lost <= 0 {
			break
		}
	}
	for step := graph.Bytes(parts / 8); step > 0 && !(best.peak <= target && best.lost <= 0); step /= 2 {
		best = t.refine(best, step, target)
		t.best = best.trial
	}
	t.kept = best.kept
}

// divided is what came of a division of a target.
type divided struct {
	*trial
	kept []graph.Bytes // per member
	rest graph.Bytes
	each []int64 // per member: what it loses
}

// better reports whether d is to be preferred: it reaches the target and loses less, or it comes closer to it.
func (d *divided) better(other *divided, target graph.Bytes) bool {
	if d.peak <= target && other.peak <= target {
		return d.lost < other.lost
	}
	return d.peak < other.peak
}

// try plans with so many parts of their bases for the members.
func (t *together) try(kept []graph.Bytes, target graph.Bytes) *divided {
	d := &divided{trial: &trial{}, kept: kept, rest: target, each: make([]int64, len(t.members))}
	for i, m := range t.members {
		d.rest -= m.copies * m.part(kept[i])
	}
	d.rest = max(d.rest, 1)
	for i := range t.members {
		found := t.plan(i, kept[i], d.rest)
		d.jobs = append(d.jobs, found.jobs[0])
		d.each[i] = found.lost
		d.lost += found.lost
	}
	d.peak = draft.LeastTogether(d.jobs)
	return d
}

// plan plans a member with so many parts of its base, when others need a rest above theirs.
func (t *together) plan(i int, kept, rest graph.Bytes) *trial {
	m := &t.members[i]
	m.search.beside = rest
	m.search.reach(m.copies * (m.part(kept) + rest))
	t.missed = t.missed || m.search.missed
	return m.search.best
}

// part is so many parts of the base.
func (m *member) part(kept graph.Bytes) graph.Bytes { return m.base * kept / parts }

// refine has members give up a step of their bases, one after the other, for a larger rest: those first that lose least
// for it. It ends where that is no better; then one may keep a step more.
func (t *together) refine(best *divided, step, target graph.Bytes) *divided {
	type offer struct {
		member int
		cost   float64 // nanoseconds a byte
	}
	var offers []offer
	for i, m := range t.members {
		given := m.copies * (m.part(best.kept[i]) - m.part(best.kept[i]-step))
		if best.kept[i] >= step && given > target/256 {
			lost := t.plan(i, best.kept[i]-step, best.rest).lost - best.each[i]
			offers = append(offers, offer{i, float64(lost) / float64(given)})
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(a.cost, b.cost) })
	kept := slices.Clone(best.kept)
	for _, o := range offers {
		kept[o.member] -= step
		next := t.try(slices.Clone(kept), target)
		if !next.better(best, target) {
			break
		}
		best = next
	}
	return best
}
