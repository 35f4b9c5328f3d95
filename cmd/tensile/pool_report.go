package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"tensile/graph"
	"tensile/pool"
	"tensile/report"
)

// poolReport is what tensile pool prints. All but the time are counts or bytes.
type poolReport struct {
	Buffers    int              `json:"buffers"`
	LowerBound int64            `json:"lower_bound"`
	Height     int64            `json:"height"`
	Optimal    bool             `json:"optimal"`
	Time       float64          `json:"ms"` // of packing alone
	Valid      bool             `json:"valid"`
	Iteration  *iterationReport `json:"iteration,omitempty"`
	name       string
}

func newPoolReport(p *packing, l pool.Layout, took time.Duration) *poolReport {
	return &poolReport{name: p.name, Buffers: len(p.buffers), LowerBound: l.LowerBound, Height: l.Height, Optimal: l.Optimal,
		Time: report.Milliseconds(took), Iteration: p.iteration}
}

// write prints the report for people.
func (r *poolReport) write(out io.Writer, capacity int64) error {
	valid := "checked"
	if !r.Valid {
		valid = "WRONG"
	}
	fmt.Fprintf(out, "%s: %d buffers, packed in %.1f ms, layout %s\n", r.name, r.Buffers, r.Time, valid)
	if r.Iteration != nil {
		r.Iteration.write(out)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(what string, bytes int64, note string) {
		fmt.Fprintf(t, "%s\t%d\t%s\t\t%s\n", what, bytes, graph.Bytes(bytes), note)
	}
	if r.Iteration != nil {
		r.Iteration.rows(row)
	}
	row("lower bound", r.LowerBound, "")
	note := fmt.Sprintf("%.5f of the lower bound", ratio(r.Height, r.LowerBound))
	if r.Optimal {
		note += "; no layout is lower"
	}
	row("height", r.Height, note)
	switch {
	case capacity >= r.Height && capacity > 0:
		row("capacity", capacity, fmt.Sprintf("met with %d bytes to spare", capacity-r.Height))
	case capacity > 0:
		row("capacity", capacity, fmt.Sprintf("exceeded by %d bytes", r.Height-capacity))
	}
	return t.Flush()
}

// ratio is that of a height to what no layout is below.
func ratio(height, bound int64) float64 {
	if height == bound {
		return 1
	}
	return float64(height) / float64(bound)
}

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
func (f *poolFlags) verdict(name string, l pool.Layout, capacity int64, signal error) error {
	missed := f.missed(name, l, capacity)
	if errors.Is(signal, errInterrupted) {
		return interruptedError{missed}
	}
	return missed
}

// missed is the error for a capacity that is too small for the layout.
func (f *poolFlags) missed(name string, l pool.Layout, capacity int64) error {
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
	return fmt.Errorf("%s: the layout needs %d bytes, %d more than --capacity %d: %s", name, l.Height, l.Height-capacity, capacity, remedy)
}
