package sim

import "tensile/program"

// blocker returns a point that a command still waits for, and the count from which that point is counted. The point's
// count is 0 or less when it lies before the section. A drained section waits for all that was issued before it.
func (j *job) blocker(q queued) (w program.Point, origin int) {
	for l, count := range q.run.gate {
		if j.lanes[l].ended < count {
			return program.Point{Lane: program.Lane(l), Count: count - q.run.origin[l]}, q.run.origin[l]
		}
	}
	for _, w := range q.command().Waits {
		if origin := q.run.origin[w.Lane]; j.lanes[w.Lane].ended < origin+w.Count {
			return w, origin
		}
	}
	return program.Point{Lane: program.Lanes}, 0
}

// reached reports whether a command waits for nothing.
func (j *job) reached(q queued) bool {
	w, _ := j.blocker(q)
	return w.Lane == program.Lanes
}

// hurryFor ends the pauses of the copies that a command waits for, and reports whether there is a new one.
func (j *job) hurryFor(q queued) bool {
	changed := false
	for l, count := range q.run.gate {
		changed = j.hurry(program.Lane(l), count) || changed
	}
	for _, w := range q.command().Waits {
		changed = j.hurry(w.Lane, q.run.origin[w.Lane]+w.Count) || changed
	}
	return changed
}

// hurry ends the pauses of a lane's commands up to a count, and of the copies that those wait for. A copy that waits for
// the compute lane is not wanted yet: it would not go if those before it went now.
func (j *job) hurry(l program.Lane, count int) bool {
	lane := &j.lanes[l]
	first := max(lane.ended, lane.hurried)
	if l == program.Compute || count <= first || count > lane.ended+len(lane.queue) {
		return false
	}
	if j.untriggered(lane.queue[count-lane.ended-1]) {
		return false
	}
	lane.hurried = count
	for _, q := range lane.queue[first-lane.ended : count-lane.ended] {
		j.hurryFor(q)
	}
	return true
}

// untriggered reports whether a command waits for the compute lane.
func (j *job) untriggered(q queued) bool {
	ended := j.lanes[program.Compute].ended
	if ended < q.run.gate[program.Compute] {
		return true
	}
	for _, w := range q.command().Waits {
		if w.Lane == program.Compute && ended < q.run.origin[w.Lane]+w.Count {
			return true
		}
	}
	return false
}
