package pool

import (
	"fmt"
	"math"
	"math/bits"
)

// Span is a half-open range of slots.
type Span struct{ From, To int }

// Overlaps reports whether the spans share a slot.
func (s Span) Overlaps(t Span) bool { return s.From < t.To && t.From < s.To }

// Buffer is a residency: bytes that keep one offset over all of their spans.
type Buffer struct {
	Size  int64  // bytes; a buffer of size zero is allowed and takes no room
	Spans []Span // one or more, none empty, sorted and disjoint; one that wraps round the iteration has two
	Align int64  // the offset is a multiple of it; a power of two; 0 means 1

	Fixed bool  // the offset is At
	At    int64 // bytes; read only if Fixed

	// Buffers of one group, a number other than 0, are views of the same bytes: they have one offset, and may share
	// slots and bytes with one another. If any of them is fixed, all are. Pack takes each for as large as the largest
	// wherever any is resident.
	Alias int
}

// Layout says where each buffer stands.
type Layout struct {
	Offsets    []int64 // bytes, one per buffer
	Height     int64   // bytes: the largest offset + size
	LowerBound int64   // bytes: no layout is lower
	Work       int     // steps that the search took: the same on every machine
	Optimal    bool    // no layout is lower than Height: it is the lower bound, or the search has tried everything
}

// align is the buffer's alignment with the zero value resolved.
func (b Buffer) align() int64 { return max(b.Align, 1) }

// check returns what is wrong with the buffers, in their order.
func check(buffers []Buffer) *problems {
	found := &problems{}
	groups := make(map[int]group)
	var highest int64 // end of a fixed buffer
	for _, b := range buffers {
		if b.Fixed && b.Size >= 0 && b.At >= 0 && b.At <= math.MaxInt64-b.Size {
			highest = max(highest, b.At+b.Size)
		}
	}
	// no greedy layout is higher: the fixed buffers, and on them each buffer and the padding below it
	total := uint64(highest)
	for i, b := range buffers {
		if b.Size < 0 {
			found.add("buffer %d: size %d is negative", i, b.Size)
			continue
		}
		if b.Align < 0 || bits.OnesCount64(uint64(b.Align)) > 1 {
			found.add("buffer %d: alignment %d is not a power of two (0 means 1)", i, b.Align)
			continue
		}
		if reason := badSpans(b.Spans); reason != "" {
			found.add("buffer %d: %s", i, reason)
		}
		if reason := badPlace(b); reason != "" {
			found.add("buffer %d: %s", i, reason)
		}
		if b.Alias != 0 {
			if reason := groups[b.Alias].join(i, b, groups); reason != "" {
				found.add("buffer %d: %s", i, reason)
			}
		}
		switch need := uint64(b.Size) + uint64(b.align()-1); {
		case total > math.MaxInt64: // it was said
		case need > math.MaxInt64-total:
			found.add("buffer %d: the sizes and alignments up to this one add up to more than an int64 holds", i)
			total = math.MaxUint64
		default:
			total += need
		}
	}
	return found
}

// badPlace says what is wrong with a fixed offset, or nothing.
func badPlace(b Buffer) string {
	switch {
	case !b.Fixed:
		return ""
	case b.At < 0:
		return fmt.Sprintf("fixed offset %d is negative", b.At)
	case b.At > math.MaxInt64-b.Size:
		return fmt.Sprintf("fixed offset %d + size %d is more than an int64 holds", b.At, b.Size)
	case b.At%b.align() != 0:
		return fmt.Sprintf("fixed offset %d is not a multiple of its alignment %d", b.At, b.align())
	}
	return ""
}

// group is what the buffers with one offset agree on.
type group struct {
	align int64
	fixed bool
	at    int64
	by    int // the buffer that fixed it
}

// join adds a buffer to a group and says in what they disagree, or nothing.
func (g group) join(i int, b Buffer, groups map[int]group) string {
	if b.Fixed && g.fixed && b.At != g.at {
		return fmt.Sprintf("fixed offset %d, but buffer %d of the same group is fixed at %d", b.At, g.by, g.at)
	}
	if b.Fixed && !g.fixed {
		g.fixed, g.at, g.by = true, b.At, i
	}
	g.align = max(g.align, b.align())
	groups[b.Alias] = g
	if g.fixed && g.at >= 0 && g.at%g.align != 0 {
		return fmt.Sprintf("its group is fixed at %d, which is not a multiple of the alignment %d", g.at, g.align)
	}
	return ""
}

// badSpans says what is wrong with a buffer's spans, or nothing.
func badSpans(spans []Span) string {
	if len(spans) == 0 {
		return "no span; a buffer needs at least one"
	}
	for i, s := range spans {
		if s.From >= s.To {
			return fmt.Sprintf("span %d [%d, %d) is empty", i, s.From, s.To)
		}
		if i > 0 && s.From < spans[i-1].To {
			return fmt.Sprintf("span %d [%d, %d) begins before the one before it ends at %d",
				i, s.From, s.To, spans[i-1].To)
		}
	}
	return ""
}
