package controller

import (
	"math"

	"tensile/wire"
)

// losses are those that reports of a job have told, by iteration: what is left of them if its executor is lost.
type losses struct {
	values   []float32 // NaN where none was heard of: a report was lost, or the controller started anew
	last     *wire.Loss
	overflow bool // more than are kept, so that none is
}

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

// result is what remains of a job whose executor cannot tell; nil: nothing.
func (l *losses) result() *wire.Result {
	if len(l.values) == 0 {
		return nil
	}
	return &wire.Result{Losses: l.values, Last: l.last}
}
