package controller

import (
	"math"

	"tensile/wire"
)

// losses are those that reports of a job have told. They make up the result if the job's executor is lost.
type losses struct {
	// values has one loss per iteration. It is NaN where none was heard of: a report was lost, or the controller was
	// started anew.
	values []float32
	// last is the newest loss. nil: none was heard of.
	last *wire.Loss
	// overflow says that there are more than are kept; then none is.
	overflow bool
}

// add adds the loss of an iteration.
func (l *losses) add(iteration int, loss *wire.Loss) {
	if loss == nil {
		return
	}
	l.last = loss
	if l.overflow = l.overflow || iteration >= wire.MaxLosses; l.overflow {
		l.values = nil
		return
	}
	for len(l.values) <= iteration {
		l.values = append(l.values, float32(math.NaN()))
	}
	l.values[iteration] = float32(*loss)
}

// result is what remains of a job whose executor cannot tell its result. nil: nothing remains.
func (l *losses) result() *wire.Result {
	if len(l.values) == 0 {
		return nil
	}
	return &wire.Result{Losses: l.values, Last: l.last}
}
