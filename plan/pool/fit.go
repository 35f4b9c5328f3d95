package pool

// query is a place to look for: the sets whose union is taken, a block's size and its alignment, in bytes.
type query struct {
	sets        []byteSet // a fit changes the slice but not what the sets point to
	size, align int64
	floor       int64 // where the search begins
	steps       int   // work done, ever
}

// fit chooses an offset at which the block meets no taken byte.
type fit func(q *query) int64

// fits are all ways to choose.
var fits = []fit{firstFit, bestFit}

// firstFit is the lowest free offset above the floor. Each set in turn pushes the offset up until none objects.
func firstFit(q *query) int64 {
	at := alignUp(q.floor, q.align)
	for moved := true; moved; {
		moved = false
		for i := 0; i < len(q.sets); i++ {
			set := q.sets[i].after(at)
			for len(set) > 0 && set[0].lo < at+q.size {
				at, moved = alignUp(set[0].hi, q.align), true
				set = set.after(at)
				q.steps++
			}
			i = q.keep(i, set)
		}
	}
	return at
}

// bestFit is the lowest offset in the gap with the least room to spare, or the top where no gap is large enough.
func bestFit(q *query) int64 {
	best, bestRoom := int64(-1), int64(0)
	for end := q.floor; ; {
		gap := q.nextGap(end)
		at := alignUp(gap.lo, q.align)
		if len(q.sets) == 0 { // the gap has no end
			if best < 0 {
				return at
			}
			return best
		}
		if room := gap.hi - at; room >= q.size && (best < 0 || room < bestRoom) {
			if best, bestRoom = at, room; room == q.size {
				return best
			}
		}
		end = gap.hi
	}
}

// raise lifts the floor of a query so high that no set has more than a few ranges above it.
func (q *query) raise() {
	const few = 64
	for _, set := range q.sets {
		if len(set) > few {
			q.floor = max(q.floor, set[len(set)-few-1].hi)
		}
	}
}

// nextGap is the first gap at or after a byte. When no set is left, nothing ends it.
func (q *query) nextGap(at int64) byteRange {
	var end int64
	for moved := true; moved; {
		moved, end = false, -1
		for i := 0; i < len(q.sets); i++ {
			set := q.sets[i].after(at)
			for len(set) > 0 && set[0].lo <= at {
				at, moved = set[0].hi, true
				set = set.after(at)
				q.steps++
			}
			if len(set) > 0 && (end < 0 || set[0].lo < end) {
				end = set[0].lo
			}
			i = q.keep(i, set)
		}
	}
	return byteRange{at, end}
}

// keep stores what is left of set i, or drops the set when nothing is, and returns where to go on from.
func (q *query) keep(i int, set byteSet) int {
	q.steps++
	if len(set) > 0 {
		q.sets[i] = set
		return i
	}
	last := len(q.sets) - 1
	q.sets[i], q.sets = q.sets[last], q.sets[:last]
	return i - 1
}

// alignUp is the smallest multiple of align, a power of two, that is not below n.
func alignUp(n, align int64) int64 { return (n + align - 1) &^ (align - 1) }
