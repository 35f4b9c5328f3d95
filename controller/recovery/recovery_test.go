package recovery

import (
	"testing"
	"time"

	_ "tensile/internal/long"
	"tensile/wire"
)

// What becomes of a job follows from where it was, from what it can go on with, and from how often it was tried.
func TestActionAfter(t *testing.T) {
	starts := Job{State: wire.JobStarting, IsNew: true}
	trains := Job{State: wire.JobRunning, Begun: true, HasCheckpoint: true, Limit: 2}
	with := func(j Job, set func(*Job)) Job {
		set(&j)
		return j
	}
	in := func(s wire.JobState) func(*Job) { return func(j *Job) { j.State = s } }
	tired := func(j *Job) { j.Restarts = j.Limit }
	elsewhere := func(j *Job) { j.Elsewhere = true }
	for _, c := range []struct {
		name string
		job  Job
		t    Trouble
		want Action
	}{
		{"the executor of one that trains ends", trains, Lost, Restarts},
		{"for the last time", with(trains, tired), Lost, Fails},
		{"of one that has not begun", starts, Lost, Retries},
		{"of such a one for the last time", with(starts, func(j *Job) { j.Restarts = MaxMoves }), Lost, Fails},
		{"of one that stops", with(trains, in(wire.JobStopping)), Lost, Stops},
		{"of one that waits", with(trains, in(wire.JobQueued)), Lost, Waits},
		{"of one that is parked", with(trains, in(wire.JobParked)), Lost, Rests},
		{"of one that is parked, without a checkpoint", Job{State: wire.JobParked, Begun: true}, Lost, Fails},
		{"of one that parks and may restart", Job{State: wire.JobParking, Begun: true, Limit: 1}, Lost, Rests},
		{"of a script", with(trains, func(j *Job) { j.Script = true }), Lost, Fails},
		{"of a script that stops", Job{State: wire.JobStopping, Script: true}, Lost, Stops},
		{"an executor is given up", with(starts, func(j *Job) { j.Limit = 1 }), GivenUp, Restarts},
		{"with one that is parked", with(trains, in(wire.JobParked)), GivenUp, Rests},
		{"with a damaged one", with(starts, func(j *Job) { j.Damaged = true }), GivenUp, Retries},
		{"with a damaged one out of reach", Job{State: wire.JobUnknown, Damaged: true}, GivenUp, Fails},
		{"it leaves in peace", trains, Left, GoesOn},
		{"it leaves in peace for the tenth time", with(trains, tired), Left, GoesOn},
		{"it leaves, and stops", with(trains, in(wire.JobStopping)), Left, Stops},
		{"it leaves, and parks", with(trains, in(wire.JobParking)), Broke, Rests},
		{"it leaves for some trouble", trains, Broke, Restarts},
		{"it leaves for some trouble for the last time", with(trains, tired), Broke, Fails},
		{"no checkpoint is found", starts, Lacks, Awaits},
		{"but perhaps on another device", with(starts, elsewhere), Lacks, Requeues},
		{"but perhaps at another executor", with(starts, func(j *Job) { j.ExecutorHere = true }), Lacks, Moves},
		{"none is found by one that parks", with(trains, in(wire.JobParking)), Lacks, Rests},
		{"there is no room", trains, NoRoom, Shrinks},
		{"there is no room for a script", with(trains, func(j *Job) { j.Script = true }), NoRoom, Fails},
		{"it fails", trains, Failed, Fails},
		{"it fails before it has begun", with(starts, elsewhere), Failed, Retries},
		{"and no other device takes it", starts, Failed, Fails},
	} {
		if got := c.job.ActionAfter(c.t); got != c.want {
			t.Errorf("%s: action %d, want %d", c.name, got, c.want)
		}
	}
}

// The same happens to all replicas of a gang; a restart that loses nothing may be repeated.
func TestGangAction(t *testing.T) {
	trains := Job{IsGang: true, State: wire.JobRunning, Begun: true, HasCheckpoint: true, Limit: 1}
	with := func(set func(*Job)) Job {
		j := trains
		set(&j)
		return j
	}
	for _, c := range []struct {
		name   string
		job    Job
		counts bool
		want   Action
	}{
		{"all train", trains, true, Restarts},
		{"all train, and nothing went wrong", trains, false, GoesOn},
		{"for the last time", with(func(j *Job) { j.Restarts = 1 }), true, Fails},
		{"nothing is lost", with(func(j *Job) { j.Restarts, j.Begun = 1, false }), true, Restarts},
		{"nothing, for the last time", with(func(j *Job) { j.Restarts, j.Begun = MaxMoves, false }), true, Fails},
		{"they would begin from scratch", with(func(j *Job) { j.HasCheckpoint, j.Limit = false, 0 }), false, Fails},
		{"they wait", with(func(j *Job) { j.State, j.Restarts = wire.JobQueued, 1 }), true, GoesOn},
		{"they are parked", with(func(j *Job) { j.State, j.Restarts = wire.JobParked, 1 }), true, Rests},
		{"they stop", with(func(j *Job) { j.State = wire.JobStopping }), true, Stops},
		{"one is over", with(func(j *Job) { j.IsOver = true }), false, Fails},
		{"the one is over", with(func(j *Job) { j.State = wire.JobFailed }), true, Stays},
	} {
		if got := c.job.GangAction(c.counts); got != c.want {
			t.Errorf("%s: action %d, want %d", c.name, got, c.want)
		}
	}
}

// The pauses grow up to a minute.
func TestPause(t *testing.T) {
	for n, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 7: time.Minute,
		99: time.Minute} {
		if got := Pause(n); got != want {
			t.Errorf("restart %d: a pause of %v, want %v", n, got, want)
		}
	}
}
