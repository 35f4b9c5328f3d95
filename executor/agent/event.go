package agent

import (
	"fmt"
	"log/slog"
	"time"

	"tensile/graph"
	"tensile/graph/text"
	"tensile/wire"
)

// EventKind is what has happened.
type EventKind string

const (
	Joined EventKind = "joined" // the controller was heard of: Executor
	// Job trains with the layout of Epoch in Arena; with its first, Iterations of Model begin, of which Done are
	// complete
	Applied EventKind = "applied"
	// Job has ended iteration Iterations with the layout of Epoch, which took Took, stalled for Stall, waited at gates
	// for Gate and had Loss
	Iterated     EventKind = "iterated"
	Troubled     EventKind = "troubled"     // Job goes on in spite of Why
	Over         EventKind = "over"         // Job is in State after Iterations; its weights are Saved, or in File; Why
	Interrupted  EventKind = "interrupted"  // Job has ended with its process after Iterations; it is Saved, or Why
	Dropped      EventKind = "dropped"      // nobody wants Job any more, after Iterations
	Noted        EventKind = "noted"        // Why is worth a line in the log of Job
	Resumed      EventKind = "resumed"      // Job begins after Iterations, with the checkpoint File
	Checkpointed EventKind = "checkpointed" // a checkpoint of Job after Iterations was written to File
	Rested       EventKind = "rested"       // Job is parked, after Iterations
)

// Event is something that a machine has been told or decided, for logs and counters. Which fields are set stands beside
// its kind; Job is set in all but Joined.
type Event struct {
	Kind       EventKind   `json:"kind"`
	Executor   string      `json:"executor,omitzero"`
	Job        string      `json:"job,omitzero"`
	Model      string      `json:"model,omitzero"` // "": it had begun before
	State      wire.State  `json:"state,omitzero"`
	Iterations int         `json:"iterations,omitzero"`
	Done       int         `json:"done,omitzero"`
	Epoch      int64       `json:"epoch,omitzero"`
	Arena      graph.Bytes `json:"arena_bytes,omitzero"`
	Iteration
	Saved  string `json:"saved,omitzero"`
	File   string `json:"file,omitzero"` // a checkpoint
	Reason string `json:"why,omitzero"`
}

// Iteration is what an event says of an iteration that has ended.
type Iteration struct {
	Took  time.Duration `json:"took_ns,omitzero"`
	Stall time.Duration `json:"stall_ns,omitzero"`
	Gate  time.Duration `json:"gate_ns,omitzero"`
	Loss  *wire.Loss    `json:"loss,omitzero"`
}

// level is how bad an event is.
func (e *Event) level() slog.Level {
	switch {
	case e.Kind == Over && e.State == wire.Failed:
		return slog.LevelError
	case e.Kind == Troubled || e.Kind == Dropped || e.Kind == Interrupted:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// attrs are an event's facts for programs, under keys that stay.
func (e *Event) attrs() []slog.Attr {
	list := wire.NewFacts(string(e.Kind))
	list.Text("job", e.Job)
	list.Number("epoch", e.Epoch)
	list.Text("model", e.Model)
	list.Text("state", string(e.State))
	switch e.Kind {
	case Iterated:
		list = append(list, slog.Int("iteration", e.Iterations), slog.Duration("took_ns", e.Took),
			slog.Duration("stall_ns", e.Stall), slog.Duration("gate_ns", e.Gate))
		if e.Loss != nil {
			list = append(list, slog.Any("loss", e.Loss))
		}
	case Over, Interrupted, Dropped, Resumed, Checkpointed, Rested:
		list = append(list, slog.Int("iterations", e.Iterations))
	}
	list.Number("bytes", int64(e.Arena))
	list.Text("file", e.File)
	list.Text("saved", e.Saved)
	list.Text("why", e.Reason)
	return list
}

// Log is the event as a line of its job's log; "": it has no line there.
func (e Event) Log() string {
	switch e.Kind {
	case Applied:
		return fmt.Sprintf("trains with layout %d in %s", e.Epoch, e.Arena)
	case Iterated:
		line := fmt.Sprintf("iteration %d: %v, stall %v", e.Iterations, text.Duration(e.Took), text.Duration(e.Stall))
		if e.Gate > 0 {
			line += fmt.Sprintf(", gate %v", text.Duration(e.Gate))
		}
		if e.Loss != nil {
			line += fmt.Sprintf(", loss %.4g", *e.Loss)
		}
		return line
	case Troubled, Noted:
		return e.Reason
	case Resumed:
		return fmt.Sprintf("goes on after %d iterations, from checkpoint %s", e.Iterations, e.File)
	case Checkpointed:
		return fmt.Sprintf("checkpoint after %d iterations: %s", e.Iterations, e.File)
	case Rested:
		return fmt.Sprintf("parked after %d iterations", e.Iterations)
	case Over, Interrupted:
		return e.endText()
	}
	return ""
}

// Notice is the event as a line for the person who started the process; "": it is none for them.
func (e Event) Notice() string {
	switch {
	case e.Kind == Joined:
		return fmt.Sprintf("joined the controller as %s, waiting for jobs", e.Executor)
	case e.Kind == Applied && e.Model != "" && e.Done > 0:
		return fmt.Sprintf("job %s goes on after %d of %d iterations of %s", e.Job, e.Done, e.Iterations, e.Model)
	case e.Kind == Applied && e.Model != "" && e.Iterations == 0:
		return fmt.Sprintf("job %s begun: %s", e.Job, e.Model)
	case e.Kind == Applied && e.Model != "":
		return fmt.Sprintf("job %s begun: %d iterations of %s", e.Job, e.Iterations, e.Model)
	case e.Kind == Over || e.Kind == Interrupted:
		return fmt.Sprintf("job %s %s", e.Job, e.endText())
	case e.Kind == Dropped:
		return fmt.Sprintf("job %s dropped after %d iterations: the controller does not want it any more", e.Job,
			e.Iterations)
	}
	return ""
}

// endText says how a job has ended.
func (e Event) endText() string {
	switch {
	case e.Kind == Interrupted && e.Reason != "":
		return fmt.Sprintf("ended after %d iterations: %s", e.Iterations, e.Reason)
	case e.Kind == Interrupted && e.Saved != "":
		return fmt.Sprintf("ended after %d iterations, saved in %s", e.Iterations, e.Saved)
	case e.Kind == Interrupted:
		return fmt.Sprintf("ended after %d iterations, not saved", e.Iterations)
	case e.State == wire.Failed:
		return "failed: " + e.Reason
	case e.State == wire.Suspended && e.Reason != "":
		return fmt.Sprintf("suspended after %d iterations; %s", e.Iterations, e.Reason)
	case e.State == wire.Suspended && e.File != "":
		return fmt.Sprintf("suspended after %d iterations; it goes on from checkpoint %s", e.Iterations, e.File)
	case e.State == wire.Suspended:
		return "suspended before it began"
	case e.Reason != "":
		return fmt.Sprintf("%s %s", e.State, e.Reason)
	case e.Saved != "":
		return fmt.Sprintf("%s after %d iterations, saved in %s", e.State, e.Iterations, e.Saved)
	}
	return fmt.Sprintf("%s after %d iterations", e.State, e.Iterations)
}
