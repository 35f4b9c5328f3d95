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
	Size  int64  // bytes; a buffer of size zero is allowed and gets offset 0
	Spans []Span // one or more, none empty, sorted and disjoint; one that wraps round the iteration has two
	Align int64  // the offset is a multiple of it; a power of two; 0 means 1
}

// Layout says where each buffer stands.
type Layout struct {
	Offsets    []int64 // bytes, one per buffer
	Height     int64   // bytes: the largest offset + size
	LowerBound int64   // bytes: the largest sum of sizes over any slot; no layout is lower
}

// align is the buffer's alignment with the zero value resolved.
func (b Buffer) align() int64 { return max(b.Align, 1) }

// check returns what is wrong with the buffers, in their order.
func check(buffers []Buffer) *problems {
	found := &problems{}
	var most uint64 // no greedy layout is higher: each buffer and the padding below it
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
		if need := uint64(b.Size) + uint64(b.align()-1); most <= math.MaxInt64 {
			if most += need; most > math.MaxInt64 {
				found.add("buffer %d: the sizes and alignments up to this one add up to more than an int64 holds", i)
			}
		}
	}
	return found
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
