package scheduler

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/peak"
	"tensile/plan"
	"tensile/plan/program"
)

// Result is what was decided. When planning ends with an error it holds Work alone.
type Result struct {
	// Jobs are the plans, per job of the request.
	Jobs []Scheduled
	// SlotPeak is the sum of the jobs' slot peaks, in bytes.
	SlotPeak graph.Bytes
	// Arena is the sum of the jobs' arenas, in bytes.
	Arena graph.Bytes
	// Together is the request's.
	Together bool
	// Least is what the jobs need, in bytes: Arena, or with Request.Together the bases and the largest rest of an
	// arena.
	Least graph.Bytes
	// Host is what the jobs have on the host, in bytes.
	Host graph.Bytes

	// ZeroStall is a lower bound of SlotPeak for plans of all jobs that are as Bounds.ZeroStall says. It is no less
	// than the sum of those of the jobs, each of which could have the whole link.
	ZeroStall graph.Bytes

	// Rounds is how often plans were packed, for all orders of the ops and all shares of the link that were tried.
	Rounds int
	// Work is how many steps planning and packing took. It is the same on every machine.
	Work int64
	// Again says that the policy asks to be called again after an iteration, with its report in Job.Last; without
	// Request.Reports, that it would have begun with other plans.
	Again bool
	// Limited says that the search ended at its limit of work. A longer one may find better plans.
	Limited bool
}

// Scheduled is the plan of one job.
type Scheduled struct {
	// Plan is the job's plan.
	Plan *plan.Plan
	// Layout are the offsets in its arena.
	Layout *program.Placement
	// Footprint is the memory in use, slot by slot.
	Footprint peak.Footprint
	// Base is, with Request.Together, what the pages take that hold something between two iterations, in bytes; else 0.
	Base graph.Bytes
	// Host is what the job has on the host, in bytes: the slots of the plan, and Job.OnHost.
	Host graph.Bytes
	// Decisions are what was swapped or recomputed, and why.
	Decisions []Decision
	// Bounds are limits that no plan of the job goes below.
	Bounds Bounds
	// Latencies is ColdStart or Updated.
	Latencies string
	// Unplanned is how long an iteration takes, by prediction, when nothing is swapped or recomputed.
	Unplanned time.Duration

	// Share is the job's share of the links.
	Share Share
	// Out and In are that share as links, with which the plan and its predicted times are made.
	Out, In cost.Link
}

// SameProgram reports whether the plans of two jobs become the same program: they are of one graph, and run and move
// the same at the same places, in the same times.
func (s *Scheduled) SameProgram(o *Scheduled) bool {
	p, q := s.Plan, o.Plan
	return s.Layout == o.Layout && p.Graph == q.Graph && slices.Equal(p.Steps, q.Steps) &&
		slices.Equal(p.Moves, q.Moves) && slices.Equal(p.Entry, q.Entry) && slices.Equal(p.Made, q.Made)
}

// Latencies of a job's plan: its first plans assume predicted ones, later plans measured ones.
const (
	ColdStart = "cold-start"
	Updated   = "updated"
)

// Share is a job's share of each direction of the link, in parts of Whole.
type Share struct{ Out, In int64 }

// Whole is the whole link: a number that up to 16 jobs can divide evenly.
const Whole = 720720

// Bounds are lower bounds of the peak of a job's plans.
type Bounds struct {
	WorkingSet graph.Bytes // the largest memory that a single step needs, storages and scratch as placed
	// ZeroStall holds for plans that execute the ops in this order, swap without losing time and do not recompute, if
	// ops take as long as the request says; also where the job has the whole link.
	ZeroStall graph.Bytes
}
