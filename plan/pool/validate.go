package pool

import "math"

// Validate returns nil when the layout is right for the buffers: one offset each, none negative, each a multiple of the
// buffer's alignment, a fixed one where it was fixed, one offset for each group, no two buffers that share a slot
// sharing a byte unless they are of one group, a buffer of size zero that is neither fixed nor in a group at offset 0,
// and Height the largest offset + size. Otherwise the error names every problem, the first 64 in full. LowerBound and
// Optimal are not looked at, bar that Height is not below LowerBound.
//
// It sweeps over the slots and shares no code with the packers, so that it can be believed; O(n log n) for n spans. Of
// a group it names the largest member that is resident, and after 10,000 pairs it looks for no more.
func Validate(buffers []Buffer, l Layout) error {
	found := check(buffers)
	if len(l.Offsets) != len(buffers) {
		found.add("%d offsets for %d buffers", len(l.Offsets), len(buffers))
		return found.err()
	}
	var height int64
	leads := make(map[int]int) // the first buffer of each group
	for i := range buffers {
		b, at := &buffers[i], l.Offsets[i]
		checkOffset(found, i, b, at)
		if lead, ok := leads[b.Alias]; !ok {
			leads[b.Alias] = i
		} else if b.Alias != 0 && at != l.Offsets[lead] {
			found.add("buffers %d at %d and %d at %d are of one group", lead, l.Offsets[lead], i, at)
		}
		if b.Size > 0 && at >= 0 && b.Size <= math.MaxInt64-at {
			height = max(height, at+b.Size)
		}
	}
	for _, p := range sharedBytes(buffers, l.Offsets) {
		i, j := p[0], p[1]
		found.add("buffers %d at [%d, %d) and %d at [%d, %d) share a slot and a byte", i, l.Offsets[i], l.Offsets[i]+
			buffers[i].Size,
			j, l.Offsets[j], l.Offsets[j]+buffers[j].Size)
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
