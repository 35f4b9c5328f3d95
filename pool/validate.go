package pool

import "math"

// Validate returns nil when the layout is right for the buffers: one offset each, none negative, each a multiple of the
// buffer's alignment, a fixed one where it was fixed, one offset for each group, no two buffers that share a slot sharing a
// byte unless they are of one group, a buffer of size zero that is neither fixed nor in a group at offset 0, and Height the
// largest offset + size. Otherwise the error names every problem, the first 64 in full. LowerBound and Optimal are not
// looked at, bar that Height is not below LowerBound.
//
// It compares each pair of buffers and shares no code with the packers, so that it can be believed; O(n^2), which is two
// seconds for 60,000.
func Validate(buffers []Buffer, l Layout) error {
	found := check(buffers)
	if len(l.Offsets) != len(buffers) {
		found.add("%d offsets for %d buffers", len(l.Offsets), len(buffers))
		return found.err()
	}
	var height int64
	extents := make([]extent, len(buffers))
	leads := make(map[int]int) // the first buffer of each group
	for i := range buffers {
		b, at := &buffers[i], l.Offsets[i]
		checkOffset(found, i, b, at)
		if lead, ok := leads[b.Alias]; !ok {
			leads[b.Alias] = i
		} else if b.Alias != 0 && at != l.Offsets[lead] {
			found.add("buffers %d at %d and %d at %d are of one group", lead, l.Offsets[lead], i, at)
		}
		e := b.extent(at)
		for j := range extents[:i] { // nearly all pairs part here, so that it looks at nothing but a short list
			f := &extents[j]
			if min(e.hi, f.hi) > max(e.lo, f.lo) && min(e.to, f.to) > max(e.from, f.from) && excludes(b, &buffers[j]) {
				found.add("buffers %d at [%d, %d) and %d at [%d, %d) share a slot and a byte", j, f.lo, f.hi, i, e.lo, e.hi)
			}
		}
		extents[i] = e
		height = max(height, e.hi)
	}
	if l.Height != height {
		found.add("height is %d, not %d", height, l.Height)
	}
	if height < l.LowerBound {
		found.add("height %d is below the lower bound %d", height, l.LowerBound)
	}
	return found.err()
}

// checkOffset adds what is wrong with the offset of a buffer, whatever stands beside it.
func checkOffset(found *problems, i int, b *Buffer, at int64) {
	switch {
	case at < 0:
		found.add("buffer %d: offset %d is negative", i, at)
	case b.Size > math.MaxInt64-at:
		found.add("buffer %d: offset %d + size %d is more than an int64 holds", i, at, b.Size)
	case b.Size == 0 && at != 0 && !b.Fixed && b.Alias == 0:
		found.add("buffer %d: size 0 belongs at offset 0, not %d", i, at)
	}
	if b.Align > 0 && at%b.Align != 0 {
		found.add("buffer %d: offset %d is not a multiple of %d", i, at, b.Align)
	}
	if b.Fixed && at != b.At {
		found.add("buffer %d: offset %d is not the fixed one, %d", i, at, b.At)
	}
}

// extent is all that a buffer may share with another: its bytes, and the slots from its first to its last.
type extent struct {
	lo, hi   int64
	from, to int
}

// extent is empty where there are no bytes, or no telling which.
func (b *Buffer) extent(at int64) extent {
	if at < 0 || b.Size <= 0 || b.Size > math.MaxInt64-at {
		return extent{}
	}
	e := extent{lo: at, hi: at + b.Size}
	for i, s := range b.Spans {
		if i == 0 {
			e.from, e.to = s.From, s.To
		}
		e.from, e.to = min(e.from, s.From), max(e.to, s.To)
	}
	return e
}

// excludes reports whether the buffers may not share a byte: they share a slot, and are not views of the same bytes.
func excludes(b, c *Buffer) bool { return (b.Alias == 0 || b.Alias != c.Alias) && shareSlot(b, c) }

// shareSlot reports whether the buffers are resident at the same time.
func shareSlot(b, c *Buffer) bool {
	for _, s := range b.Spans {
		for _, t := range c.Spans {
			if s.Overlaps(t) {
				return true
			}
		}
	}
	return false
}
