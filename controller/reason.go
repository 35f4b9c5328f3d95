package controller

import "fmt"

// Cause is the kind of a reason for which jobs are planned for. There are few, for counters.
type Cause string

const (
	Arrival   Cause = "arrival"   // jobs were admitted
	Departure Cause = "departure" // a job is over, or parked
	Drifted   Cause = "drift"     // measured latencies differ from the planned ones
	Asked     Cause = "policy"    // the policy asked to plan again
	Memory    Cause = "memory"    // the budget of the device or of its host has changed
	Reweighed Cause = "priority"  // the priority of a job, or the share of a tenant, has changed
	Processes Cause = "executors" // executors have taken memory or given it back
	Recorded  Cause = "graph"     // a script has recorded what it does
	Resumed   Cause = "restart"   // the controller was started again
)

// Causes are all of them.
func Causes() []Cause {
	return []Cause{Arrival, Departure, Drifted, Asked, Memory, Reweighed, Processes, Recorded, Resumed}
}

// reason is why jobs are planned for, and of which kind that is. Zero: there is no reason.
type reason struct {
	cause Cause
	text  string
}

// newReason returns a reason with its text.
func newReason(cause Cause, format string, args ...any) reason {
	return reason{cause, fmt.Sprintf(format, args...)}
}

func (r reason) isZero() bool { return r == reason{} }

// newEvent begins an event about plans that are made for the reason.
func (r reason) newEvent() Event { return Event{Reason: r.text, Cause: r.cause} }
