package controller

import (
	"slices"

	"tensile/wire"
)

// Which checkpoints all replicas of a gang have: from the newest of these they go on together.

// orderTimedCheckpoints has gangs take a checkpoint when it is time for one and they have passed the one before. If not
// all replicas have taken that, some heard of it too late or could not write it.
func (m *Machine) orderTimedCheckpoints() {
	for _, j := range m.jobs {
		every := j.record.Spec.Checkpoint.Every
		if every == 0 || !j.isReplica() || j.record.Spec.Replica.Number > 0 ||
			m.now-j.replica.checkpointOrdered < every {
			continue
		}
		g := m.gang(j)
		idle := func(o *job) bool { return o.record.State != wire.Training || o.replica.finalStatus != nil }
		if j.replica.checkpointOrdered == 0 || slices.ContainsFunc(g, idle) {
			if j.record.State == wire.Training && j.replica.checkpointOrdered == 0 {
				j.replica.checkpointOrdered = m.now
			}
			continue
		}
		comes := func(o *job) bool { return max(o.replica.iterationsBegun, o.record.Iteration) <= j.record.At }
		if j.record.At > 0 && slices.ContainsFunc(g, comes) {
			continue // the replicas are still to take it, however long an iteration is
		}
		j.replica.checkpointOrdered = m.now
		m.chooseRestPoint(g, j.record.At > 0)
	}
}

// checkpointRun is a range of checkpoints that a replica has taken one after the other, and still has: the first after
// from iterations, the last after to iterations, and one every Interval.Iterations between them.
type checkpointRun struct{ from, to int }

// hasCheckpoint reports whether a replica has the checkpoint after so many iterations, as far as its executor has said.
func (j *job) hasCheckpoint(iteration int) bool {
	every := j.record.Spec.Checkpoint.Iterations
	return slices.ContainsFunc(j.replica.checkpoints, func(r checkpointRun) bool {
		return r.to == iteration || r.from <= iteration && iteration < r.to && every > 0 && (r.to-iteration)%every == 0
	})
}

// newestCommonCheckpoint is after how many iterations the newest checkpoint was taken that all replicas of a gang have.
// 0: there is none.
func newestCommonCheckpoint(g []*job) int {
	common := g[0].record.From
	var all []checkpointRun
	for _, j := range g {
		common = max(common, j.record.From)
		all = append(all, j.replica.checkpoints...)
	}
	for _, r := range all { // the newest of a run is its last
		lacks := func(j *job) bool { return !j.hasCheckpoint(r.to) }
		if r.to > common && !slices.ContainsFunc(g, lacks) {
			common = r.to
		}
	}
	return common
}

// recordKeptCheckpoint records which checkpoints a replica has. A new one that all replicas have is a progress, and
// older ones are of no use.
func (m *Machine) recordKeptCheckpoint(j *job, s *wire.JobStatus) {
	c, k := s.Checkpoint, &j.replica
	if c == nil || c.Iteration <= j.record.From || c.Iteration > j.record.Spec.Iterations {
		return
	}
	r := checkpointRun{c.Iteration, c.Iteration}
	if j.record.Spec.Checkpoint.Iterations > 0 && s.Since > 0 {
		r.from = min(s.Since, r.to)
	}
	if slices.Contains(k.checkpoints, r) {
		return
	}
	k.checkpoints = append(slices.DeleteFunc(k.checkpoints, func(o checkpointRun) bool {
		return r.from <= o.from &&
			o.to <= r.to
	}), r)
	g := m.gang(j)
	common := newestCommonCheckpoint(g)
	if common == j.record.From {
		return
	}
	for _, o := range g {
		o.record.From, o.record.Restarts = common, 0
		o.replica.checkpoints = slices.DeleteFunc(o.replica.checkpoints,
			func(r checkpointRun) bool { return r.to <= common })
		if o.canChangePlan() && o.record.At > 0 && common >= o.record.At {
			o.record.At, o.replica.margin = 0, 0 // this was the checkpoint to take
		}
	}
	m.changed = true
}
