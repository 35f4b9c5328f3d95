package explain

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/program"
)

// Storage is the life of one storage in an iteration.
type Storage struct {
	Job       string        `json:"job"`
	Storage   string        `json:"storage"`
	Role      graph.Role    `json:"role"`
	Bytes     graph.Bytes   `json:"bytes"`
	Epoch     int64         `json:"epoch"`        // of the plan
	Stands    Standing      `json:"plan"`         // of which all of this is
	Iteration time.Duration `json:"iteration_ns"` // predicted
	Begins    bool          `json:"begins"`       // it is on the device when an iteration begins
	Events    []Event       `json:"events"`       // in the order in which they start
	Decisions []Decision    `json:"decisions"`    // what the planner said of it when it made the plan
	// Unsaid: the planner gave no reason for any storage, since its policy does not decide gap by gap.
	Unsaid bool `json:"unsaid,omitzero"`
}

// Standing is what a plan is to a job.
type Standing string

const (
	InForce Standing = "in force" // it trains by it
	ToCome  Standing = "to come"  // it is to train by it, its first
	Now     Standing = "now"      // the job has none; this is the one that would be made now
)

// Event is something that an iteration does with a storage. Times are from the start of the iteration and predicted
// unless they are called measured.
type Event struct {
	What  What          `json:"what"`
	Step  int           `json:"step"` // of the plan; copies and drops: that they follow, -1 before the first
	Op    string        `json:"op,omitempty"`
	Start time.Duration `json:"start_ns"`
	Takes time.Duration `json:"takes_ns"`
	// Measured is how long it took in the newest iteration that was reported; nil: it was not measured.
	Measured *time.Duration `json:"measured_ns,omitempty"`
}

// What is the kind of an event.
type What string

const (
	Made    What = "made"       // an op writes the content
	Again   What = "made again" // it does so once more
	Updated What = "updated"    // an op changes the content in place
	Used    What = "used"       // an op reads it
	Leaves  What = "copied out" // to the host; it stays on the device
	Dropped What = "dropped"    // it leaves the device
	Returns What = "copied in"  // from the host
)

// LifeOf returns the life of a storage under a plan made executable. Commands take as long as d says; measured is how
// long each step took, nil if nobody has measured it. Job, Stands, Decisions and Unsaid are the caller's to
// set.
func LifeOf(p *program.Program, d program.Durations, storage graph.StorageID, measured []time.Duration) Storage {
	t := program.Time(p, d)
	g, s := p.Graph, &p.Graph.Storages[storage]
	life := Storage{Storage: s.Name, Role: s.Role, Bytes: s.Bytes, Epoch: p.Plan.Epoch, Iteration: t.Iteration,
		Begins: slices.Contains(p.Plan.Entry, storage), Events: []Event{}, Decisions: []Decision{}}
	kernels := make([]int, len(p.Plan.Steps)) // commands, by step
	copies := make(map[plan.Move]int)         // likewise, by kind and step
	for i, c := range p.Body.Commands {
		switch {
		case c.Kind.Executes():
			kernels[c.Slot] = i
		case c.Kind == program.Out && c.Storage == storage:
			copies[plan.Move{Kind: plan.Out, After: c.Slot}] = i
		case c.Kind == program.In && c.Storage == storage:
			copies[plan.Move{Kind: plan.In, After: c.Slot}] = i
		}
	}
	moves := func(after int) {
		for _, m := range p.Plan.Moves {
			if m.Storage != storage || m.After != after {
				continue
			}
			e := Event{What: Dropped, Step: after}
			if after >= 0 {
				e.Start = t.End[kernels[after]]
			}
			if i, ok := copies[plan.Move{Kind: m.Kind, After: after}]; ok {
				e.What, e.Start, e.Takes = Leaves, t.Start[i], t.End[i]-t.Start[i]
				if m.Kind == plan.In {
					e.What = Returns
				}
			}
			life.Events = append(life.Events, e)
		}
	}
	ran := make([]bool, len(g.Ops))
	moves(-1)
	for slot, step := range p.Plan.Steps {
		if what := does(g, step, storage, ran[step.Op]); what != "" {
			i := kernels[slot]
			e := Event{What: what, Step: slot, Op: g.Ops[step.Op].Name, Start: t.Start[i], Takes: t.End[i] - t.Start[i]}
			if measured != nil {
				e.Measured = &measured[slot]
			}
			life.Events = append(life.Events, e)
		}
		ran[step.Op] = true
		moves(slot)
	}
	return life
}

// does is what a step does with a storage; "": nothing.
func does(g *graph.Graph, step plan.Step, storage graph.StorageID, again bool) (what What) {
	op := &g.Ops[step.Op]
	reads := slices.ContainsFunc(op.Inputs, func(t graph.TensorID) bool { return g.Tensors[t].Storage == storage })
	writes := false
	for i, t := range op.Outputs {
		writes = writes || g.Tensors[t].Storage == storage && step.Want.Has(i)
	}
	switch {
	case writes && reads:
		return Updated
	case writes && again:
		return Again
	case writes:
		return Made
	case reads:
		return Used
	}
	return ""
}
