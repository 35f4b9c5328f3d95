package timeline

import (
	"time"

	"tensile/graph"
)

// Section is what a section of a job's program has done.
type Section struct {
	Device    string      `json:"device"`
	Job       string      `json:"job"`
	Kind      Kind        `json:"kind"`
	Epoch     int64       `json:"epoch"` // of the plan
	Iteration int         `json:"iteration"`
	Number    int         `json:"number"`      // of the job's sections that were recorded, from 0
	Arena     graph.Bytes `json:"arena_bytes"` // of the device, for the job
	Held      graph.Bytes `json:"held_bytes"`  // of the arena, by content that is there when the section begins
	Lanes     []string    `json:"lanes"`
	Spans     []Span      `json:"spans"`            // in the program's order
	Levels    []Level     `json:"levels,omitempty"` // in no order
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
	Lane  int           `json:"lane"`
	Name  string        `json:"name"` // of the op, or of the storage that is copied
	Does  string        `json:"does"` // program.Kind
	Slot  int           `json:"slot"` // the step of the plan, or the one that a copy follows
	Again bool          `json:"again,omitzero"`
	Bytes graph.Bytes   `json:"bytes,omitzero"` // that are copied
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`

	// On the compute lane: for how long it stood still before the command for other commands, and for how long because
	// a group waited for memory that other jobs had.
	Stall time.Duration `json:"stall_ns,omitzero"`
	Gate  time.Duration `json:"gate_ns,omitzero"`
	After *Cause        `json:"after,omitempty"` // the command that was waited for last, with a Stall

	Expected *Expected `json:"expected,omitempty"` // where an iteration was predicted
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
