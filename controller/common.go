package controller

import (
	"slices"

	"tensile/wire"
)

// Which checkpoints all siblings have, from which they go on together.

// takeByTime has siblings take a checkpoint when it is time for one, and they have passed the one before: if that was
// not taken by all, some heard of it too late or could not write it.
func (m *Machine) takeByTime() {
	for _, j := range m.jobs {
		every := j.record.Spec.Checkpoint.Every
		if every == 0 || !j.replica() || j.record.Spec.Replica.Number > 0 || m.now-j.sibling.taken < every {
			continue
		}
		g := m.siblings(j)
		idle := func(o *job) bool { return o.record.State != wire.JobRunning || o.sibling.ended != nil }
		if j.sibling.taken == 0 || slices.ContainsFunc(g, idle) {
			if j.record.State == wire.JobRunning && j.sibling.taken == 0 {
				j.sibling.taken = m.now
			}
			continue
		}
		comes := func(o *job) bool { return max(o.sibling.issued, o.record.Iteration) <= j.record.At }
		if j.record.At > 0 && slices.ContainsFunc(g, comes) {
			continue // they take it yet, however long an iteration is
		}
		j.sibling.taken = m.now
		m.chooseAt(g, j.record.At > 0)
	}
}

// run are checkpoints that a replica took one after the other without a gap, and has: after from iterations, to
// iterations, and every Interval.Iterations between them.
type run struct{ from, to int }

// has reports whether a replica has the checkpoint after so many iterations, as far as its executor has said.
func (j *job) has(iteration int) bool {
	every := j.record.Spec.Checkpoint.Iterations
	return slices.ContainsFunc(j.sibling.kept, func(r run) bool {
		return r.to == iteration || r.from <= iteration && iteration < r.to && every > 0 && (r.to-iteration)%every == 0
	})
}

// commonOf is after how many iterations the newest checkpoint was taken that all siblings have; 0: there is none.
func commonOf(g []*job) int {
	common := g[0].record.From
	var all []run
	for _, j := range g {
		common = max(common, j.record.From)
		all = append(all, j.sibling.kept...)
	}
	for _, r := range all { // the newest is the last of a run
		lacks := func(j *job) bool { return !j.has(r.to) }
		if r.to > common && !slices.ContainsFunc(g, lacks) {
			common = r.to
		}
	}
	return common
}

// keeps takes down which checkpoints a replica has. One that all have is a progress, and older ones are of no use.
func (m *Machine) keeps(j *job, s *wire.JobStatus) {
	c, k := s.Checkpoint, &j.sibling
	if c == nil || c.Iteration <= j.record.From || c.Iteration > j.record.Spec.Iterations {
		return
	}
	r := run{c.Iteration, c.Iteration}
	if j.record.Spec.Checkpoint.Iterations > 0 && s.Since > 0 {
		r.from = min(s.Since, r.to)
	}
	if slices.Contains(k.kept, r) {
		return
	}
	k.kept = append(slices.DeleteFunc(k.kept, func(o run) bool { return r.from <= o.from && o.to <= r.to }), r)
	g := m.siblings(j)
	common := commonOf(g)
	if common == j.record.From {
		return
	}
	for _, o := range g {
		o.record.From, o.record.Restarts = common, 0
		o.sibling.kept = slices.DeleteFunc(o.sibling.kept, func(r run) bool { return r.to <= common })
		if o.goesOn() && o.record.At > 0 && common >= o.record.At {
			o.record.At, o.sibling.margin = 0, 0 // it was to be taken
		}
	}
	m.changed = true
}
