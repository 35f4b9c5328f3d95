package proof

import (
	"errors"
	"fmt"
	"strings"

	"tensile/graph"
)

// The kinds of problems that Validate finds; errors.Is tells them apart.
var (
	ErrForm        = errors.New("malformed")                   // ids or order out of range, a plan for another graph
	ErrNotResident = errors.New("not on the device")           // a step or move needs a storage that is not there
	ErrVersion     = errors.New("wrong version on the device") // it is there with another content
	ErrResident    = errors.New("already on the device")       // it would be made or copied in twice
	ErrStale       = errors.New("no valid host copy")          // copied in without a current host copy
	ErrRedundant   = errors.New("host copy already valid")     // copied out twice
	ErrExchange    = errors.New("all-reduce out of order")     // every replica executes them in the order of the graph
	ErrImpure      = errors.New("impure op repeated")          // what outlives an iteration is updated exactly once
	ErrMissing     = errors.New("op never runs")
	// gone from device and host while still needed after the iteration
	ErrLost = errors.New("content lost")
	// what is on the device after the last slot differs from Entry
	ErrBoundary    = errors.New("ends not as it began")
	ErrUndelivered = errors.New("output not on the host") // an output's last version is not copied out
	ErrOrder       = errors.New("not the script's order") // the ops of a script run as it runs them, and make all
	ErrScratch     = errors.New("too little scratch")     // less than a script's op allocates
)

// Problem is one reason why a plan is not valid.
type Problem struct {
	Slot    int             // the step, or the step that the move follows; -1 before slot 0
	Storage graph.StorageID // -1: none
	Kind    error           // one of the Err values
	Text    string
}

func (p *Problem) Error() string { return fmt.Sprintf("slot %d: %s: %s", p.Slot, p.Kind, p.Text) }
func (p *Problem) Unwrap() error { return p.Kind }

// InvalidError carries every problem of a plan.
type InvalidError struct {
	Job      string
	Problems []*Problem
}

// Error prints the first problems and how many more there are.
func (e *InvalidError) Error() string {
	const shown = 5
	var lines []string
	for i, p := range e.Problems {
		if i == shown {
			lines = append(lines, fmt.Sprintf("and %d more", len(e.Problems)-shown))
			break
		}
		lines = append(lines, p.Error())
	}
	return fmt.Sprintf("plan of job %q is not valid: %s", e.Job, strings.Join(lines, "; "))
}

// Unwrap lets errors.Is find any of the kinds.
func (e *InvalidError) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}
