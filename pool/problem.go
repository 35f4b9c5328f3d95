package pool

import (
	"math"
	"math/bits"
)

// problem is what the packing methods work on: the buffers that have bytes, in columns.
type problem struct {
	items   []item
	columns int
	load    int64 // the lower bound, bytes
}

// item is a buffer that has bytes.
type item struct {
	buffer int    // its number among the caller's buffers
	size   int64  // bytes
	room   int64  // bytes: the size rounded up to the smallest alignment of all; no other buffer could use the rest
	align  int64  // bytes
	spans  []Span // in columns
	slots  uint64 // the number of slots in which it is resident
	area   area   // size x slots
	load   int64  // bytes: the largest load of its columns
	always bool   // it is resident in every column
}

// area is a product of bytes and slots in two words, the high one first.
type area struct{ hi, lo uint64 }

// newProblem prepares buffers that check finds nothing wrong with.
func newProblem(buffers []Buffer) *problem {
	cols := newColumns(buffers)
	loads := newPeaks(columnLoads(cols, buffers))
	p := &problem{columns: cols.count()}
	unit := int64(math.MaxInt64)
	for i, b := range buffers {
		if b.Size > 0 {
			it := newItem(i, b, cols, loads)
			unit = min(unit, it.align)
			p.load = max(p.load, it.load)
			p.items = append(p.items, it)
		}
	}
	for i := range p.items {
		p.items[i].room = alignUp(p.items[i].size, unit)
	}
	return p
}

func newItem(i int, b Buffer, cols columns, loads peaks) item {
	it := item{buffer: i, size: b.Size, align: b.align()}
	resident := 0
	for _, s := range b.Spans {
		it.slots += uint64(s.To) - uint64(s.From)
		s = cols.of(s)
		it.spans = append(it.spans, s)
		resident += s.To - s.From
		it.load = max(it.load, loads.of(s))
	}
	it.area.hi, it.area.lo = bits.Mul64(uint64(b.Size), it.slots)
	it.always = resident == cols.count()
	return it
}
