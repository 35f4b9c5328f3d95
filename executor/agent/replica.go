package agent

import (
	"cmp"

	"tensile/wire"
)

// inStep reports whether a job is a replica whose controller says after how many iterations it rests, ends and takes
// checkpoints: after as many as its siblings, with which each of its iterations is trained.
func (j *job) inStep() bool { return j.spec.Replica.Of > 0 }

// ends reports whether a job is to rest or to end.
func (j *job) ends() bool { return j.stop || j.park != "" }

// stepped has a replica do what it can do next.
func (m *Machine) stepped(j *job) {
	m.meet(j)
	switch {
	case m.drain != nil: // what it has begun may need siblings that rest, or that are gone
		j.lingers = true
		if j.takes() {
			m.over(j, wire.Suspended, line(m.drain))
		} else {
			m.cutShort(j)
		}
		m.next(j)
	case j.task == nil, !j.hosted && (!j.ends() || j.at > j.status.Iteration):
		m.state(j, wire.Waiting)
		m.fetch(j)
	case !j.hosted && j.stop:
		m.over(j, wire.Stopped, "before it went on")
	case !j.hosted && j.park == wire.OnDisk:
		m.over(j, wire.Suspended, "")
	case !j.hosted:
		m.state(j, wire.Resting)
	case j.ends():
		m.takeAt(j)
		m.restAt(j)
		m.fetch(j)
	default:
		m.rest(j)
		m.takeAt(j)
		m.fetch(j)
	}
}

// meet has a replica listen for the next one, when it is known where it begins, and find the one before it, when it is
// known where that listens.
func (m *Machine) meet(j *job) {
	if j.task == nil {
		return
	}
	if !j.meets {
		j.meets = true
		begin := 0
		if j.begin != nil {
			begin = j.begin.Iteration
		}
		m.say(Output{Meet: &Meet{j.ticket, j.spec, *j.task, begin}})
	}
	if n := j.neighbour; n != nil && *n != j.joins {
		j.joins = *n
		m.say(Output{Join: &Join{j.spec.Name, *n}})
	}
}

// part ends a replica's connections to the others, which then hear of it.
func (m *Machine) part(j *job) {
	if j.meets && !j.parts {
		j.parts = true
		m.say(Output{Part: j.spec.Name})
	}
}

// met notes where a replica listens.
func (m *Machine) met(r *Met) {
	switch j := m.findBy(func(j *job) bool { return j.ticket == r.Ticket }); {
	case j == nil || j.status.State.Over():
	case r.Err != nil && j.hosted:
		m.expel(j, r.Err)
	case r.Err != nil:
		m.fail(j, r.Err)
	default:
		j.status.Meets, m.news = r.Meeting, true
	}
}

// restAt has a replica that the host has rest after as many iterations as it is ordered, and then do what is to follow.
func (m *Machine) restAt(j *job) {
	switch {
	case j.status.Begun > j.at: // too late, as the status says
	case j.at == 0:
		j.status.Begun, m.news = 1, true // the host begins it
	case !j.parks || j.parkAt != j.at:
		if j.status.State == wire.Resting {
			m.state(j, wire.Waiting)
		}
		j.parkAt = j.at
		m.park(j)
	case !j.rests:
	case j.stop && !j.told:
		j.told = true
		m.say(Output{Stop: j.spec.Name})
	case j.stop:
	case j.park == wire.OnDisk:
		m.suspend(j)
	}
}

// takeAt has the host take the state of a replica at the next multiple of its interval, or when it is ordered.
func (m *Machine) takeAt(j *job) {
	at, every := j.at, j.spec.Checkpoint.Iterations
	if every > 0 {
		at = (j.tried.iteration/every + 1) * every
	}
	switch {
	case !j.takes() || at <= j.tried.iteration || at >= j.spec.Iterations || j.status.Iteration < j.tried.iteration:
	case j.ends() && (every == 0 || at > j.at): // the controller says when to rest, or it does not come so far
	case every == 0 && at < j.status.Begun: // too late, as the status says
	case j.taking == none, j.taking == armed && at != j.armedAt:
		j.taking, j.armedAt = armed, at
		m.say(Output{Take: &Take{j.spec.Name, at}})
	}
}

// since is JobStatus.Since with a new checkpoint, after some iterations.
func (j *job) since(iteration int) int {
	every, last := j.spec.Checkpoint.Iterations, j.status.Checkpoint
	if !j.inStep() || every == 0 || last == nil || iteration != last.Iteration+every {
		return 0
	}
	return cmp.Or(j.status.Since, last.Iteration)
}

// begun notes that a replica had begun more iterations than after which it was to rest or take a checkpoint.
func (m *Machine) begun(j *job, iterations int) {
	j.status.Begun, m.news = max(j.status.Begun, iterations), true
	if j.parks && !j.rests && j.parkAt < iterations {
		j.parks = false
	}
	if j.taking == armed && j.armedAt < iterations {
		j.taking = none
	}
}
