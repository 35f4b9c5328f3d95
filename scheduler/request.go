package scheduler

import (
	"cmp"
	"fmt"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
)

// Request is all that a policy decides by.
type Request struct {
	// Policy is the name of the policy.
	Policy string
	// Jobs are the jobs to plan for.
	Jobs []Job
	// Budget is the memory for the arenas of all jobs together, in bytes; 0: no limit.
	Budget graph.Bytes
	// Lowest has the policy, without a budget, plan as low as it goes, not what is best for time.
	Lowest bool
	// Out is the link from device to host, which the jobs share.
	Out cost.Link
	// In is the link from host to device, which the jobs share.
	In cost.Link
	// Align is what the offset of every storage in an arena is a multiple of, in bytes.
	Align graph.Bytes

	// HostBudget is the memory for what all jobs together have on the host, in bytes; 0: no limit.
	HostBudget graph.Bytes

	// Together says that the jobs share memory by gates: one at a time has its peak, each of the others at least what
	// it holds between two iterations, its base. The budget is then for the sum of the bases and the largest of what
	// the jobs need above theirs; latencies are those of a job alone, and each job has the whole link.
	Together bool
	// Page is the size of a page of device memory in bytes. With Together bases and arenas are whole pages; 0: Align.
	Page graph.Bytes

	// Reports says that the jobs will train by the plans and that their reports follow where a policy asks for them
	// (Result.Again): so it may begin with plans that only observe. Else the plans are the last ones that are
	// asked for.
	Reports bool

	// Explain has decisions also say why the storages that are on the device at the peak stay there.
	Explain bool
	// Options are those of the policy; nil: its recommended ones.
	Options Options
}

// Check returns an error that names the first setting without a meaning.
func (r *Request) Check() error {
	if r.HostBudget < 0 {
		return fmt.Errorf("%d bytes of host memory: give 1 or more, or 0 for no limit", r.HostBudget)
	}
	if r.Page < 0 {
		return fmt.Errorf("pages of %d bytes: give 1 or more, or 0 for the alignment", r.Page)
	}
	if r.Options.Work < 0 {
		return fmt.Errorf("%d steps of planning: give 1 or more, or 0 for %d", r.Options.Work, int64(defaultWork))
	}
	for i := range r.Jobs {
		if err := r.Jobs[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// Job is one of the jobs to be scheduled.
type Job struct {
	Name    string
	Epoch   int64
	Graph   *graph.Graph
	Latency []time.Duration // per op: predicted or measured
	// Slack says per op by how much its latency may be off; nil: by nothing. Prefetches are scheduled to finish this
	// much before their use where the link allows it.
	Slack []time.Duration
	// Variants are the device's ways to execute each op, the default one first. Policies take the first unless they say
	// otherwise. nil: each op has one variant, without a name and without scratch.
	Variants [][]Variant
	// Last is the report of an iteration with the last plan of the job; nil: there is none.
	Last *Report
	// Measured says that the latencies follow what ops took in this run; else they were predicted (TENSILE, IV-E).
	Measured bool

	// Least is the size of the smallest storage that may leave the device before its time; smaller ones are neither
	// swapped nor recomputed. 0: any may.
	Least graph.Bytes
	// Held is what the job has on the device beside its arena, all the time. The budget is for that too.
	Held graph.Bytes

	// OnHost is what the job has on the host beside its host slots (program.SlotsOf), whatever its plan.
	OnHost graph.Bytes

	// Weight says how much the job's time is worth: a second that it loses counts as so many seconds of a job of
	// weight 1. From 1 to MaxWeight; 0: 1.
	Weight int
	// MaxSwapRate is the largest share of the job's swappable storages that may be swapped, up to 1; 0: no limit. A
	// storage is swappable if an iteration leaves it alone for a step or more between two accesses; an input's
	// arrival is no swap. It is what the limit of TENSILE's Algorithm 2 makes of the max swapping rate: see the
	// package's comment.
	MaxSwapRate float64
}

// MaxWeight is the largest weight of a job.
const MaxWeight = 1000

// Worth is the weight with which the job's time counts, 1 at least.
func (j *Job) Worth() int { return max(1, j.Weight) }

// SwapLimit is the largest share of the job's swappable storages that may be swapped; 1: no limit.
func (j *Job) SwapLimit() float64 {
	if j.MaxSwapRate == 0 {
		return 1
	}
	return j.MaxSwapRate
}

// check refuses a weight or rate that means nothing.
func (j *Job) check() error {
	if j.Weight < 0 || j.Weight > MaxWeight {
		return fmt.Errorf("job %s: weight %d: give 1 to %d, or 0 for 1", j.Name, j.Weight, MaxWeight)
	}
	if !(j.MaxSwapRate >= 0 && j.MaxSwapRate <= 1) {
		return fmt.Errorf("job %s: max swap rate %v: give a share of its storages up to 1, or 0 for no limit",
			j.Name, j.MaxSwapRate)
	}
	return j.checkLists()
}

// Options are the settings that every policy has, and those of one policy. The zero value is recommended.
type Options struct {
	Work int64  // steps after which planning takes the best proven plans that it has; 0: DefaultWork
	Pack string // one of pool.Methods; empty: the recommended one
	// Own holds the options of one policy, for example a tensile.Options; nil: the recommended ones. Other policies
	// ignore them, so that the same request can be planned by several policies.
	Own any
}

// Steps is the limit of planning.
func (o *Options) Steps() int64 { return cmp.Or(o.Work, defaultWork) }

// defaultWork is the limit of planning that Options.Work stands for when it is 0.
const defaultWork = 3_000_000_000

// OptionsOf returns the request's options for a policy whose options are a T: the zero value if the request has none.
func OptionsOf[T any](r *Request) T {
	own, _ := r.Options.Own.(T)
	return own
}

// Watch follows planning that is under way. It has no effect on plans; the zero value follows nothing.
type Watch struct {
	// Stop is asked once in a while, by the caller's goroutine, and told how many steps have been counted. Once it
	// reports true, planning ends with ErrStopped.
	Stop  func(steps int64) bool
	Every int64       // steps between two questions; 0: 32,768, a fraction of a millisecond
	Stage func(Stage) // called when a stage begins
}

// Stage is a part of the work of planning.
type Stage string

const (
	Planning Stage = "plan"
	Packing  Stage = "pack"
)
