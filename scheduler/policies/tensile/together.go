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
	plain  *draft.Draft // in which nothing is decided
	// base is that of the plain draft, in bytes, and least what is left of it when all that may leave has left.
	base, least graph.Bytes
}

func newTogether(s *draft.Session, o Options, order func(job int) []graph.OpID, tight bool) *together {
	t := &together{s: s}
	for i := range s.Groups() {
		m := member{search: newHybrid(s, o, order, []int{i})}
		m.search.tight = tight
		m.plain = s.Group(i, m.search.base[0], o.style())
		m.base = m.plain.Base()
		t.members = append(t.members, m)
	}
	return t
}

func (t *together) bestTrial() *trial { return t.best }

func (t *together) hasMissed() bool { return t.missed }

// parts is how finely it is searched how much jobs keep of their bases.
const parts = 16

// reach looks for the division of the target with which the jobs lose least. All keep equal parts of their bases at
// first; then those that lose least by it give up more. Divisions for later targets, which are close to the first, are
// the same, unless that misses the target: then it is looked for anew.
//
// What loses more than the best division so far is not planned to the end: see hybrid.most.
func (t *together) reach(target graph.Bytes) {
	t.best = nil
	for i := range t.members {
		m := &t.members[i]
		m.least = m.plain.LeastBase(target)
	}
	var best *divided
	if t.kept != nil {
		best = t.try(t.kept, target, unlimited)
		if t.best = best.trial; best.peak <= target {
			t.missed = t.missed || best.missed
			return
		}
	}
	for part := graph.Bytes(parts); part >= 0; part -= parts / 4 {
		next := t.try(slices.Repeat([]graph.Bytes{part}, len(t.members)), target, best.bar(target))
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
	t.kept, t.missed = best.kept, t.missed || best.missed
}

// divided is what came of a division of a target.
type divided struct {
	*trial
	kept   []graph.Bytes // per member
	rest   graph.Bytes
	each   []int64 // per member: what it loses
	missed bool    // a member was above its part of the target with all that recomputation can do
}

// better reports whether d is to be preferred: it reaches the target and loses less, or it comes closer to it.
func (d *divided) better(other *divided, target graph.Bytes) bool {
	if d.peak <= target && other.peak <= target {
		return d.lost < other.lost
	}
	return d.peak < other.peak
}

// bar is what another division may lose that is to be better than d; nil: no division is known yet.
func (d *divided) bar(target graph.Bytes) int64 {
	if d == nil || d.peak > target {
		return unlimited
	}
	return d.lost - 1
}

// try plans with so many parts of their bases for the members, which may lose so much together.
func (t *together) try(kept []graph.Bytes, target graph.Bytes, most int64) *divided {
	d := &divided{trial: &trial{}, kept: kept, rest: target, each: make([]int64, len(t.members))}
	for i, m := range t.members {
		d.rest -= m.plain.Copies() * m.part(kept[i])
	}
	d.rest = max(d.rest, 1)
	for i := range t.members {
		found, missed := t.plan(i, kept[i], d.rest, max(0, most-d.lost))
		d.jobs = append(d.jobs, found.jobs[0])
		d.each[i] = found.lost
		d.lost += found.lost
		d.missed = d.missed || missed
	}
	d.peak = draft.LeastTogether(d.jobs)
	return d
}

// plan plans a member with so many parts of its base, when others need a rest above theirs and it may lose so much. It
// also reports whether recomputation alone is not enough for that.
func (t *together) plan(i int, kept, rest graph.Bytes, most int64) (best *trial, missed bool) {
	m := &t.members[i]
	m.search.beside, m.search.most, m.search.missed = rest, most, false
	m.search.reach(m.plain.Copies() * (m.part(kept) + rest))
	return m.search.best, m.search.missed
}

// part is so many parts of the base, or what is left of it at least.
func (m *member) part(kept graph.Bytes) graph.Bytes { return max(m.least, m.base*kept/parts) }

// refine has members give up a step of their bases, one after the other, for a larger rest: those first that lose least
// for it. It ends where that is no better; then one may keep a step more.
func (t *together) refine(best *divided, step, target graph.Bytes) *divided {
	type offer struct {
		member int
		cost   float64 // nanoseconds a byte
	}
	var offers []offer
	for i, m := range t.members {
		given := m.plain.Copies() * (m.part(best.kept[i]) - m.part(best.kept[i]-step))
		if best.kept[i] < step || given <= target/256 {
			continue
		}
		var lost int64
		if len(t.members) > 1 { // or else there is nothing to choose
			found, _ := t.plan(i, best.kept[i]-step, best.rest, unlimited)
			lost = found.lost - best.each[i]
		}
		offers = append(offers, offer{i, float64(lost) / float64(given)})
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(a.cost, b.cost) })
	kept := slices.Clone(best.kept)
	for _, o := range offers {
		kept[o.member] -= step
		next := t.try(slices.Clone(kept), target, best.bar(target))
		if !next.better(best, target) {
			break
		}
		best = next
	}
	return best
}
