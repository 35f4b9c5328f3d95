package compile

import (
	"fmt"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/pool"
	"tensile/plan/program"
)

// Buffers are what Place packs of a valid plan: each residency, and then the scratch of each step that has some.
// Sizes are multiples of align.
func Buffers(g *graph.Graph, p *plan.Plan, align graph.Bytes) []pool.Buffer {
	return buffersOf(g, p, plan.StaysOf(g, p), align)
}

func buffersOf(g *graph.Graph, p *plan.Plan, stays *plan.Stays, align graph.Bytes) []pool.Buffer {
	buffers := make([]pool.Buffer, 0, len(stays.Residencies)+len(p.Steps))
	rounded := func(b graph.Bytes) int64 { return int64((b + align - 1) / align * align) }
	for _, r := range stays.Residencies {
		buffers = append(buffers, pool.Buffer{Size: rounded(g.Storages[r.Storage].Bytes), Spans: r.Spans,
			Align: int64(align)})
	}
	for slot, step := range p.Steps {
		if step.Scratch > 0 {
			span := pool.Span{From: slot, To: slot + 1}
			buffers = append(buffers, pool.Buffer{Size: rounded(step.Scratch), Spans: []pool.Span{span},
				Align: int64(align)})
		}
	}
	return buffers
}

// Place packs the residencies of a valid plan. Offsets and sizes are multiples of align.
func Place(g *graph.Graph, p *plan.Plan, align graph.Bytes) (*program.Placement, error) {
	return PlaceBy(g, p, align, pool.Options{})
}

// PlaceBy is Place with a choice of how to pack.
func PlaceBy(g *graph.Graph, p *plan.Plan, align graph.Bytes, o pool.Options) (*program.Placement, error) {
	return placeBy(g, p, align, o, pool.Pack)
}

// PlaceAbove is PlaceBy with what is never away at the bottom of the arena, side by side: so that it takes as few pages
// as it can. The rest lies above.
func PlaceAbove(g *graph.Graph, p *plan.Plan, align graph.Bytes, o pool.Options) (*program.Placement, error) {
	return placeBy(g, p, align, o, func(buffers []pool.Buffer, o pool.Options) (pool.Layout, error) {
		var at int64
		for i := range buffers {
			if b := &buffers[i]; b.Spans[0] == (pool.Span{From: 0, To: len(p.Steps)}) {
				b.Fixed, b.At = true, at
				at += b.Size
			}
		}
		return pool.Pack(buffers, o)
	})
}

func placeBy(g *graph.Graph, p *plan.Plan, align graph.Bytes, o pool.Options,
	pack func([]pool.Buffer, pool.Options) (pool.Layout, error)) (*program.Placement, error) {
	const asking = 1 << 14
	steps := 0
	stays := plan.StaysBy(g, p, func(n int) {
		if steps += n; o.Stop != nil && steps >= asking {
			steps = 0
			o.Stop() // which may panic; the first layout is made in any case
		}
	})
	packed, err := pack(buffersOf(g, p, stays, align), o)
	if err != nil {
		return nil, fmt.Errorf("place the residencies of job %q: %w", p.Job, err)
	}
	l := &program.Placement{Stays: stays, Offsets: make([]graph.Bytes, len(stays.Residencies)),
		Scratch: make([]graph.Bytes, len(p.Steps)), Arena: graph.Bytes(packed.Height),
		Load: graph.Bytes(packed.LowerBound), Align: align, Work: packed.Work}
	for i := range l.Offsets {
		l.Offsets[i] = graph.Bytes(packed.Offsets[i])
	}
	next := len(l.Offsets)
	for slot, step := range p.Steps {
		if step.Scratch > 0 {
			l.Scratch[slot] = graph.Bytes(packed.Offsets[next])
			next++
		}
	}
	return l, nil
}
