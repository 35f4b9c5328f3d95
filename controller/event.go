package controller

import (
	"cmp"
	"fmt"
	"time"

	"tensile/controller/fleet"
	"tensile/graph"
	"tensile/graph/text"
	"tensile/wire"
)

// EventKind says what has happened.
type EventKind string

// The fields of Event that a kind sets stand beside it.
const (
	// Joined: Executor is heard of for the first time.
	Joined EventKind = "joined"
	// SentAway: Executor is refused for Reason.
	SentAway EventKind = "sent-away"
	// Opened: Device of Host is planned for, with Budget; Reason is its identity.
	Opened EventKind = "opened"
	// Closed: no executor has Device any more.
	Closed EventKind = "closed"
	// ExecutorEnded: the process of Executor has ended, or another takes its name; Detail.
	ExecutorEnded EventKind = "executor-ended"
	// OutOfReach: Executor cannot be reached, and may be training; Detail.
	OutOfReach EventKind = "silent"
	// ExecutorReturned: Executor is heard of again.
	ExecutorReturned EventKind = "executor-returned"
	// Killed: the process of Executor is ended, because others wait for its memory; Detail.
	Killed EventKind = "killed"
	// MemoryFreed: the memory that Executor may have had is free; Detail.
	MemoryFreed EventKind = "memory-freed"
	// Doubled: a second process has the name Executor, at Host.
	Doubled EventKind = "doubled"
	// Repelled: the second process of Executor, at Host, is refused; Reason.
	Repelled EventKind = "repelled"
	// Queued: Job waits for Bytes; Reason.
	Queued EventKind = "queued"
	// Adopted: Plans jobs have new plans; Reason, Cause, and Gain and Transition if these decided.
	Adopted EventKind = "adopted"
	// Shared: jobs share memory; Reason says how fast they are expected to be.
	Shared EventKind = "shared"
	// Unplanned: there are no new plans; Reason and Cause say what they were wanted for, Detail what is missing.
	Unplanned EventKind = "unplanned"
	// Granted: Job may train with the layout of Epoch, in Bytes.
	Granted EventKind = "granted"
	// Reassigned: Job, which had not begun, gets another executor; Detail.
	Reassigned EventKind = "reassigned"
	// Migrating: Job migrates to Device; Gain of the next Iterations and Transition, or Detail.
	Migrating EventKind = "migrating"
	// Disproved: the migration of Job to Device has Saved less than its Gain. No job migrates on Host, which may name
	// two, for Rest.
	Disproved EventKind = "disproved"
	// Restarted: Job goes on from its checkpoint after Iterations; Detail.
	Restarted EventKind = "restarted"
	// Rested: Job is parked after Iterations.
	Rested EventKind = "rested"
	// Preempted: Job is parked for the job that Reason names, of higher priority or of another tenant; Detail.
	Preempted EventKind = "preempted"
	// Troubled: Job goes on in spite of Detail.
	Troubled EventKind = "troubled"
	// Ended: Job is over, with State, Iterations and the Epoch of its last layout; Detail.
	Ended EventKind = "ended"
	// BudgetRestored: Reason says which budget counts after a restart of the controller.
	BudgetRestored EventKind = "budget-restored"
	// BudgetChanged: all jobs are planned for again, because of the budget that Reason names.
	BudgetChanged EventKind = "budget-changed"
	// Shrinking: jobs and Contexts have Bytes of Budget, and are to give some back.
	Shrinking EventKind = "shrinking"
	// Stuck: jobs and Contexts have Bytes of Budget, and cannot shrink; Detail.
	Stuck EventKind = "stuck"
)

// Event is a fact for logs and counters: what a machine has decided or been told. The comment of its kind says which
// fields are set.
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
	Detail     string        `json:"detail,omitzero"`
}

// String is the event as a line of a log.
func (e Event) String() string {
	line := cmp.Or(e.ofExecutor(), e.ofJob(), e.ofDevice())
	if line == "" {
		panic("controller: an event of unknown kind " + string(e.Kind))
	}
	return line
}

// ofExecutor is an event of an executor as a line. "": it is another.
func (e *Event) ofExecutor() string {
	switch e.Kind {
	case Joined:
		return fmt.Sprintf("executor %s has joined", e.Executor)
	case SentAway:
		return fmt.Sprintf("executor %s is sent away: %s", e.Executor, e.Reason)
	case ExecutorEnded:
		return fmt.Sprintf("executor %s has gone: %s", e.Executor, e.Detail)
	case Doubled:
		return fmt.Sprintf("a second process of executor %s has come%s; it has to go if the first is heard again",
			e.Executor, fleet.OnHost(e.Host))
	case Repelled:
		return fmt.Sprintf("a second process of executor %s%s is refused: %s", e.Executor, fleet.OnHost(e.Host),
			e.Reason)
	case OutOfReach:
		return fmt.Sprintf("executor %s cannot be reached: %s; what it may have stays reserved", e.Executor, e.Detail)
	case ExecutorReturned:
		return fmt.Sprintf("executor %s is back", e.Executor)
	case Killed:
		return fmt.Sprintf("executor %s is killed, so that its memory is free: %s", e.Executor, e.Detail)
	case MemoryFreed:
		return fmt.Sprintf("what executor %s had is free: %s", e.Executor, e.Detail)
	}
	return ""
}

// ofJob is an event of a job as a line. "": it is another.
func (e *Event) ofJob() string {
	switch e.Kind {
	case Restarted:
		return fmt.Sprintf("job %s goes on from iteration %d: %s", e.Job, e.Iterations, e.Detail)
	case Rested:
		return fmt.Sprintf("job %s is parked after %d iterations", e.Job, e.Iterations)
	case Preempted:
		line := fmt.Sprintf("job %s gives way to job %s", e.Job, e.Reason)
		if e.Detail != "" {
			line += ", as " + e.Detail
		}
		return line
	case Queued:
		return fmt.Sprintf("job %s is queued: %s", e.Job, e.Reason)
	case Granted:
		return fmt.Sprintf("job %s may train with layout %d in %s", e.Job, e.Epoch, e.Bytes)
	case Reassigned:
		return fmt.Sprintf("job %s had not begun: %s; it gets another executor", e.Job, e.Detail)
	case Migrating:
		return fmt.Sprintf("job %s %s", e.Job, e.migrationText())
	case Disproved:
		return e.inVainText()
	case Troubled:
		return fmt.Sprintf("job %s: %s", e.Job, e.Detail)
	case Ended:
		line := fmt.Sprintf("job %s %s after %d iterations", e.Job, e.State, e.Iterations)
		if e.Detail != "" {
			line += ": " + e.Detail
		}
		return line
	}
	return ""
}

// ofDevice is an event of a device and its plans as a line. "": it is another.
func (e *Event) ofDevice() string {
	switch e.Kind {
	case Opened:
		return fmt.Sprintf("device %s%s is planned for: %s, budget %s", e.Device, fleet.OnHost(e.Host), e.Reason,
			budgetText(e.Budget))
	case Closed:
		return fmt.Sprintf("device %s is not planned for any more: nobody has it", e.Device)
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
		return fmt.Sprintf("no new plans after %s: %s", e.Reason, e.Detail)
	case BudgetRestored:
		return e.Reason
	case BudgetChanged:
		return e.Reason + ": all jobs are planned for again"
	case Shrinking:
		return fmt.Sprintf("jobs hold %s of %s%s; they shrink", e.Bytes, e.Budget, e.Contexts.Suffix())
	case Stuck:
		return fmt.Sprintf("jobs hold %s of %s%s, and cannot shrink that far; nothing else begins until some have "+
			"ended: %s", e.Bytes, e.Budget, e.Contexts.Suffix(), e.Detail)
	}
	return ""
}
