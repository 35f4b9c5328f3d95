package explain

import (
	"time"

	"tensile/graph"
)

// Job answers why a job is where it is.
type Job struct {
	Job       string      `json:"job"`
	Model     string      `json:"model"`
	Device    string      `json:"device"`
	State     string      `json:"state"`
	Reason    string      `json:"why,omitempty"` // it waits
	Iteration int         `json:"iteration"`     // that it has come to
	Of        int         `json:"of"`
	Budget    graph.Bytes `json:"budget_bytes"`     // of all jobs; 0: no limit
	Taken     graph.Bytes `json:"taken_bytes"`      // of that
	Shared    bool        `json:"shared"`           // jobs share memory, so that Taken is less than the sum of Holders
	Holders   []Holder    `json:"holders"`          // who has it
	Has       *Plan       `json:"has,omitempty"`    // the plan that it has; nil: none
	Time      *Time       `json:"time,omitempty"`   // of an iteration; nil: none was measured with that plan
	Stalls    []Stall     `json:"stalls,omitempty"` // the longest, by the measured times of steps; at most MaxStalls
	// StallsRest is how long the stalls take that are not listed.
	StallsRest time.Duration `json:"stalls_rest_ns,omitzero"`
	// Plans are those that the planner makes for the present settings, first, and for others. None where the job is
	// not planned for.
	Plans []Alternative `json:"plans"`
}

// Plan is the plan that a job has, with what was predicted when it was made.
type Plan struct {
	Epoch  int64    `json:"epoch"`
	Stands Standing `json:"stands"`
	Outcome
}

// MaxStalls is how many stalls a Job lists.
const MaxStalls = 5

// Holder is who has memory of the device.
type Holder struct {
	Job      string      `json:"job,omitempty"` // "": the processes that have the device open
	State    string      `json:"state,omitempty"`
	Priority int         `json:"priority,omitzero"`
	Bytes    graph.Bytes `json:"bytes"`
	// Base is what of it the job has also between two iterations, where jobs share memory.
	Base graph.Bytes `json:"base_bytes,omitzero"`
	// Away: an executor that cannot be reached may still have it.
	Away bool `json:"away,omitzero"`
}

// Alternative is what the planner makes of a budget and a priority. Nobody trains by it.
type Alternative struct {
	Budget   graph.Bytes `json:"budget_bytes"`      // of all jobs; 0: no limit
	Priority int         `json:"priority"`          // of the job
	Same     bool        `json:"same,omitzero"`     // the job's newest plan would be the job's still
	Error    string      `json:"error,omitempty"`   // there is no plan for the job: why
	Jobs     []Outcome   `json:"jobs"`              // those that have memory then
	Waiting  []string    `json:"waiting,omitempty"` // those that wait then
}

// Outcome is one job's plan. Times are predicted.
type Outcome struct {
	Job        string        `json:"job"`
	Arena      graph.Bytes   `json:"arena_bytes"`
	Iteration  time.Duration `json:"iteration_ns"` // beside the other jobs of the plan
	Stall      time.Duration `json:"stall_ns"`     // in it, by the plan alone
	Swapped    graph.Bytes   `json:"swapped_bytes"`
	Recomputes int           `json:"recomputes"`
	// Speed is that expected beside the others, as a share of its speed alone and without a plan, where jobs share
	// memory by gates; 0: nothing is expected.
	Speed float64 `json:"speed,omitzero"`
}

// outcomeOf returns the outcome of a job; nil: it waits.
func (a *Alternative) outcomeOf(job string) *Outcome {
	for i := range a.Jobs {
		if a.Jobs[i].Job == job {
			return &a.Jobs[i]
		}
	}
	return nil
}
