package controller

import (
	"slices"

	"tensile/wire"
)

// Which checkpoints all siblings have, from which they go on together.

// takeByTime has siblings take a checkpoint when it is time for one.
func (m *Machine) takeByTime() {
	for _, j := range m.jobs {
		every := j.record.Spec.Checkpoint.Every
		if every == 0 || !j.replica() || j.record.Spec.Replica.Number > 0 || m.now-j.sibling.taken < every {
			continue
		}
		g := m.siblings(j)
		idle := func(o *job) bool { return o.record.State != wire.Training || o.sibling.ended != nil }
		if j.sibling.taken == 0 || slices.ContainsFunc(g, idle) {
			if j.record.State == wire.Training && j.sibling.taken == 0 {
				j.sibling.taken = m.now
			}
			continue
		}
		j.sibling.taken = m.now
		m.chooseAt(g)
	}
}

// has reports whether a replica has the checkpoint after so many iterations, as far as it was heard.
func (j *job) has(iteration int) bool {
	every := j.record.Spec.Checkpoint.Iterations
	kept := j.sibling.kept
	return slices.Contains(kept, iteration) || // they are taken at all multiples
		every > 0 && iteration%every == 0 && len(kept) > 0 && iteration <= slices.Max(kept)
}

// commonOf is after how many iterations the newest checkpoint was taken that all siblings have; 0: there is none.
func commonOf(g []*job) int {
	common := g[0].record.From
	var all []int
	for _, j := range g {
		common = max(common, j.record.From)
		all = append(all, j.sibling.kept...)
	}
	for _, iteration := range all {
		lacks := func(j *job) bool { return !j.has(iteration) }
		if iteration > common && !slices.ContainsFunc(g, lacks) {
			common = iteration
		}
	}
	return common
}

// keeps takes down that a replica has a checkpoint. One that all have is a progress, and older ones are of no use.
func (m *Machine) keeps(j *job, c *wire.Checkpoint) {
	if c == nil || c.Iteration <= j.record.From || c.Iteration > j.record.Spec.Iterations ||
		slices.Contains(j.sibling.kept, c.Iteration) {
		return
	}
	j.sibling.kept = append(j.sibling.kept, c.Iteration)
	g := m.siblings(j)
	common := commonOf(g)
	if common == j.record.From {
		return
	}
	for _, o := range g {
		o.record.From, o.record.Restarts = common, 0
		o.sibling.kept = slices.DeleteFunc(o.sibling.kept, func(i int) bool { return i <= common })
		if o.goesOn() && o.record.At > 0 && common >= o.record.At {
			o.record.At, o.sibling.margin = 0, 0 // it was to be taken
		}
	}
	m.changed = true
}
