package explain

import (
	"time"

	"tensile/graph"
)

// Job answers why a job is where it is.
type Job struct {
	// Job is the job's name.
	Job string `json:"job"`
	// Model is its network.
	Model string `json:"model"`
	// Device is the identity of its device.
	Device string `json:"device"`
	// State is the job's wire.JobState.
	State string `json:"state"`
	// Over says that it will never run again.
	Over bool `json:"over,omitzero"`
	// Reason is what it waits for, or why it has failed; "": there is nothing to say.
	Reason string `json:"why,omitempty"`
	// Remedy is what people can do about that; "": nothing is to be done.
	Remedy string `json:"remedy,omitempty"`
	// Past is how it has gone until now; nil: the controller has heard nothing of that.
	Past *Past `json:"past,omitempty"`
	// Iteration is how many iterations are complete.
	Iteration int `json:"iteration"`
	// Of is how many complete it; 0: a script's own are not known.
	Of int `json:"of"`
	// Budget is the budget of all jobs in bytes; 0: no limit.
	Budget graph.Bytes `json:"budget_bytes"`
	// Taken is how much of Budget is taken.
	Taken graph.Bytes `json:"taken_bytes"`
	// Shared says that jobs share memory, so that Taken is less than the sum of Holders.
	Shared bool `json:"shared"`
	// Holders are who has the memory.
	Holders []Holder `json:"holders"`
	// Has is the plan that the job has; nil: it has none.
	Has *Plan `json:"has,omitempty"`
	// Time is what an iteration takes; nil: none was measured with that plan.
	Time *Time `json:"time,omitempty"`
	// Stalls are the longest stalls, by the measured times of steps; MaxStalls at most.
	Stalls []Stall `json:"stalls,omitempty"`
	// StallsRest is how long the stalls take that are not listed.
	StallsRest time.Duration `json:"stalls_rest_ns,omitzero"`
	// Plans are what the planner makes for the present settings, first, and for others; nil where the job is not
	// planned for. A job that is over has none, nor Budget, Taken and Holders.
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
	// Budget is the budget of all jobs in bytes; 0: no limit.
	Budget graph.Bytes `json:"budget_bytes"`
	// Priority is the job's.
	Priority int `json:"priority"`
	// Same says that the job would keep its newest plan.
	Same bool `json:"same,omitzero"`
	// Error is why there is no plan for the job; "": there is one.
	Error string `json:"error,omitempty"`
	// Jobs are those that would have memory.
	Jobs []Outcome `json:"jobs"`
	// Waiting are those that would wait.
	Waiting []string `json:"waiting,omitempty"`
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
