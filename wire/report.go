package wire

import (
	"time"

	"tensile/graph"
	"tensile/plan"
)

// Result is what a job came to. Statuses and records leave out losses and weights, which may be large. The whole Result
// is stored then, and Stored names it.
type Result struct {
	// Stored names where the losses and weights are: in a Status a key, in a Record an object of Results. "": there are
	// none.
	Stored string `json:"stored,omitzero"`
	// Last is the loss of the last iteration; nil without data.
	Last *Loss `json:"last_loss,omitempty" bound:"any"`
	// Losses are the losses per iteration, NaN for one that was not heard of; nil without data.
	Losses Losses `json:"losses,omitempty" bound:"any"`
	// Weights are the digests of the persistent storages, by their IDs; nil without data.
	Weights map[int32]string `json:"weights,omitempty" bound:"count"`
	// Begin is when the first iteration began: since the Unix epoch, or by the device's clock if that is virtual. So
	// are End, Left and First.
	Begin time.Duration `json:"begin_ns" bound:"sum"`
	// End is when the last iteration ended.
	End time.Duration `json:"end_ns" bound:"sum"`
	// Left is when the job left Home for the first iteration.
	Left time.Duration `json:"left_ns,omitzero" bound:"sum"`
	// First is when the first iteration ended.
	First time.Duration `json:"first_ns,omitzero" bound:"sum"`
	// Stall is for how long compute waited for copies, in all iterations.
	Stall time.Duration `json:"stall_ns" bound:"span"`
	// Gate is for how long compute waited for page grants, in all iterations; 0 without a lease.
	Gate time.Duration `json:"gate_ns,omitzero" bound:"span"`
	// Touched is the highest byte of an arena that a command has used.
	Touched graph.Bytes `json:"touched_bytes" bound:"bytes"`
	// Arena is the largest arena of all plans, in bytes.
	Arena graph.Bytes `json:"arena_bytes" bound:"bytes"`
	// SlotPeak is the highest slot peak of all plans, in bytes.
	SlotPeak graph.Bytes `json:"slot_peak_bytes" bound:"bytes"`
	// Plans is how many plans came into force.
	Plans int `json:"plans" bound:"count"`
	// Transition is the time spent on the way out of Home and back, between iterations of different plans too.
	Transition time.Duration `json:"transition_ns" bound:"span"`
	// Saved is the file that holds the weights where the executor ran; "": they were not saved.
	Saved string `json:"saved,omitzero"`
}

// Report is what was measured of an iteration.
type Report struct {
	// Executor is the executor's name.
	Executor string `json:"executor"`
	// Job is the job's name.
	Job string `json:"job"`
	// ID is that of the job's Spec.
	ID int64 `json:"id,omitzero" bound:"count"`
	// Incarnation is that of the assignment that the executor follows.
	Incarnation int64 `json:"incarnation,omitzero" bound:"count"`
	// Epoch numbers the layout in force.
	Epoch int64 `json:"epoch" bound:"count"`
	// Iteration is the number of the iteration, from 0.
	Iteration int `json:"iteration" bound:"count"`
	// Steps are the latencies of the plan's steps, waits left out.
	Steps []time.Duration `json:"steps_ns" bound:"span"`
	// Stall is for how long compute waited for copies.
	Stall time.Duration `json:"stall_ns" bound:"span"`
	// Gate is for how long compute waited for page grants. It is part of neither Steps nor Stall; 0 without a lease.
	Gate time.Duration `json:"gate_ns,omitzero" bound:"span"`
	// Wall is how long the iteration took.
	Wall time.Duration `json:"wall_ns" bound:"span"`
	// Touched is the highest byte of the arena that a command has used since the plan came into force; 0: unknown.
	Touched graph.Bytes `json:"touched_bytes,omitzero" bound:"bytes"`
	// Loss is the loss of the iteration; nil without data.
	Loss *Loss `json:"loss,omitempty" bound:"any"`
	// Copies are the copies of the iteration in the order of their streams; nil unless the assignment asks for them.
	Copies []Copy `json:"copies,omitempty"`
}

// Copy is what one copy of an iteration took. Times are since the iteration before ended.
type Copy struct {
	// Kind is plan.Out or plan.In.
	Kind plan.MoveKind `json:"kind"`
	// Storage is what was copied.
	Storage graph.StorageID `json:"storage" bound:"count"`
	// After is the step that the copy followed; -1: it followed none.
	After int `json:"after" bound:"step"`
	// Start is when the copy began, counted from the end of the iteration before. So is End.
	Start time.Duration `json:"start_ns" bound:"span"`
	// End is when the copy ended.
	End time.Duration `json:"end_ns" bound:"span"`
	// Stall is for how long compute waited for the copy.
	Stall time.Duration `json:"stall_ns,omitzero" bound:"span"`
}

// Layout is a plan with the offsets that its residencies and scratch have in the arena. Who receives it proves it
// before it runs.
type Layout struct {
	// Plan is the plan; never nil.
	Plan *plan.Plan `json:"plan" bound:"step"`
	// Offsets are the places of the residencies in the arena, in bytes, in the order of plan.StaysOf.
	Offsets []graph.Bytes `json:"offsets" bound:"bytes"`
	// Scratch are the places of the steps' scratch in the arena, in bytes, per step; 0 where a step has none, nil if
	// none has.
	Scratch []graph.Bytes `json:"scratch,omitempty" bound:"bytes"`
	// Arena is the size of the arena in bytes.
	Arena graph.Bytes `json:"arena_bytes" bound:"bytes"`

	// Reasons say why the plan is as it is; nil: its maker did not say.
	Reasons *Reasons `json:"reasons,omitempty"`
}
