package pool

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// problem is what the packing methods work on: the things to place, in columns.
type problem struct {
	items   []item
	columns int
	load    int64 // the lower bound, bytes
	unit    int64 // bytes: the smallest alignment, of which all others are multiples
	strip   int64 // bytes at the bottom that the items of bottom take
	exact   bool  // no group is smaller at some slots than at others: it is packed as if it were not
	fixed   []int // items that have their place
	bottom  []int // items that are always resident, and begin there one above another; none where that may waste bytes
}

// item is a buffer that has bytes, or a group of buffers with one offset.
type item struct {
	buffers []int // their numbers among the caller's
	size    int64 // bytes
	room    int64 // bytes: the size rounded up to the smallest alignment of all; no other item could use the rest
	align   int64 // bytes
	fixed   bool  // it begins at the byte at
	at      int64
	spans   []Span // in columns
	slots   uint64 // the number of slots in which it is resident
	area    area   // size x slots
	load    int64  // bytes: the largest load of its columns
	always  bool   // it is resident in every column
}

// area is a product of bytes and slots in two words, the high one first.
type area struct{ hi, lo uint64 }

// newProblem prepares buffers that check finds nothing wrong with.
func newProblem(buffers []Buffer) *problem { return prepare(buffers, nil) }

// prepare is newProblem with questions to stop, which may end it by a panic alone.
func prepare(buffers []Buffer, stop func() bool) *problem {
	ask := func() {
		if stop != nil {
			stop()
		}
	}
	ask()
	merged, members := mergeGroups(buffers)
	ask()
	cols := newColumns(merged)
	ask()
	loads := newPeaks(columnLoads(cols, merged))
	ask()
	p := &problem{columns: cols.count(), load: Load(buffers), unit: math.MaxInt64, exact: true}
	even := true // all alignments are equal
	for i, b := range merged {
		if i%asking == 0 {
			ask()
		}
		if b.Size == 0 {
			continue
		}
		it := newItem(b, cols, loads)
		it.buffers = members[i]
		smaller := func(n int) bool { return buffers[n].Size < b.Size }
		p.exact = p.exact && !slices.ContainsFunc(it.buffers, smaller)
		if even = even && (p.unit == math.MaxInt64 || p.unit == it.align); it.align < p.unit {
			p.unit = it.align
		}
		if it.fixed {
			p.fixed = append(p.fixed, len(p.items))
			p.load = max(p.load, it.at+it.size)
		}
		p.items = append(p.items, it)
	}
	for i := range p.items {
		it := &p.items[i]
		it.room = alignUp(it.size, p.unit)
		if it.always && len(p.fixed) == 0 {
			p.bottom = append(p.bottom, i)
		}
	}
	if !even || slices.ContainsFunc(p.bottom, func(i int) bool { return p.items[i].size < p.items[i].room }) {
		p.bottom = nil
	}
	for _, i := range p.bottom {
		p.strip += p.items[i].room
	}
	return p
}

func newItem(b Buffer, cols columns, loads peaks) item {
	it := item{size: b.Size, align: b.align(), fixed: b.Fixed, at: b.At}
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

// clash returns an error that names two fixed buffers that share a slot and a byte, if there are any.
func (p *problem) clash() error {
	if len(p.fixed) == 0 {
		return nil
	}
	g := newGreedy(p)
	for k, i := range p.fixed {
		it := &p.items[i]
		q := query{size: it.room, align: it.align, floor: it.at}
		g.placed.taken(&q, it.spans)
		if firstFit(&q) != it.at {
			for _, j := range p.fixed[:k] {
				if other := &p.items[j]; it.at < other.at+other.room && other.at < it.at+it.room && it.meets(other) {
					return fmt.Errorf("pool: buffers %d and %d are fixed at %d and %d, where they share a slot and "+
						"a byte",
						other.buffers[0], it.buffers[0], other.at, it.at)
				}
			}
		}
		g.put(i, it.at)
	}
	return nil
}

// meets reports whether two items share a column.
func (it *item) meets(other *item) bool {
	for _, s := range it.spans {
		if slices.ContainsFunc(other.spans, s.Overlaps) {
			return true
		}
	}
	return false
}
