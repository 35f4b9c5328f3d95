package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/wire"
)

// A data-parallel job of N replicas is N jobs, siblings, called NAME@0 to NAME@N-1. Each has its own record, plans,
// claims and incarnations; no iteration ends without all of them. So what is decided of one is decided of all. Which
// jobs are siblings stands in their records (wire.Replica.Group), so that a controller that is started again knows it.
//
//	queued --> starting --> running --> finished     all together
//	  ^  (a)       (b)        |  (c)
//	  |                       |
//	  +-----------------------+  (d)
//
// (a) Placement. Siblings are tried one after the other, as other jobs are, on the devices that have fewest of them.
// One group is on its way in at a time. If a sibling finds no room all go back to the queue.
//
// (b) They begin together: none is granted its first layout unless all can be. So no group holds memory of one device
// while it waits for that of another. Later changes of plans are each sibling's own.
//
// (c) They rest together, to be parked, to leave, or to end: after as many iterations as Record.At says. That is the
// largest number of iterations that any is known to have begun, and a few more. One that has begun more when it hears
// of it goes on, as its status says, and then At rises for all. None is told to end or to leave before all rest: one
// that rests can still go on. A checkpoint by time is taken after At iterations likewise.
//
// (d) Whatever goes wrong: all are taken from their executors and begin again together, in new incarnations, with the
// newest checkpoint that each of them has (Record.From). What an executor that lives may still have of them stays
// reserved until it says that it has it no more (hold).
//
// (a) and (b) are in entering.go, (c) in resting.go, the checkpoints in common.go and (d) in scatter.go.

// sibling is what is known of a replica beyond other jobs, from what its executor says of its present incarnation.
type sibling struct {
	issued  int             // iterations that it has begun, at least
	running bool            // it trains, or is about to
	rests   bool            // it rests after Record.At iterations
	left    bool            // it has left its executor, as it was told
	alone   bool            // it has failed since the connection to others broke
	ended   *wire.JobStatus // that it has finished or was stopped; nil: neither
	meets   *wire.Meeting   // where the next replica finds it; nil: it has not said
	margin  int             // by which At is beyond what was begun; 0: it was not chosen yet
	taken   time.Duration   // of replica 0: when a checkpoint by time was ordered last; 0: never
	kept    []run           // checkpoints beyond Record.From
}

func (j *job) replica() bool { return j.record.Spec.Replica.Of > 0 }

// together is how siblings are called together: their names without the numbers.
func together(s *wire.Spec) string {
	if s.Replica.Of == 0 {
		return s.Name
	}
	return strings.TrimSuffix(s.Name, fmt.Sprintf("@%d", s.Replica.Number))
}

// siblings are the replicas that train one network together, j among them, in the order of their numbers; nil: j is no
// replica.
func (m *Machine) siblings(j *job) (list []*job) {
	if !j.replica() {
		return nil
	}
	for _, o := range m.jobs {
		if o.replica() && o.record.Spec.Replica.Group == j.record.Spec.Replica.Group && o.batch == j.batch &&
			(o.batch == nil || together(&o.record.Spec) == together(&j.record.Spec)) {
			list = append(list, o)
		}
	}
	return list
}

// siblingOf reports whether two jobs are siblings.
func (j *job) siblingOf(o *job) bool {
	return j.replica() && j.record.Spec.Replica.Group == o.record.Spec.Replica.Group && o.replica()
}

// all are the siblings of a job that are not over, or the job if it is no replica.
func (m *Machine) all(j *job) []*job {
	if list := m.siblings(j); list != nil {
		return slices.DeleteFunc(list, func(o *job) bool { return o.record.State.Over() })
	}
	return []*job{j}
}

// lookUp returns the job of a name, or the first of the replicas that are called so together; nil: there is none. Of a
// job and replicas it is what is not over, or came last.
func (m *Machine) lookUp(name string) *job {
	j, first := m.find(name), m.find(name+"@0")
	if first != nil && first.replica() && (j == nil || first.record.Hides(&j.record)) {
		return first
	}
	return j
}

// sibling takes over what an executor says of a replica, and reports whether that was all that there is to do.
func (m *Machine) siblingStatus(j *job, s *wire.JobStatus, answers bool) (done bool) {
	k := &j.sibling
	k.issued = max(k.issued, min(s.Begun, j.record.Spec.Iterations), s.Iteration)
	if s.Meets != nil && (k.meets == nil || *k.meets != *s.Meets) {
		k.meets, m.changed = s.Meets, true
	}
	k.running = s.State == wire.Running || s.State == wire.Waiting && j.record.Park == ""
	switch s.State {
	case wire.Finished, wire.Stopped:
		told := *s
		k.ended = &told
		m.endTogether(j)
		return true
	case wire.Suspended:
		written := s.Checkpoint != nil && s.Checkpoint.Iteration == j.record.At
		if j.record.State == wire.JobParking && j.record.Park == wire.OnDisk && (written || m.home(j)) {
			k.left = true
			m.leaveTogether(j)
		} else {
			m.scatter(j, cmp.Or(s.Error, "its executor has left"), s.Error != "")
		}
		return true
	case wire.Failed:
		if s.Alone {
			k.alone = true
			if j.record.Reason != s.Error {
				j.record.Reason, m.changed = s.Error, true
			}
			m.alone(j, s.Error)
		}
		return s.Alone
	}
	m.rested(j, s, answers)
	m.alone(j, "the connection to another replica broke")
	return s.State == wire.Resting
}

// refusesReplicas is why replicas among jobs that are submitted together cannot be taken; nil: they can. Those of a
// group stand one after the other, and differ in their numbers and files alone.
func (m *Machine) refusesReplicas(list []Submission) error {
	for i := 0; i < len(list); i++ {
		first := &list[i]
		of := first.Spec.Replica.Of
		if of == 0 {
			if old := m.find(first.Spec.Name + "@0"); old != nil && old.replica() && !old.record.State.Over() {
				return fmt.Errorf("there is a job %s of %d replicas: give the new one another name, or stop that one "+
					"first", first.Spec.Name, old.record.Spec.Replica.Of)
			}
			continue
		}
		name := together(&first.Spec)
		switch old := m.find(name); {
		case old != nil && !old.record.State.Over():
			return fmt.Errorf("there is a job %s: give the new one another name, or stop that one first", name)
		case first.Spec.Script || first.Graph.Opaque():
			return fmt.Errorf("job %s is recorded from another framework, which reduces no gradients here: leave "+
				"--replicas out", name)
		case first.Graph.Replicas() != of:
			return fmt.Errorf("job %s: its graph is of %d replicas, not of %d: submit it with --replicas %[3]d", name,
				first.Graph.Replicas(), of)
		}
		for n := range of {
			want := first.Spec
			want.Name, want.Replica = fmt.Sprintf("%s@%d", name, n), wire.Replica{Number: n, Of: of}
			if i+n < len(list) {
				want.Save, want.From = list[i+n].Spec.Save, list[i+n].Spec.From
			}
			if i+n >= len(list) || list[i+n].Spec != want {
				return fmt.Errorf("job %s: %s of its %d replicas is missing or is another job: submit all together, "+
					"one after the other", name, want.Name, of)
			}
		}
		i += of - 1
	}
	return nil
}
