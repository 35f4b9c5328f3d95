package planner

import (
	"fmt"

	"tensile/graph"
)

// Verdict is what becomes of a job that asks for memory beside others.
type Verdict string

const (
	AtOnce      Verdict = "together"    // it trains with the others, by gates
	Alternating Verdict = "alternating" // it takes turns with the others, each alone on the device
	Queued      Verdict = "queue"       // it waits until others are done
	Never       Verdict = "never"       // it does not fit, whatever the others do
)

// Admission is what is known of jobs of which the last one asks to be admitted beside the others.
type Admission struct {
	Budget graph.Bytes // of the device, for all jobs
	Least  graph.Bytes // with which all can run together; larger than the budget if that is what plans would need
	EOR    float64     // expected of all together, against taking turns; as Together.ExpectedEOR
	Alone  graph.Bytes // with which the last one can run alone
	Turns  bool        // jobs may take turns: all go Home between them
}

// Verdict says what becomes of the job, and why, in a line for people. Jobs that would be slower together than in turns
// take turns, if they may.
func (a *Admission) Verdict() (Verdict, string) {
	switch {
	case a.Alone > a.Budget:
		return Never, fmt.Sprintf("it needs %s alone, and the device has %s for all jobs: give a larger budget",
			a.Alone, a.Budget)
	case a.Least <= a.Budget && (a.EOR <= 1 || !a.Turns):
		return AtOnce, fmt.Sprintf("all jobs fit into %s together, of %s, and take %.3f of the time of turns", a.Least,
			a.Budget, a.EOR)
	case a.Least <= a.Budget:
		return Alternating, fmt.Sprintf("all jobs fit into %s together, of %s, but would take %.3f of the time of "+
			"turns", a.Least, a.Budget, a.EOR)
	case a.Turns:
		return Alternating, fmt.Sprintf("all jobs together need %s, of %s; each alone has enough", a.Least, a.Budget)
	}
	return Queued, fmt.Sprintf("all jobs together need %s, of %s: it waits until others are done", a.Least, a.Budget)
}
