package controller

import (
	"fmt"
	"time"

	"tensile/graph"
	"tensile/graph/text"
	"tensile/wire"
)

// EventKind is what has happened.
type EventKind string

const (
	Joined     EventKind = "joined"     // Executor
	SentAway   EventKind = "sent-away"  // Executor; Reason
	Opened     EventKind = "opened"     // Device of Host, with Budget, is planned for; Reason: its identity
	Closed     EventKind = "closed"     // nobody has Device any more
	Left       EventKind = "left"       // the process of Executor has ended, or another takes its name; Why
	OutOfReach EventKind = "silent"     // Executor cannot be reached, and may be training; Why
	Back       EventKind = "back"       // Executor is heard of again
	Killed     EventKind = "killed"     // the process of Executor is ended, since others wait for its memory; Why
	Freed      EventKind = "freed"      // what Executor may have had is free; Why
	Doubled    EventKind = "doubled"    // Executor has a second process, at Host
	Repelled   EventKind = "repelled"   // the second process of Executor, at Host; Reason
	Queued     EventKind = "queued"     // Job waits for Bytes; Reason
	Adopted    EventKind = "adopted"    // Plans are new; Reason, Cause; Gain and Transition if these decided
	Shared     EventKind = "shared"     // jobs share memory; Reason is how fast they are expected to be
	Unplanned  EventKind = "unplanned"  // there are no new plans; Reason, Cause: what they were wanted for; Why
	Granted    EventKind = "granted"    // Job may train with the layout of Epoch in Bytes
	Moved      EventKind = "moved"      // Job, which had not begun, gets another executor; Why
	Moves      EventKind = "moves"      // Job leaves for Device; Gain of the next Iterations and Transition, or Why
	Disproved  EventKind = "disproved"  // the move of Job to Device has Saved less than its Gain: Host, or two, Rests
	Restarted  EventKind = "restarted"  // Job goes on from its checkpoint after Iterations; Why
	Rested     EventKind = "rested"     // Job is parked after Iterations
	Preempted  EventKind = "preempted"  // Job is parked for a job of higher priority, or of another tenant: Reason; Why
	Troubled   EventKind = "troubled"   // Job goes on in spite of Why
	Ended      EventKind = "ended"      // Job is over: State, Iterations, Epoch of its last layout; Why
	Budgeted   EventKind = "budgeted"   // which budget counts after a restart: Reason
	Rebudgeted EventKind = "rebudgeted" // all jobs are planned for again: Reason
	Shrinking  EventKind = "shrinking"  // jobs and Contexts hold Bytes of Budget, and are to give some back
	Stuck      EventKind = "stuck"      // jobs and Contexts hold Bytes of Budget, and cannot shrink; Why
)

// Event is something that a machine has decided or been told, for logs and counters. Which fields are set stands beside
// its kind.
type Event struct {
	Kind       EventKind     `json:"kind"`
	Job        string        `json:"job,omitzero"`
	Executor   string        `json:"executor,omitzero"`
	Host       string        `json:"host,omitzero"`
	Device     string        `json:"device,omitzero"`
	State      wire.JobState `json:"state,omitzero"`
	Iterations int           `json:"iterations,omitzero"`
	Epoch      int64         `json:"epoch,omitzero"`
	Plans      int           `json:"plans,omitzero"`
	Bytes      graph.Bytes   `json:"bytes,omitzero"`
	Budget     graph.Bytes   `json:"budget_bytes,omitzero"`
	Contexts   wire.Contexts `json:"contexts,omitzero"`
	Gain       time.Duration `json:"gain_ns,omitzero"`
	Transition time.Duration `json:"transition_ns,omitzero"`
	Saved      time.Duration `json:"saved_ns,omitzero"`
	Rest       time.Duration `json:"rest_ns,omitzero"`
	Reason     string        `json:"reason,omitzero"`
	Cause      Cause         `json:"cause,omitzero"`
	Why        string        `json:"why,omitzero"`
}

// String is the event as a line of a log.
func (e Event) String() string {
	switch e.Kind {
	case Joined:
		return fmt.Sprintf("executor %s has joined", e.Executor)
	case SentAway:
		return fmt.Sprintf("executor %s is sent away: %s", e.Executor, e.Reason)
	case Opened:
		return fmt.Sprintf("device %s%s is planned for: %s, budget %s", e.Device, hostSuffix(e.Host), e.Reason,
			budgetText(e.Budget))
	case Closed:
		return fmt.Sprintf("device %s is not planned for any more: nobody has it", e.Device)
	case Left:
		return fmt.Sprintf("executor %s has gone: %s", e.Executor, e.Why)
	case Doubled:
		return fmt.Sprintf("a second process of executor %s has come%s; it has to go if the first is heard again",
			e.Executor, hostSuffix(e.Host))
	case Repelled:
		return fmt.Sprintf("a second process of executor %s%s is refused: %s", e.Executor, hostSuffix(e.Host), e.Reason)
	case OutOfReach:
		return fmt.Sprintf("executor %s cannot be reached: %s; what it may have stays reserved", e.Executor, e.Why)
	case Back:
		return fmt.Sprintf("executor %s is back", e.Executor)
	case Killed:
		return fmt.Sprintf("executor %s is killed, so that its memory is free: %s", e.Executor, e.Why)
	case Freed:
		return fmt.Sprintf("what executor %s had is free: %s", e.Executor, e.Why)
	case Restarted:
		return fmt.Sprintf("job %s goes on from iteration %d: %s", e.Job, e.Iterations, e.Why)
	case Rested:
		return fmt.Sprintf("job %s is parked after %d iterations", e.Job, e.Iterations)
	case Preempted:
		line := fmt.Sprintf("job %s gives way to job %s", e.Job, e.Reason)
		if e.Why != "" {
			line += ", as " + e.Why
		}
		return line
	case Queued:
		return fmt.Sprintf("job %s is queued: %s", e.Job, e.Reason)
	case Adopted:
		line := fmt.Sprintf("new plans for %d jobs: %s", e.Plans, e.Reason)
		if e.Plans == 1 {
			line = "a new plan: " + e.Reason
		}
		if e.Gain > 0 {
			line += fmt.Sprintf("; gain over the next iterations %v, transition %v", text.Duration(e.Gain),
				text.Duration(e.Transition))
		}
		return line
	case Shared:
		return e.Reason
	case Unplanned:
		return fmt.Sprintf("no new plans after %s: %s", e.Reason, e.Why)
	case Granted:
		return fmt.Sprintf("job %s may train with layout %d in %s", e.Job, e.Epoch, e.Bytes)
	case Moved:
		return fmt.Sprintf("job %s had not begun: %s; it gets another executor", e.Job, e.Why)
	case Moves:
		return fmt.Sprintf("job %s %s", e.Job, e.migrationText())
	case Disproved:
		return e.inVainText()
	case Troubled:
		return fmt.Sprintf("job %s: %s", e.Job, e.Why)
	case Ended:
		line := fmt.Sprintf("job %s %s after %d iterations", e.Job, e.State, e.Iterations)
		if e.Why != "" {
			line += ": " + e.Why
		}
		return line
	case Budgeted:
		return e.Reason
	case Rebudgeted:
		return e.Reason + ": all jobs are planned for again"
	case Shrinking:
		return fmt.Sprintf("jobs hold %s of %s%s; they shrink", e.Bytes, e.Budget, contextSuffix(e.Contexts))
	case Stuck:
		return fmt.Sprintf("jobs hold %s of %s%s, and cannot shrink that far; nothing else begins until some have "+
			"ended: %s", e.Bytes, e.Budget, contextSuffix(e.Contexts), e.Why)
	}
	panic("controller: an event of unknown kind " + string(e.Kind))
}
