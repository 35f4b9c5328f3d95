package pool

import (
	"fmt"
	"math"
	"math/bits"
)

// Online allocates and frees bytes in the order in which it is asked, without knowing what comes: a free list as
// caching allocators keep it. An allocation takes the smallest hole that it fits into, of equal ones the lowest; only
// if none does, it takes bytes above everything that is allocated. What is freed joins the free bytes on both sides at
// once.
//
//	0        256        640       768         1280      top
//	| a      | hole     | b       | hole      | c       | free up to the capacity
//
// A call takes O(log n) steps for n blocks, and a short move of memory; with alignments that differ, also a step for
// each hole that has the bytes and not the alignment. Blocks never move. An Online is not for concurrent use.
type Online struct {
	capacity int64
	top      int64           // bytes: everything from here on is free
	height   int64           // bytes: the highest top ever
	used     int64           // bytes: the sum of the blocks
	live     map[int64]int64 // the size of the block that begins here
	begins   map[int64]int64 // the size of the hole that begins here, and
	ends     map[int64]int64 // of the hole that ends here; none ends at the top
	holes    holes           // the same holes, by size
}

// FullError says that an allocation does not fit. All figures are bytes.
type FullError struct {
	Size, Align int64 // what was asked for
	Largest     int64 // the largest hole, the one above everything included
	Free        int64 // all holes together
	Capacity    int64
}

func (e *FullError) Error() string {
	if e.Size <= e.Largest {
		return fmt.Sprintf("pool: %d bytes do not fit at a multiple of %d, though the largest hole has %d; %d of %d "+
			"bytes are free",
			e.Size, e.Align, e.Largest, e.Free, e.Capacity)
	}
	return fmt.Sprintf("pool: %d bytes do not fit: the largest hole has %d, and %d of %d bytes are free",
		e.Size, e.Largest, e.Free, e.Capacity)
}

// NewOnline returns an allocator of the bytes from 0 to the capacity; 0 means as many as an int64 counts.
func NewOnline(capacity int64) *Online {
	if capacity < 0 {
		panic(fmt.Sprintf("pool: capacity %d is negative", capacity))
	}
	if capacity == 0 {
		capacity = math.MaxInt64
	}
	return &Online{capacity: capacity, live: map[int64]int64{}, begins: map[int64]int64{}, ends: map[int64]int64{}}
}

// Alloc allocates a block of at least one byte and returns its offset, a multiple of align: a power of two, 0 means 1.
// The error is a [*FullError], and leaves everything as it was.
func (o *Online) Alloc(size, align int64) (offset int64, err error) {
	if size <= 0 || align < 0 || bits.OnesCount64(uint64(align)) > 1 {
		panic(fmt.Sprintf("pool: Alloc(%d, %d): a size is positive, an alignment a power of two or 0", size, align))
	}
	align = max(align, 1)
	room, ok := o.fit(size, align)
	if !ok {
		largest := max(o.holes.largest(), o.capacity-o.top)
		return 0, &FullError{Size: size, Align: align, Largest: largest, Free: o.capacity - o.used,
			Capacity: o.capacity}
	}
	offset = room.at + padding(room.at, align)
	o.take(room, offset, size)
	return offset, nil
}

// fit returns the free range in which a block is to stand.
func (o *Online) fit(size, align int64) (room hole, ok bool) {
	for h := range o.holes.from(size) {
		if padding(h.at, align) <= h.size-size {
			return h, true
		}
	}
	rest := o.capacity - o.top
	return hole{rest, o.top}, padding(o.top, align) <= rest-size
}

// padding is how far the next multiple of align is above an offset. It cannot overflow; the multiple may.
func padding(offset, align int64) int64 { return -offset & (align - 1) }

// take makes a block in a free range; what is left on both sides stays free.
func (o *Online) take(room hole, offset, size int64) {
	end := offset + size
	if room.at < o.top {
		o.drop(room)
		o.keep(end, room.at+room.size)
	} else {
		o.top = end
		o.height = max(o.height, end)
	}
	o.keep(room.at, offset)
	o.live[offset] = size
	o.used += size
}

// Free gives back the block at an offset that Alloc returned. It panics if there is none.
func (o *Online) Free(offset int64) {
	size, ok := o.live[offset]
	if !ok {
		panic(fmt.Sprintf("pool: Free(%d): no block is allocated there", offset))
	}
	delete(o.live, offset)
	o.used -= size
	from, to := offset, offset+size
	if below, ok := o.ends[from]; ok {
		from -= below
		o.drop(hole{below, from})
	}
	if above, ok := o.begins[to]; ok {
		o.drop(hole{above, to})
		to += above
	}
	if to == o.top {
		o.top = from
		return
	}
	o.keep(from, to)
}

// Height is the end of the highest block that was ever allocated, in bytes: what the blocks up to now have needed.
func (o *Online) Height() int64 { return o.height }

// keep makes a hole of a range below the top, unless it is empty. Both its neighbours are blocks.
func (o *Online) keep(from, to int64) {
	if from == to {
		return
	}
	o.begins[from], o.ends[to] = to-from, to-from
	o.holes.add(hole{to - from, from})
}

// drop takes a hole away.
func (o *Online) drop(h hole) {
	delete(o.begins, h.at)
	delete(o.ends, h.at+h.size)
	o.holes.remove(h)
}
