// Package recovery decides what becomes of a job that cannot go on where it is, or whose executor is lost.
package recovery

import (
	"time"

	"tensile/wire"
)

// Trouble is why a job cannot go on where it is.
type Trouble int

const (
	Lost    Trouble = iota // the process of its executor has ended
	GivenUp                // its executor is given up, and may have its memory
	Left                   // its executor has let it go in peace
	Broke                  // its executor has let it go for some trouble
	Lacks                  // its executor has not found its checkpoint
	NoRoom                 // its device had no room for its arena
	Failed                 // its executor has given it up
)

// Action is what becomes of a job.
type Action int

const (
	Stays    Action = iota // it stays as it is
	Finishes               // it is over, with all iterations done
	Fails                  // it is over, with some trouble
	Stops                  // it is over, as somebody wanted
	Rests                  // it is parked, and has no executor any more
	Waits                  // it stays in the queue, and has no executor any more
	Restarts               // it goes on from its newest checkpoint after a pause, which counts as a restart
	GoesOn                 // it goes on from its newest checkpoint
	Retries                // it begins at another executor, which counts as a restart
	Moves                  // it begins at another executor of its device
	Requeues               // it goes on at another device
	Awaits                 // it waits for an executor that has its checkpoint
	Shrinks                // it goes on from its newest checkpoint, and all with less memory, which counts as a restart
)

// Pause is for how long a job waits before a restart, by the number of those since it last got on: a second at first,
// each time twice as long, and a minute at most.
func Pause(restarts int) time.Duration {
	return min(time.Minute, time.Second<<max(0, min(10, restarts-1)))
}

// MaxMoves is how many times in a row a job gets another executor before it has begun.
const MaxMoves = 2

// Job is what the recovery of a job depends on. For a replica it is what is known of all replicas of its gang together.
type Job struct {
	State wire.JobState
	// Script says that the user who joined it starts it again.
	Script bool
	// Damaged says that it cannot be planned for.
	Damaged bool
	// Begun says that it has trained, which would be lost without a checkpoint.
	Begun bool
	// HasCheckpoint says that there is one with which it can go on, and TakesCheckpoints that there may come one.
	HasCheckpoint, TakesCheckpoints bool
	// IsNew says that it has a plan and never was in force anywhere.
	IsNew bool
	// Restarts counts those since it last got on, of at most Limit.
	Restarts, Limit int
	// Elsewhere says that another device, or executor, may take it.
	Elsewhere bool
	// ExecutorHere says that another executor of its device may take it.
	ExecutorHere bool
	// IsGang says that these are all replicas of a gang, and IsOver that one of them is over.
	IsGang, IsOver bool
}

// rests reports whether the job trains nowhere, and is to do so later at most.
func (j *Job) rests() bool {
	return j.State == wire.JobQueued || j.State == wire.JobParked || j.State == wire.JobParking
}

// ActionAfter is what becomes of a job in some trouble.
func (j *Job) ActionAfter(t Trouble) Action {
	switch {
	case t == Lacks && j.State != wire.JobStarting, // it was told to rest or to stop before it had begun
		(t == Left || t == Broke) && (j.rests() || j.State == wire.JobStopping),
		t == GivenUp && (j.rests() || j.State == wire.JobStopping || j.Damaged && j.State != wire.JobUnknown):
		t = Lost
	}
	mayRetry := j.IsNew && !j.Script && j.State == wire.JobStarting && j.Restarts < max(MaxMoves, j.Limit)
	switch {
	case t == Lost && (j.rests() || j.State == wire.JobStopping || j.Script):
		return j.afterLoss()
	case t == Left:
		return GoesOn
	case t == Lacks && j.ExecutorHere:
		return Moves
	case t == Lacks && j.Elsewhere:
		return Requeues
	case t == Lacks:
		return Awaits
	case t == NoRoom && !j.Script && (j.State == wire.JobStarting || j.State == wire.JobRunning) &&
		j.Restarts < max(MaxMoves, j.Limit):
		return Shrinks
	case (t == Lost || (t == NoRoom || t == Failed) && j.Elsewhere) && mayRetry:
		return Retries
	case t != NoRoom && t != Failed && j.Restarts < j.Limit:
		return Restarts
	}
	return Fails
}

// afterLoss is what becomes of a script whose process has ended, or of a job that did not train when its executor's
// has.
func (j *Job) afterLoss() Action {
	switch {
	case j.State == wire.JobStopping:
		return Stops
	case j.Script, j.Begun && !j.HasCheckpoint && j.Limit == 0: // it would begin from scratch
		return Fails
	case j.State == wire.JobQueued:
		return Waits
	}
	return Rests
}

// RestartLimit is how many times in a row a job may restart.
func (j *Job) RestartLimit() int {
	if j.IsGang && !j.Begun { // a restart loses nothing
		return max(MaxMoves, j.Limit)
	}
	return j.Limit
}

// GangAction is what becomes of a gang when there is some trouble with one of its replicas, and all are taken from
// their executors. counts says that this is a restart if they train.
func (j *Job) GangAction(counts bool) Action {
	counts = counts && (j.State == wire.JobStarting || j.State == wire.JobRunning || j.State == wire.JobUnknown)
	switch {
	case j.State.Over():
		return Stays
	case j.State == wire.JobStopping:
		return Stops
	case j.IsOver, // all had ended when a controller was killed, and the end of this one was lost
		counts && j.Restarts >= j.RestartLimit(),
		j.Begun && !j.HasCheckpoint && !j.TakesCheckpoints && j.Limit == 0: // they would begin from scratch
		return Fails
	case j.State == wire.JobParking || j.State == wire.JobParked:
		return Rests
	case counts:
		return Restarts
	}
	return GoesOn
}
