package scheduler

import (
	"errors"
	"fmt"
	"time"

	"tensile/cost"
	"tensile/graph"
	"tensile/peak"
	"tensile/plan"
	"tensile/program"
)

// Job is one of the jobs to be scheduled.
type Job struct {
	Name    string
	Epoch   int64
	Graph   *graph.Graph
	Latency []time.Duration // per op: predicted or measured
	Scratch []graph.Bytes   // per op, of the device's variant
	Variant []string        // per op; nil: the first of each
}

// Request is all that a policy decides by.
type Request struct {
	Policy string
	Jobs   []Job
	Budget graph.Bytes // for the arenas of all jobs together; 0: no limit
	Out    cost.Link   // of the device; jobs share it
	In     cost.Link
	Align  graph.Bytes

	Options Options
	Stage   func(Stage) // called when a stage begins, for timing; may be nil

	rounds int // of packing so far
}

// Options switch parts of the policy tensile off, for ablation. The zero value is the recommended setting.
type Options struct {
	KeepOrder   bool // leave updates at the end of the iteration
	NoSwap      bool // plan no swaps that fit into free link time; those that stall stay possible
	NoRecompute bool
	NoRelax     bool   // fetch as late and drop as early as the peak demanded
	MaxRounds   int    // of packing and tightening for one order of the ops; 0: 12
	Pack        string // one of pool.Methods; empty: the recommended one
}

// Stage is a part of the work of Schedule.
type Stage string

const (
	Planning Stage = "plan"
	Packing  Stage = "pack"
)

// Result is what was decided.
type Result struct {
	Jobs     []Scheduled
	SlotPeak graph.Bytes // sum over jobs
	Arena    graph.Bytes // sum over jobs
	Rounds   int         // of packing, for all orders of the ops that were tried
}

// Scheduled is the plan of one job.
type Scheduled struct {
	Plan      *plan.Plan
	Layout    *program.Layout
	Footprint peak.Footprint
	Decisions []Decision
}

// Decision says what was done with one gap of a storage, and why.
type Decision struct {
	Storage  graph.StorageID
	Kind     string // "swap" or "recompute"
	From, To int    // slots of the accesses around the gap; To counts on from the last slot when it wraps
	Freed    int    // slots in which the storage is away
	Cost     time.Duration
	Reason   string
}

// ErrNoPlan is what every expected no of Schedule unwraps to.
var ErrNoPlan = errors.New("no plan fits")

// OverBudgetError says that the budget is too small, and by how much.
type OverBudgetError struct {
	Need   graph.Bytes
	Budget graph.Bytes
	Why    string
}

func (e *OverBudgetError) Error() string {
	return fmt.Sprintf("budget %s is too small: %s needed: %s", e.Budget, e.Need, e.Why)
}

func (e *OverBudgetError) Unwrap() error { return ErrNoPlan }

// WorkingSet is the largest memory that a single step of a job needs: no plan is below it.
type WorkingSet struct {
	Op    graph.OpID
	Bytes graph.Bytes // storages and scratch, each rounded up to the alignment
}

// WorkingSetOf returns the largest working set of a job's ops.
func WorkingSetOf(j Job, align graph.Bytes) WorkingSet {
	var largest WorkingSet
	for op := range j.Graph.Ops {
		need := rounded(j.Scratch[op], align)
		for _, s := range j.Graph.Touches(graph.OpID(op)) {
			need += rounded(j.Graph.Storages[s].Bytes, align)
		}
		if need > largest.Bytes {
			largest = WorkingSet{graph.OpID(op), need}
		}
	}
	return largest
}

func rounded(b, align graph.Bytes) graph.Bytes { return (b + align - 1) / align * align }
