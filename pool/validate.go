package pool

import "math"

// Validate returns nil when the layout is right for the buffers: one offset each, none negative, each a multiple of the
// buffer's alignment, a fixed one where it was fixed, one offset for each group, no two buffers that share a slot sharing a
// byte unless they are of one group, a buffer of size zero that is neither fixed nor in a group at offset 0, and Height the
// largest offset + size. Otherwise the error names every problem, the first 64 in full. LowerBound and Optimal are not looked at, bar that Height is not below LowerBound.
//
// It compares each pair of buffers and shares no code with the packers, so that it can be believed; O(n^2).
func Validate(buffers []Buffer, l Layout) error {
	found := check(buffers)
	if len(l.Offsets) != len(buffers) {
		found.add("%d offsets for %d buffers", len(l.Offsets), len(buffers))
		return found.err()
	}
	var height int64
	for i, b := range buffers {
		at := l.Offsets[i]
		switch {
		case at < 0:
			found.add("buffer %d: offset %d is negative", i, at)
		case b.Size > math.MaxInt64-at:
			found.add("buffer %d: offset %d + size %d is more than an int64 holds", i, at, b.Size)
		case b.Size == 0 && at != 0 && !b.Fixed && b.Alias == 0:
			found.add("buffer %d: size 0 belongs at offset 0, not %d", i, at)
		case b.Size == 0:
		default:
			height = max(height, at+b.Size)
		}
		if b.Align > 0 && at%b.Align != 0 {
			found.add("buffer %d: offset %d is not a multiple of %d", i, at, b.Align)
		}
		if b.Fixed && at != b.At {
			found.add("buffer %d: offset %d is not the fixed one, %d", i, at, b.At)
		}
		for j, c := range buffers[:i] {
			if b.Alias != 0 && b.Alias == c.Alias {
				if at != l.Offsets[j] {
					found.add("buffers %d at %d and %d at %d are of one group", j, l.Offsets[j], i, at)
				}
				continue
			}
			if shareByte(b, at, c, l.Offsets[j]) && shareSlot(b, c) {
				found.add("buffers %d at [%d, %d) and %d at [%d, %d) share a slot and a byte",
					j, l.Offsets[j], l.Offsets[j]+c.Size, i, at, at+b.Size)
			}
		}
	}
	if l.Height != height {
		found.add("height is %d, not %d", height, l.Height)
	}
	if height < l.LowerBound {
		found.add("height %d is below the lower bound %d", height, l.LowerBound)
	}
	return found.err()
}

// shareByte reports whether b at offset p and c at offset q have a byte in common. The differences cannot overflow for
// offsets that are not negative.
func shareByte(b Buffer, p int64, c Buffer, q int64) bool {
	return p >= 0 && q >= 0 && b.Size > 0 && c.Size > 0 && q-p < b.Size && p-q < c.Size
}

// shareSlot reports whether the buffers are resident at the same time.
func shareSlot(b, c Buffer) bool {
	for _, s := range b.Spans {
		for _, t := range c.Spans {
			if s.Overlaps(t) {
				return true
			}
		}
	}
	return false
}
