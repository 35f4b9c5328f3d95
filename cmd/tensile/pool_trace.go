package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"tensile/observe/report"
	"tensile/plan/pool"
	"tensile/plan/pool/trace"
)

// device is that of a snapshot to be taken; nil: the only one.
func (f *poolFlags) snapshotDevice() (*int, error) {
	if f.device == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(f.device)
	switch {
	case err != nil || n < 0:
		return nil, fmt.Errorf("--device %q: give the number of a device in the snapshot, such as 0", f.device)
	case !f.trace:
		return nil, errors.New("--device chooses one of a snapshot: give --trace too")
	}
	return &n, nil
}

// readTrace reads a trace and takes the blocks of its iteration as buffers, or what swaps leave of them.
func (p *packing) readTrace(in io.Reader, device *int, swap *swapFlags) error {
	r, err := trace.Import(in, p.name, trace.ImportOptions{Device: device})
	if err != nil {
		return p.remedy(err)
	}
	a, err := trace.AnswerOf(r, swap.limit != "")
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	l := a.Lifetimes
	p.buffers = l.Buffers
	for _, r := range l.Residents {
		p.ids = append(p.ids, fmt.Sprintf("%s@%d", r.Block, r.Slot))
	}
	online, err := pool.Pack(l.Buffers, pool.Options{Method: "online"})
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.iteration = iterationOf(r, a)
	p.iteration.Online = online.Height
	p.iteration.Addresses = trace.AddressBytes(r.Trace[:l.From+l.Events], l.From)
	if swap.limit != "" {
		for _, around := range []*report.Part{p.iteration.WarmUp, p.iteration.Tail} {
			if around != nil && a.Found.Repeats > 1 {
				p.needs = max(p.needs, around.Peak)
			}
		}
		return p.swap(swap, r.Trace, l)
	}
	return nil
}

// iterationOf reports on the iteration of a record. Its events are counted without what stands for blocks from before.
func iterationOf(r *trace.Record, a *trace.Answer) *report.Iteration {
	part := func(from, to int, peak int64) *report.Part {
		if from == to {
			return nil // there is none
		}
		return &report.Part{First: from - r.Before, Events: to - from, Peak: peak}
	}
	found, inner := a.Found, a.Found
	if a.Part != nil {
		inner = a.Part.Iteration
	}
	end := inner.From + inner.Events*inner.Repeats
	it := &report.Iteration{First: found.From - r.Before, Events: found.Events, Repeats: found.Repeats, Whole: a.Whole,
		Blocks: len(a.Lifetimes.Buffers), Peak: a.Peak, Steady: a.Steady,
		WarmUp: part(r.Before, inner.From, a.WarmUp), Tail: part(end, len(r.Trace), a.Tail)}
	if a.Part != nil {
		it.Part = &report.Repetition{First: inner.From - r.Before, Events: inner.Events, Repeats: inner.Repeats,
			Reason: a.Part.Why}
	}
	for _, e := range r.Trace[:r.Before] {
		it.Before.Blocks++
		it.Before.Bytes += e.Bytes
	}
	for _, o := range r.OOM {
		it.OOM = append(it.OOM, report.OOM{Event: o.Event - r.Before, Asked: o.Asked, Free: o.Free, Held: o.Held})
	}
	return it
}

// unprintable reports whether an error, which is one line of text, cannot have a character of a file's name.
func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }

// remedy says what to do about a file that cannot be read as a trace.
func (p *packing) remedy(err error) error {
	switch {
	case errors.Is(err, trace.ErrDevices):
		return fmt.Errorf("%w with --device", err)
	case errors.Is(err, trace.ErrPickle) && (p.path == "-" || strings.ContainsFunc(p.path, unprintable)):
		return fmt.Errorf(`%w; convert it in the pipe: python -c "import json,pickle,sys; `+
			`json.dump(pickle.load(sys.stdin.buffer), sys.stdout)"`, err)
	case errors.Is(err, trace.ErrPickle):
		return fmt.Errorf(`%w; convert it: python -c "import json,pickle,sys; json.dump(pickle.load(open(sys.argv[1],`+
			`'rb')), open(sys.argv[2],'w'))" %s %s`, err, shellWord(p.path), shellWord(p.path+".json"))
	}
	return err
}
