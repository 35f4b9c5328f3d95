package scheduler

import (
	"errors"
	"fmt"

	"tensile/graph"
)

// ErrNoPlan is what every expected refusal unwraps to.
var ErrNoPlan = errors.New("no plan fits")

// ErrStopped is the error of planning that Watch.Stop ended.
var ErrStopped = errors.New("planning was stopped")

// OverBudgetError says that the budget is too small, and by how much.
type OverBudgetError struct {
	Need   graph.Bytes
	Budget graph.Bytes
	Reason string
}

func (e *OverBudgetError) Error() string {
	return fmt.Sprintf("budget %s is too small: %s needed: %s", e.Budget, e.Need, e.Reason)
}

func (e *OverBudgetError) Unwrap() error { return ErrNoPlan }

// OverHostError says that the budget of host memory is too small, and by how much.
type OverHostError struct {
	Need   graph.Bytes // the memory with which there is a plan, or below which there is none
	Budget graph.Bytes
	Reason string
}

func (e *OverHostError) Error() string {
	return fmt.Sprintf("host memory of %s is too little: %s needed: %s", e.Budget, e.Need, e.Reason)
}

func (e *OverHostError) Unwrap() error { return ErrNoPlan }

// WorkLimitError says that planning used up its work before it found a plan that fits.
type WorkLimitError struct {
	Work int64 // the limit, in steps
	Last error // why the last plans found do not fit; nil: none was complete
}

func (e *WorkLimitError) Error() string {
	last := ""
	if e.Last != nil {
		last = "; the best plans up to then: " + e.Last.Error()
	}
	return fmt.Sprintf("no plan was found in %d steps of planning, the limit: plan fewer jobs together, give a larger "+
		"budget, or more steps with --planning-work%s", e.Work, last)
}

func (e *WorkLimitError) Unwrap() error { return ErrNoPlan }
