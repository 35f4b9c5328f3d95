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
	Slack   []time.Duration // per op: by how much its latency may be off; nil: by nothing. A fetch ends so much earlier where it can
	Scratch []graph.Bytes   // per op, of the device's variant
	Variant []string        // per op; nil: the first of each
	// Measured says that the latencies follow what ops took in this run; else they were predicted (TENSILE, IV-E).
	Measured bool

	// Weight says how much the job's time is worth: a second that it loses counts as so many of a job of weight 1. From 1
	// to MaxWeight; 0: 1.
	Weight int
	// MaxSwapRate is the largest share of the job's swappable storages that may be swapped, up to 1; 0: no limit. A
	// storage is swappable if an iteration leaves it alone for a step or more between two accesses; an input's arrival is
	// no swap. It is what the limit of TENSILE's Algorithm 2 makes of the max swapping rate: see the package's comment.
	MaxSwapRate float64
}

// MaxWeight is the largest weight of a job.
const MaxWeight = 1000

func (j *Job) weight() int { return max(1, j.Weight) }

// check refuses a weight or rate that means nothing.
func (j *Job) check() error {
	if j.Weight < 0 || j.Weight > MaxWeight {
		return fmt.Errorf("job %s: weight %d: give 1 to %d, or 0 for 1", j.Name, j.Weight, MaxWeight)
	}
	if !(j.MaxSwapRate >= 0 && j.MaxSwapRate <= 1) {
		return fmt.Errorf("job %s: max swap rate %v: give a share of its storages up to 1, or 0 for no limit", j.Name, j.MaxSwapRate)
	}
	return nil
}

// Request is all that a policy decides by.
type Request struct {
	Policy string
	Jobs   []Job
	Budget graph.Bytes // for the arenas of all jobs together; 0: no limit
	Lowest bool        // without a budget: plan as low as the policy goes, not what is best for time
	Out    cost.Link   // of the device; jobs share it
	In     cost.Link
	Align  graph.Bytes

	Explain bool // decisions say of what is on the device at the peak why it stays, too
	Options Options
	Stage   func(Stage) // called when a stage begins, for timing; may be nil

	shares  []Share        // per job
	wirings []*wiring      // per job
	digests []graph.Digest // per job
	rounds  *int           // of packing so far
	meter   *meter
}

// Options switch parts of the policy tensile off, for ablation. The zero value is the recommended setting.
type Options struct {
	KeepOrder   bool // leave updates at the end of the iteration
	NoSwap      bool // plan no swaps that fit into free link time; those that stall stay possible
	NoRecompute bool
	NoHybrid    bool   // recompute only what swapping left above the budget, one storage after the other
	NoChains    bool   // recompute nothing whose inputs have to be recomputed for it
	NoStall     bool   // plan no swaps that stall
	LateOut     bool   // copy out after the access before the gap, not as soon as the content is made
	OneChannel  bool   // book both directions on one lane, as TENSILE does
	NoRelax     bool   // fetch as late and drop as early as the peak demanded
	Work        int64  // steps after which planning takes the best proven plans that it has; 0: UsualWork
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
	Rounds   int         // of packing, for all orders of the ops and all shares of the link that were tried
	Work     int64       // steps that planning and packing took: the same on every machine
	Limited  bool        // the search ended at its limit of work: a longer one may find better plans
}

// Scheduled is the plan of one job.
type Scheduled struct {
	Plan      *plan.Plan
	Layout    *program.Layout
	Footprint peak.Footprint
	Decisions []Decision
	Bounds    Bounds
	Phase     string        // ColdStart or Updated
	Unplanned time.Duration // what an iteration takes, by prediction, when nothing is swapped or recomputed

	Share   Share
	Out, In cost.Link // the share of the request's links: what the plan reckons with, and whoever times its program
}

// The phases of a job: its plans are made first for predicted latencies, and then for those that were measured.
const (
	ColdStart = "cold-start"
	Updated   = "updated"
)

// Decision says what was done with one gap of a storage, and why.
type Decision struct {
	Storage  graph.StorageID
	Kind     string        // "swap" or "recompute"; "keep" if Request.Explain asks for what stays at the peak
	From, To int           // slots of the accesses around the gap; To counts on from the last slot when it wraps
	Freed    int           // slots in which the storage is away
	Away     time.Duration // how long these take
	Cost     time.Duration // that the job is expected to lose; of what is kept, what it would lose
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
