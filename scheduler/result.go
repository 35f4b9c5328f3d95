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
	Jobs     []Scheduled // per job of the request
	SlotPeak graph.Bytes // sum over jobs
	Arena    graph.Bytes // sum over jobs
	Together bool        // as in the request
	Least    graph.Bytes // that the jobs need: Arena; with Request.Together, the bases and the largest rest of an arena
	Host     graph.Bytes // sum over jobs

	// ZeroStall is a lower bound of SlotPeak for plans of all jobs that are as Bounds.ZeroStall says. It is no less
	// than the sum of those of the jobs, each of which could have the whole link.
	ZeroStall graph.Bytes

	Rounds int   // of packing, for all orders of the ops and all shares of the link that were tried
	Work   int64 // steps that planning and packing took: the same on every machine
	// Again says that the policy asks to be called again after an iteration, with its report in Job.Last; without
	// Request.Reports, that it would have begun with other plans.
	Again   bool
	Limited bool // the search ended at its limit of work: a longer one may find better plans
}

// Scheduled is the plan of one job.
type Scheduled struct {
	Plan      *plan.Plan
	Layout    *program.Placement
	Footprint peak.Footprint
	Base      graph.Bytes // with Request.Together: what the pages take that hold something between two iterations
	Host      graph.Bytes // that the job has on the host: the slots of the plan, and Job.OnHost
	Decisions []Decision
	Bounds    Bounds
	Latencies string        // ColdStart or Updated
	Unplanned time.Duration // what an iteration takes, by prediction, when nothing is swapped or recomputed

	Share   Share
	Out, In cost.Link // the share of the request's links: what the plan assumes, and its predicted times with it
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
