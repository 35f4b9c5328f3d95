package task

import (
	"fmt"
	"math"

	"tensile/graph"
)

// DivergedError is why a job trains no further: its loss, or what it has learned, is no finite number.
type DivergedError struct {
	Iteration int    // counted from 0, whose loss it is; of what was learned: complete ones
	What      string // the error's text
}

func (e *DivergedError) Error() string { return e.What }

const divergedRemedy = "lower --lr, or look in the data for what is no finite number"

// CheckLoss returns a DivergedError unless the loss of an iteration is a finite number.
func CheckLoss(iteration int, loss float32) error {
	if finite(loss) {
		return nil
	}
	remedy := divergedRemedy
	if iteration == 0 { // no rate has had an effect on it
		remedy = "look in the data, and in the file of --weights if there is one, for what is no finite number"
	}
	return &DivergedError{iteration, fmt.Sprintf("the loss of iteration %d (counted from 0) is %v: %s", iteration, loss,
		remedy)}
}

// Check returns a DivergedError if some iterations have made what is to be kept of the task useless: a parameter that
// is no finite number, or a state that is none at all. What is never trained, such as a mask, may hold anything.
func (t Task) Check(iterations int, contents map[graph.StorageID][]float32) error {
	trained := make(map[graph.StorageID]bool)
	for _, x := range t.Graph.Tensors {
		if x.Version > 0 {
			trained[x.Storage] = true
		}
	}
	for _, s := range t.Graph.Storages {
		if !trained[s.ID] {
			continue
		}
		for _, v := range contents[s.ID] {
			if finite(v) || s.Role != graph.Parameter && v == v {
				continue
			}
			return &DivergedError{iterations, fmt.Sprintf("%s has become %v after %d iterations: %s", nameOf(&s), v,
				iterations, divergedRemedy)}
		}
	}
	return nil
}

func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }
