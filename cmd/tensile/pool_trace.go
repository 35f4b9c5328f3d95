package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tensile/pool"
	"tensile/pool/trace"
)

// iterationReport is what tensile pool --trace prints beside the layout.
type iterationReport struct {
	First     int   `json:"first_event"` // from 0
	Events    int   `json:"events"`
	Repeats   int   `json:"repeats"`
	Blocks    int   `json:"blocks"` // with a place in the layout
	Unplaced  int   `json:"unplaced"`
	Peak      int64 `json:"peak"`                    // the most bytes that were allocated at once
	Online    int64 `json:"online_height"`           // what best fit needs that does not know the future
	Addresses int64 `json:"address_bytes,omitempty"` // different bytes that were used; 0: the blocks' ids are no addresses
}

// readTrace reads a trace and takes the blocks of its iteration as buffers.
func (p *packing) readTrace(in io.Reader) error {
	t, err := trace.Import(in, p.name, trace.ImportOptions{})
	if err != nil {
		return err
	}
	it, err := trace.Find(t)
	if errors.Is(err, trace.ErrNoIteration) {
		it, err = trace.Whole(t), nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	l, err := trace.LifetimesOf(t, it, trace.LifetimeOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.buffers = l.Buffers
	for _, r := range l.Residents {
		p.ids = append(p.ids, fmt.Sprintf("%s@%d", r.Block, r.Slot))
	}
	online, err := pool.Pack(l.Buffers, pool.Options{Method: "online"})
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.iteration = &iterationReport{First: it.From, Events: it.Events, Repeats: it.Repeats, Blocks: len(l.Buffers),
		Unplaced: len(l.Unplaced), Peak: l.Load, Online: online.Height, Addresses: addressBytes(t[:it.From+it.Events], it.From)}
	return nil
}

// write prints what repeats.
func (r *iterationReport) write(out io.Writer) {
	if r.Repeats == 1 {
		fmt.Fprintf(out, "nothing repeats: the whole trace is taken as one iteration of %d events\n", r.Events)
	} else {
		fmt.Fprintf(out, "iteration of %d events, %d times from event %d on\n", r.Events, r.Repeats, r.First)
	}
	if r.Unplaced > 0 {
		fmt.Fprintf(out, "%d blocks outlive the next malloc at their place in the iteration, and have none in the layout\n", r.Unplaced)
	}
}

// rows prints what the iteration needed without the layout.
func (r *iterationReport) rows(row func(what string, bytes int64, note string)) {
	row("peak", r.Peak, "allocated at once")
	if r.Addresses > 0 {
		row("addresses", r.Addresses, "used in the trace")
	}
	row("online", r.Online, "by best fit, which does not know the future")
}

// addressBytes is the number of different addresses that belonged to a block at event from or later, if the blocks'
// ids are addresses (0x...), else 0.
func addressBytes(t trace.Trace, from int) int64 {
	type byteRange struct{ lo, hi int64 }
	live := make(map[string]byteRange)
	var used []byteRange
	for i, e := range t {
		if i == from {
			used = slices.AppendSeq(used, maps.Values(live))
		}
		switch e.Kind {
		case trace.Malloc:
			at, err := strconv.ParseInt(e.Block, 0, 64)
			if err != nil || !strings.HasPrefix(e.Block, "0x") || e.Bytes > math.MaxInt64-at {
				return 0
			}
			live[e.Block] = byteRange{at, at + e.Bytes}
			if i >= from {
				used = append(used, live[e.Block])
			}
		case trace.Free:
			delete(live, e.Block)
		}
	}
	slices.SortFunc(used, func(a, b byteRange) int { return cmp.Compare(a.lo, b.lo) })
	var sum, end int64
	for _, r := range used {
		if r.hi > end {
			sum += r.hi - max(r.lo, end)
			end = r.hi
		}
	}
	return sum
}
