package main

import (
	"errors"
	"fmt"
	"io"

	"tensile/pool"
	"tensile/pool/trace"
	"tensile/report"
)

// readTrace reads a trace and takes the blocks of its iteration as buffers, or what swaps leave of them.
func (p *packing) readTrace(in io.Reader, swap *swapFlags) error {
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
	p.iteration = &report.Iteration{First: it.From, Events: it.Events, Repeats: it.Repeats, Blocks: len(l.Buffers),
		Unplaced: len(l.Unplaced), Peak: l.Load, Online: online.Height,
		Addresses: trace.AddressBytes(t[:it.From+it.Events], it.From)}
	if swap.limit != "" {
		return p.swap(swap, t, l)
	}
	return nil
}
