package timeline

import (
	"time"

	"tensile/graph"
)

// Section is what a section of a job's program has done.
type Section struct {
	// Device is the name of the device.
	Device string `json:"device"`
	// Job is the job's name.
	Job string `json:"job"`
	// Kind says which section it is.
	Kind Kind `json:"kind"`
	// Epoch numbers the plan.
	Epoch int64 `json:"epoch"`
	// Iteration is the iteration that it belongs to, from 0.
	Iteration int `json:"iteration"`
	// Number counts the job's sections that were recorded, from 0.
	Number int `json:"number"`
	// Arena is what the job has of the device, in bytes.
	Arena graph.Bytes `json:"arena_bytes"`
	// Held is how much content is in the arena when the section begins, in bytes.
	Held graph.Bytes `json:"held_bytes"`
	// Lanes are the names of the lanes.
	Lanes []string `json:"lanes"`
	// Spans are the commands in the program's order.
	Spans []Span `json:"spans"`
	// Levels are changes of the content in the arena, in no order.
	Levels []Level `json:"levels,omitempty"`
}

// Kind says which section it is.
type Kind string

// The kinds of sections.
const (
	Prologue Kind = "prologue"
	Body     Kind = "body"
	Epilogue Kind = "epilogue"
	Snapshot Kind = "snapshot" // a body that copies the job's state to the host as well
)

// Span is a command. Times are of the device's clock, moved by Recorder.Origin.
type Span struct {
	// Lane is the index of the lane in Section.Lanes.
	Lane int `json:"lane"`
	// Name is that of the op, or of the storage that is copied.
	Name string `json:"name"`
	// Does is the program.Kind of the command.
	Does string `json:"does"`
	// Slot is the step of the plan, or the one that a copy follows.
	Slot int `json:"slot"`
	// Again says that the op is executed again in this iteration.
	Again bool `json:"again,omitzero"`
	// Bytes is how much is copied; 0 for other commands.
	Bytes graph.Bytes `json:"bytes,omitzero"`
	// Start is when the command started, by the device's clock. So counts End.
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`

	// On the compute lane: for how long it stood still before the command for other commands, and for how long because
	// a group waited for memory that other jobs had.
	Stall time.Duration `json:"stall_ns,omitzero"`
	Gate  time.Duration `json:"gate_ns,omitzero"`
	// After is, with a Stall, the command that was waited for last; nil: unknown.
	After *Cause `json:"after,omitempty"`

	// Expected is when the command was predicted to run; nil where no iteration was predicted.
	Expected *Expected `json:"expected,omitempty"`
}

// Cause is a span, this one of the same section or of one before.
type Cause struct {
	Section int `json:"section"` // its Number
	Span    int `json:"span"`
}

// Expected is when a command was to run by the plan's latencies.
type Expected struct {
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`
}

// Level is a change of how much content the arena has.
type Level struct {
	At   time.Duration `json:"at_ns"`
	More graph.Bytes   `json:"more_bytes"` // negative: less
}
