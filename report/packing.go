package report

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"tensile/graph"
	"tensile/pool"
)

// Packing is what tensile pool prints. All but the time are counts or bytes.
type Packing struct {
	Buffers    int        `json:"buffers"`
	LowerBound int64      `json:"lower_bound"`
	Height     int64      `json:"height"`
	Optimal    bool       `json:"optimal"`
	Time       float64    `json:"ms"` // of packing alone
	Valid      bool       `json:"valid"`
	Iteration  *Iteration `json:"iteration,omitempty"`
	Swapping   *Swapping  `json:"autoswap,omitempty"`
	name       string
}

// NewPacking reports on a layout of some buffers; Valid and Swapping are the caller's to set. iteration may be nil.
// name is that of the file, for people.
func NewPacking(name string, buffers []pool.Buffer, l pool.Layout, took time.Duration, iteration *Iteration) *Packing {
	return &Packing{name: name, Buffers: len(buffers), LowerBound: l.LowerBound, Height: l.Height, Optimal: l.Optimal,
		Time: Milliseconds(took), Iteration: iteration}
}

// WriteTable prints the report for people; capacity is what the layout was to fit into (0: none).
func (r *Packing) WriteTable(out io.Writer, capacity int64) error {
	valid := "checked"
	if !r.Valid {
		valid = "WRONG"
	}
	fmt.Fprintf(out, "%s: %d buffers, packed in %.1f ms, layout %s\n", r.name, r.Buffers, r.Time, valid)
	if r.Iteration != nil {
		r.Iteration.write(out)
	}
	if r.Swapping != nil {
		if err := r.Swapping.write(out); err != nil {
			return err
		}
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(what string, bytes int64, note string) {
		fmt.Fprintf(t, "%s\t%d\t%s\t\t%s\n", what, bytes, graph.Bytes(bytes), note)
	}
	if r.Iteration != nil {
		r.Iteration.rows(row)
	}
	row("lower bound", r.LowerBound, "")
	note := fmt.Sprintf("%.5f of the lower bound", overBound(r.Height, r.LowerBound))
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

// overBound is the ratio of a height to its lower bound.
func overBound(height, bound int64) float64 {
	if height == bound {
		return 1
	}
	return float64(height) / float64(bound)
}

// Iteration is what tensile pool --trace prints beside the layout.
type Iteration struct {
	First    int   `json:"first_event"` // from 0
	Events   int   `json:"events"`
	Repeats  int   `json:"repeats"`
	Blocks   int   `json:"blocks"` // with a place in the layout
	Unplaced int   `json:"unplaced"`
	Peak     int64 `json:"peak"`          // the most bytes that were allocated at once
	Online   int64 `json:"online_height"` // what best fit needs that does not know the future
	// different bytes that were used; 0: the blocks' ids are no addresses
	Addresses int64 `json:"address_bytes,omitempty"`
}

// write prints what repeats.
func (r *Iteration) write(out io.Writer) {
	if r.Repeats == 1 {
		fmt.Fprintf(out, "nothing repeats: the whole trace is taken as one iteration of %d events\n", r.Events)
	} else {
		fmt.Fprintf(out, "iteration of %d events, %d times from event %d on\n", r.Events, r.Repeats, r.First)
	}
	if r.Unplaced > 0 {
		fmt.Fprintf(out, "%d blocks outlive the next malloc at their place in the iteration, and have none in the "+
			"layout\n", r.Unplaced)
	}
}

// rows prints what the iteration needed without the layout.
func (r *Iteration) rows(row func(what string, bytes int64, note string)) {
	row("peak", r.Peak, "allocated at once")
	if r.Addresses > 0 {
		row("addresses", r.Addresses, "used in the trace")
	}
	row("online", r.Online, "by best fit, which does not know the future")
}
