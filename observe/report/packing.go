package report

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"tensile/graph"
	"tensile/graph/text"
	"tensile/plan/pool"
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

// WriteTable prints the report for people; capacity is what the layout was to fit into (0: none), needs what the record
// needs beside it, outside the iterations.
func (r *Packing) WriteTable(out io.Writer, capacity, needs int64) error {
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
	switch needs = max(needs, r.Height); {
	case capacity >= needs && capacity > 0:
		row("capacity", capacity, fmt.Sprintf("met with %d bytes to spare", capacity-needs))
	case capacity > 0:
		row("capacity", capacity, fmt.Sprintf("exceeded by %d bytes", needs-capacity))
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

// Iteration is what tensile pool --trace prints beside the layout. Events are counted from 0 and without what stands
// for blocks from before the history of a snapshot.
type Iteration struct {
	First   int  `json:"first_event"`
	Events  int  `json:"events"`
	Repeats int  `json:"repeats"` // 1: the record is taken as a whole
	Whole   bool `json:"whole"`   // the layout is that of the whole record
	Blocks  int  `json:"blocks"`  // in the layout

	Peak   int64 `json:"peak"`                  // the most bytes that were allocated at once, anywhere in the record
	Steady int64 `json:"steady_peak,omitempty"` // in an iteration, or in what repeats instead
	WarmUp *Part `json:"warm_up,omitempty"`     // before the first of them
	Tail   *Part `json:"tail,omitempty"`        // after the last one

	Part   *Repetition  `json:"repetition,omitempty"` // what repeats but is no iteration
	Before BlocksBefore `json:"before,omitzero"`      // from before the history of a snapshot
	OOM    []OOM        `json:"out_of_memory,omitempty"`

	Online int64 `json:"online_height"` // what best fit needs that does not know the future
	// different bytes that were used; 0: the blocks' ids are no addresses
	Addresses int64 `json:"address_bytes,omitempty"`
}

// Part is a part of a record.
type Part struct {
	First  int   `json:"first_event"`
	Events int   `json:"events"`
	Peak   int64 `json:"peak"`
}

// Repetition is a part that repeats and is no iteration.
type Repetition struct {
	First   int    `json:"first_event"`
	Events  int    `json:"events"`
	Repeats int    `json:"repeats"`
	Reason  string `json:"why"` // a clause that goes on after "but"
}

// BlocksBefore are blocks from before a record.
type BlocksBefore struct {
	Blocks int   `json:"blocks"`
	Bytes  int64 `json:"bytes"`
}

// OOM is a request for which there was no memory.
type OOM struct {
	Event int   `json:"event"`
	Asked int64 `json:"asked"`
	Free  int64 `json:"device_free"`
	Held  int64 `json:"allocated"`
}

// write prints what repeats.
func (r *Iteration) write(out io.Writer) {
	switch {
	case r.Part != nil:
		repeat := text.Count(r.Part.Events, "event") + " repeat"
		if r.Part.Events == 1 {
			repeat += "s"
		}
		fmt.Fprintf(out, "no iteration: the whole record is taken as one, %d events; %s %d times from event %d on, "+
			"but %s: record three or more equal steps that leave nothing behind, and nothing after them\n",
			r.Events, repeat, r.Part.Repeats, r.Part.First, r.Part.Reason)
	case r.Repeats == 1:
		fmt.Fprintf(out, "nothing repeats: the whole trace is taken as one iteration of %d events\n", r.Events)
	default:
		fmt.Fprintf(out, "iteration of %d events, %d times from event %d on\n", r.Events, r.Repeats, r.First)
	}
	if r.Whole && r.Repeats > 1 {
		fmt.Fprintln(out, "the layout is that of the whole record: more is allocated at once around the iterations "+
			"than in them")
	}
	if r.Before.Blocks > 0 {
		fmt.Fprintf(out, "%s of %s from before the history: it was begun later, or its buffer ran over\n",
			text.Count(r.Before.Blocks, "block"), graph.Bytes(r.Before.Bytes))
	}
	for _, o := range r.OOM {
		fmt.Fprintf(out, "out of memory at event %d: %s asked for, beside %s allocated; %s of the device free\n",
			o.Event, graph.Bytes(o.Asked), graph.Bytes(o.Held), graph.Bytes(o.Free))
	}
}

// rows prints what the record needed without the layout.
func (r *Iteration) rows(row func(what string, bytes int64, note string)) {
	before, within, after, what := "warm-up", "steady", "tail", "the iterations"
	if r.Part != nil {
		before, within, after, what = "before", "repeated", "after", "what repeats"
	}
	if p := r.WarmUp; p != nil {
		row(before, p.Peak, fmt.Sprintf("in the %d events before %s", p.Events, what))
	}
	if r.WarmUp != nil || r.Tail != nil {
		row(within, r.Steady, "in "+what)
	}
	if p := r.Tail; p != nil {
		row(after, p.Peak, fmt.Sprintf("in the %d events after %s", p.Events, what))
	}
	row("peak", r.Peak, "allocated at once")
	if r.Addresses > 0 {
		row("addresses", r.Addresses, "used in the trace")
	}
	row("online", r.Online, "by best fit, which does not know the future")
}
