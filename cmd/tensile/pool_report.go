package main

import (
	"errors"
	"fmt"

	"tensile/plan/pool"
)

// interruptedError ends a search that a signal stopped; its layout was printed.
type interruptedError struct{ missed error } // how the capacity is missed, or nil

func (e interruptedError) Error() string {
	if e.missed != nil {
		return "interrupted: this is the best layout up to then; " + e.missed.Error()
	}
	return "interrupted: this is the best layout up to then"
}

func (e interruptedError) Unwrap() error { return errInterrupted }

// verdict says what is not as it was asked for. The signal is what stopped the search, if one did.
func (f *poolFlags) verdict(p *packing, l pool.Layout, capacity int64, signal error) error {
	missed := f.missed(p, l, capacity)
	if errors.Is(signal, errInterrupted) {
		return interruptedError{missed}
	}
	return missed
}

// missed is the error for a capacity that is too small for the layout.
func (f *poolFlags) missed(p *packing, l pool.Layout, capacity int64) error {
	if capacity > 0 && p.needs > max(capacity, l.Height) {
		return fmt.Errorf("%s: the record needs %d bytes before or after the iterations, where nothing is swapped, %d "+
			"more than --capacity %d: give it that", p.name, p.needs, p.needs-capacity, capacity)
	}
	if capacity == 0 || l.Height <= capacity {
		return nil
	}
	remedy := fmt.Sprintf("search longer with --deadline 1m, or give it %d", l.Height)
	switch {
	case l.LowerBound > capacity:
		remedy = fmt.Sprintf("no layout is below %d; give it that at least, or free something sooner", l.LowerBound)
	case l.Optimal:
		remedy = "no layout is lower; give it that, or free something sooner"
	case f.method != "search":
		remedy = fmt.Sprintf("try --method search, or give it %d", l.Height)
	case f.deadline > 0:
		remedy = fmt.Sprintf("search longer than --deadline %v, or give it %d", f.deadline, l.Height)
	}
	return fmt.Errorf("%s: the layout needs %d bytes, %d more than --capacity %d: %s", p.name, l.Height,
		l.Height-capacity, capacity, remedy)
}
