package controller

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"tensile/controller/fleet"
	"tensile/graph"
	"tensile/graph/text"
	"tensile/wire"
)

// EventKind says what has happened. Its row of kinds has the line in which it stands in a log, and so the fields that
// are set.
type EventKind string

const (
	Joined           EventKind = "joined"
	SentAway         EventKind = "sent-away"
	Opened           EventKind = "opened" // Reason is the device's identity
	Closed           EventKind = "closed"
	ExecutorEnded    EventKind = "executor-ended" // or another process takes its name
	OutOfReach       EventKind = "silent"
	ExecutorReturned EventKind = "executor-returned"
	Killed           EventKind = "killed" // because others wait for its memory
	MemoryFreed      EventKind = "memory-freed"
	Doubled          EventKind = "doubled"
	Repelled         EventKind = "repelled"
	Queued           EventKind = "queued"     // Job waits for Bytes
	Adopted          EventKind = "adopted"    // Plans jobs; Reason, Cause, and Gain and Transition if these decided
	Shared           EventKind = "shared"     // Reason says how fast jobs that share memory are expected to be
	Unplanned        EventKind = "unplanned"  // Reason and Cause say what plans were wanted for
	Granted          EventKind = "granted"    // Job may train with the layout of Epoch
	Reassigned       EventKind = "reassigned" // Job had not begun
	Migrating        EventKind = "migrating"  // to Device; Gain of the next Iterations and Transition, or Detail
	Disproved        EventKind = "disproved"  // the move to Device has Saved less than its Gain: none on Host for Rest
	Restarted        EventKind = "restarted"
	Rested           EventKind = "rested"
	Preempted        EventKind = "preempted" // for the job that Reason names, of higher priority or of another tenant
	Troubled         EventKind = "troubled"  // Job goes on in spite of Detail
	Ended            EventKind = "ended"     // Epoch is that of the last layout
	BudgetRestored   EventKind = "budget-restored"
	BudgetChanged    EventKind = "budget-changed"
	Shrinking        EventKind = "shrinking"
	Stuck            EventKind = "stuck"
)

// kinds has for each kind how bad it is and its line in a log, where fields stand in braces. A line that is not made so
// is of a function of String.
var kinds = map[EventKind]struct {
	level slog.Level
	line  string
}{
	Joined:   {slog.LevelInfo, "executor {executor} has joined"},
	SentAway: {slog.LevelWarn, "executor {executor} is sent away: {reason}"},
	Doubled: {slog.LevelWarn, "a second process of executor {executor} has come{on host}; it has to go if the first " +
		"is heard again"},
	Repelled:      {slog.LevelWarn, "a second process of executor {executor}{on host} is refused: {reason}"},
	ExecutorEnded: {slog.LevelInfo, "executor {executor} has gone: {detail}"},
	OutOfReach: {slog.LevelWarn, "executor {executor} cannot be reached: {detail}; what it may have stays " +
		"reserved"},
	ExecutorReturned: {slog.LevelInfo, "executor {executor} is back"},
	Killed:           {slog.LevelWarn, "executor {executor} is killed, so that its memory is free: {detail}"},
	MemoryFreed:      {slog.LevelInfo, "what executor {executor} had is free: {detail}"},

	Queued:     {slog.LevelInfo, "job {job} is queued: {reason}"},
	Granted:    {slog.LevelInfo, "job {job} may train with layout {epoch} in {bytes}"},
	Reassigned: {slog.LevelInfo, "job {job} had not begun: {detail}; it gets another executor"},
	Migrating:  {slog.LevelInfo, ""},
	Disproved:  {slog.LevelInfo, ""},
	Restarted:  {slog.LevelWarn, "job {job} goes on from iteration {iterations}: {detail}"},
	Rested:     {slog.LevelInfo, "job {job} is parked after {iterations} iterations"},
	Preempted:  {slog.LevelInfo, "job {job} gives way to job {reason}{, as detail}"},
	Troubled:   {slog.LevelWarn, "job {job}: {detail}"},
	Ended:      {slog.LevelInfo, "job {job} {state} after {iterations} iterations{: detail}"}, // an error, if it failed

	Opened:         {slog.LevelInfo, "device {device}{on host} is planned for: {reason}, budget {budget or unlimited}"},
	Closed:         {slog.LevelInfo, "device {device} is not planned for any more: nobody has it"},
	Adopted:        {slog.LevelInfo, ""},
	Shared:         {slog.LevelInfo, "{reason}"},
	Unplanned:      {slog.LevelInfo, "no new plans after {reason}: {detail}"},
	BudgetRestored: {slog.LevelInfo, "{reason}"},
	BudgetChanged:  {slog.LevelInfo, "{reason}: all jobs are planned for again"},
	Shrinking:      {slog.LevelInfo, "jobs hold {bytes} of {budget}{contexts}; they shrink"},
	Stuck: {slog.LevelWarn, "jobs hold {bytes} of {budget}{contexts}, and cannot shrink that far; nothing else " +
		"begins until some have ended: {detail}"},
}

// Event is a fact for logs and counters: what a machine has decided or been told. Its kind says which fields are set.
type Event struct {
	Kind       EventKind     `json:"kind"`
	Job        string        `json:"job,omitzero"`
	Executor   string        `json:"executor,omitzero"`
	Host       string        `json:"host,omitzero"` // of Disproved: perhaps two
	Device     string        `json:"device,omitzero"`
	State      wire.JobState `json:"state,omitzero"`
	Iterations int           `json:"iterations,omitzero"`
	Epoch      int64         `json:"epoch,omitzero"`
	Plans      int           `json:"plans,omitzero"`
	Amounts
	Benefit
	Reason string `json:"reason,omitzero"`
	Cause  Cause  `json:"cause,omitzero"`
	Detail string `json:"detail,omitzero"`
}

// Amounts are what an event says of device memory: that jobs have or need Bytes, of Budget.
type Amounts struct {
	Bytes    graph.Bytes   `json:"bytes,omitzero"`
	Budget   graph.Bytes   `json:"budget_bytes,omitzero"`
	Contexts wire.Contexts `json:"contexts,omitzero"` // which are part of Bytes
}

// Benefit is what an event says of a change that is to make iterations shorter.
type Benefit struct {
	Gain       time.Duration `json:"gain_ns,omitzero"`
	Transition time.Duration `json:"transition_ns,omitzero"`
	Saved      time.Duration `json:"saved_ns,omitzero"`
	Rest       time.Duration `json:"rest_ns,omitzero"`
}

// String is the event as a line of a log.
func (e Event) String() string {
	row, known := kinds[e.Kind]
	if !known {
		panic("controller: an event of unknown kind " + string(e.Kind))
	}
	switch e.Kind {
	case Migrating:
		return fmt.Sprintf("job %s %s", e.Job, e.migrationText())
	case Disproved:
		return e.inVainText()
	case Adopted:
		return e.adoptedText()
	}
	more := func(before string) string {
		if e.Detail == "" {
			return ""
		}
		return before + e.Detail
	}
	return strings.NewReplacer("{job}", e.Job, "{executor}", e.Executor, "{on host}", fleet.OnHost(e.Host), "{device}",
		e.Device, "{state}", string(e.State), "{iterations}", strconv.Itoa(e.Iterations), "{epoch}",
		strconv.FormatInt(e.Epoch, 10), "{bytes}", e.Bytes.String(), "{budget}", e.Budget.String(),
		"{budget or unlimited}", budgetText(e.Budget), "{contexts}", e.Contexts.Suffix(), "{reason}", e.Reason,
		"{detail}", e.Detail, "{: detail}", more(": "), "{, as detail}", more(", as ")).Replace(row.line)
}

// adoptedText says in words that there are new plans.
func (e *Event) adoptedText() string {
	line := fmt.Sprintf("new plans for %d jobs: %s", e.Plans, e.Reason)
	if e.Plans == 1 {
		line = "a new plan: " + e.Reason
	}
	if e.Gain > 0 {
		line += fmt.Sprintf("; gain over the next iterations %v, transition %v", text.Duration(e.Gain),
			text.Duration(e.Transition))
	}
	return line
}

// level is the level of the event's line in a log.
func (e *Event) level() slog.Level {
	if e.Kind == Ended && e.State == wire.JobFailed {
		return slog.LevelError
	}
	return kinds[e.Kind].level
}

// attrs are the event's facts for programs, under keys that stay.
func (e *Event) attrs() []slog.Attr {
	list := wire.NewFacts(string(e.Kind))
	list.Text("job", e.Job)
	list.Text("executor", e.Executor)
	list.Text("host", e.Host)
	list.Number("epoch", e.Epoch)
	list.Text("state", string(e.State))
	list.Text("device", e.Device)
	switch e.Kind {
	case Migrating:
		list = append(list, slog.Duration("gain", e.Gain), slog.Duration("transition", e.Transition))
	case Disproved:
		list = append(list, slog.Duration("gain", e.Gain), slog.Duration("saved", e.Saved),
			slog.Duration("rest", e.Rest))
	case Ended, Rested, Restarted:
		list = append(list, slog.Int("iterations", e.Iterations))
	}
	list.Number("plans", int64(e.Plans))
	list.Number("bytes", int64(e.Bytes))
	list.Number("budget_bytes", int64(e.Budget))
	list.Text("cause", string(e.Cause))
	list.Text("reason", e.Reason)
	list.Text("why", e.Detail)
	return list
}
