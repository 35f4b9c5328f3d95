package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/controller/gang"
	"tensile/wire"
)

// A data-parallel job of N replicas is a gang of N jobs, called NAME@0 to NAME@N-1, which are peers. Each has its own
// record, plans, claims and incarnations. No iteration ends without all of them, so what is decided of one is decided
// of all. Which jobs form a gang stands in their records (wire.Replica.Group), so that a controller that is started
// again knows it.
//
//	queued --> starting --> running --> finished     all together
//	  ^  (a)       (b)        |  (c)
//	  |                       |
//	  +-----------------------+  (d)
//
// (a) Placement. Replicas are placed one after the other, as other jobs are, on the devices that have fewest of their
// peers. One gang at a time is about to start. If a replica finds no room, all go back to the queue.
//
// (b) Start. No replica is granted its first layout unless all can be. So no gang has memory of one device while it
// waits for that of another. Later changes of plans are each replica's own.
//
// (c) Rest. To be parked, to leave or to end, the replicas rest together after Record.At iterations. That is the
// largest number of iterations that any is known to have begun, and a few more. A replica that has begun more when it
// hears of it goes on, as its status says, and then At is raised for all. None is told to end or to leave before all
// rest, because a replica that rests can still go on. A checkpoint by time is also taken after At iterations.
//
// (d) Restart. Whatever goes wrong, all replicas are taken from their executors and begin again together, in new
// incarnations, with the newest checkpoint that each of them has (Record.From). What an executor that lives may still
// have of them stays reserved until it says that it has no more of it (keepReservation).
//
// (a) and (b) are in gang_start.go, (c) in gang_rest.go and (d) in outcome.go.

// replicaState is what is known of a replica beyond other jobs, from what its executor says of its present incarnation.
type replicaState struct {
	// iterationsBegun is how many iterations the replica has begun at least.
	iterationsBegun int
	// running says that it trains, or is about to.
	running bool
	// resting says that it rests in Home after Record.At iterations.
	resting bool
	// leftExecutor says that it has left its executor, as it was told.
	leftExecutor bool
	// disconnected says that it has failed because the connection to another replica broke.
	disconnected bool
	// finalStatus is the status in which it has finished or was stopped. nil: it has not ended.
	finalStatus *wire.JobStatus
	// meeting is where the next replica connects to it. nil: its executor has not said.
	meeting *wire.Meeting
	// margin is how many iterations Record.At is beyond what was begun when it was chosen. 0: it was not chosen yet.
	margin int
	// checkpointOrdered is, in replica 0, when a checkpoint by time was ordered last. 0: never.
	checkpointOrdered time.Duration
	// checkpoints are those that it has beyond Record.From.
	checkpoints gang.Checkpoints
}

// isReplica reports whether the job is one of several replicas that train one network.
func (j *job) isReplica() bool { return j.record.Spec.Replica.Of > 0 }

// gangName is the name of a replica's gang: its own name without the number. For another job it is the job's name.
func gangName(s *wire.Spec) string {
	if s.Replica.Of == 0 {
		return s.Name
	}
	return strings.TrimSuffix(s.Name, fmt.Sprintf("@%d", s.Replica.Number))
}

// gang are the replicas that train one network together with j, which is among them, in the order of their numbers.
// nil: j is no replica.
func (m *Machine) gang(j *job) (list []*job) {
	if !j.isReplica() {
		return nil
	}
	for _, o := range m.jobs {
		if o.isReplica() && o.record.Spec.Replica.Group == j.record.Spec.Replica.Group && o.batch == j.batch &&
			(o.batch == nil || gangName(&o.record.Spec) == gangName(&j.record.Spec)) {
			list = append(list, o)
		}
	}
	return list
}

// isPeerOf reports whether two jobs are replicas of one gang.
func (j *job) isPeerOf(o *job) bool {
	return j.isReplica() && j.record.Spec.Replica.Group == o.record.Spec.Replica.Group && o.isReplica()
}

// gangOrSelf are the replicas of a job's gang that are not over. For a job that is no replica it is the job alone.
func (m *Machine) gangOrSelf(j *job) []*job {
	if list := m.gang(j); list != nil {
		return slices.DeleteFunc(list, func(o *job) bool { return o.record.State.Over() })
	}
	return []*job{j}
}

// findJobOrGang returns the job of a name, or the first replica of the gang of that name. Where both exist it is the
// one that is not over, or that came last. nil: there is neither.
func (m *Machine) findJobOrGang(name string) *job {
	j, first := m.findJob(name), m.findJob(name+"@0")
	if first != nil && first.isReplica() && (j == nil || first.record.Hides(&j.record)) {
		return first
	}
	return j
}

// checkReplicas returns why replicas among jobs that are submitted together cannot be taken. nil: they can. Those of a
// gang come one after the other, and differ only in their numbers and files.
func (m *Machine) checkReplicas(list []Submission) error {
	for i := 0; i < len(list); i++ {
		first := &list[i]
		of := first.Spec.Replica.Of
		if of == 0 {
			if old := m.findJob(first.Spec.Name + "@0"); old != nil && old.isReplica() && !old.record.State.Over() {
				return fmt.Errorf("there is a job %s of %d replicas: give the new one another name, or stop that one "+
					"first", first.Spec.Name, old.record.Spec.Replica.Of)
			}
			continue
		}
		name := gangName(&first.Spec)
		switch old := m.findJob(name); {
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
