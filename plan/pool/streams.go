package pool

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Streams allocates and frees the bytes of operations that several streams of a device compute: the allocator of
// Waterwave (section 4.2). A host schedules operations long before they are computed, and frees a block as soon as the
// last operation that uses it is scheduled. Whether a chunk of free bytes may be taken at once depends on the stream:
// operations of one stream are computed in the order in which they were scheduled, those of two in any order, up to a
// synchronisation of the streams.
//
//	0        256       512       768       1024           capacity
//	| a      | stream 0| b       | stream 1| synced        |
//
// An allocation takes the smallest chunk that it fits into, of equal ones the lowest:
//
//  1. of those that its own stream has freed since the last synchronisation, which no other stream may take;
//  2. of those that are synced;
//  3. after a synchronisation of all streams, of all.
//
// What is freed joins free chunks on both sides that are its stream's own; what is synced meanwhile stays so. A
// synchronisation makes all free chunks synced, and joins them. At first all bytes are one synced chunk.
//
// A call takes O(log n) steps for n chunks, and a short move of memory; a synchronisation O(n log n). A Streams is not
// for concurrent use.
type Streams struct {
	capacity int64
	used     int64 // bytes: the sum of the blocks
	height   int64 // bytes: the end of the highest block ever
	forced   int
	blocks   map[int64]int64 // the size of the block that begins here
	begins   map[int64]chunk // free chunks, by where they begin, and
	ends     map[int64]chunk // by where they end
	sets     []holes         // the same chunks, by size: of each stream, and last those that are synced
}

// chunk is a range of free bytes and the set that it is in.
type chunk struct {
	hole
	set int
}

// NewStreams returns an allocator of the bytes from 0 to the capacity, 0 means as many as an int64 counts, for streams
// that are numbered from 0.
func NewStreams(capacity int64, streams int) *Streams {
	if capacity < 0 || streams < 1 {
		panic(fmt.Sprintf("pool: %d streams of a capacity of %d bytes", streams, capacity))
	}
	s := &Streams{capacity: cmp.Or(capacity, math.MaxInt64), blocks: map[int64]int64{}, begins: map[int64]chunk{},
		ends: map[int64]chunk{}, sets: make([]holes, streams+1)}
	s.keep(chunk{hole{s.capacity, 0}, streams})
	return s
}

// Alloc allocates a block of at least one byte for an operation of a stream and returns its offset. The error is a
// [*FullError]: the streams were synchronised, and no chunk is large enough.
func (s *Streams) Alloc(size int64, stream int) (offset int64, err error) {
	s.known(stream)
	if size <= 0 {
		panic(fmt.Sprintf("pool: Alloc(%d): a size is positive", size))
	}
	c, ok := s.fit(size, stream)
	if !ok {
		s.forced++
		s.Sync()
		if c, ok = s.fit(size, stream); !ok {
			return 0, &FullError{Size: size, Align: 1, Largest: s.synced().largest(), Free: s.capacity - s.used,
				Capacity: s.capacity}
		}
	}
	s.drop(c)
	s.keep(chunk{hole{c.size - size, c.at + size}, c.set})
	s.blocks[c.at] = size
	s.used += size
	s.height = max(s.height, c.at+size)
	return c.at, nil
}

// fit returns the chunk for a block that needs no synchronisation.
func (s *Streams) fit(size int64, stream int) (c chunk, ok bool) {
	for _, set := range []int{stream, len(s.sets) - 1} {
		for h := range s.sets[set].from(size) {
			return chunk{h, set}, true
		}
	}
	return chunk{}, false
}

// Free gives back the block at an offset that Alloc returned, when the last operation that uses it is scheduled: one of
// a stream, to which the chunk belongs until the streams are synchronised. It panics if there is no block.
//
// The paper has the chunk belong to the stream that allocated it. That is the same stream unless a job changes streams
// at a synchronisation, as it does between node groups; then the other stream could take what is still read.
func (s *Streams) Free(offset int64, stream int) {
	s.known(stream)
	b := s.take(offset)
	s.join(chunk{b, stream})
}

// FreeComputed gives back the block at an offset that Alloc returned, when the last operation that uses it has been
// computed: the chunk is synced. It panics if there is no block.
func (s *Streams) FreeComputed(offset int64) {
	s.join(chunk{s.take(offset), len(s.sets) - 1})
}

// take ends a block.
func (s *Streams) take(offset int64) hole {
	size, ok := s.blocks[offset]
	if !ok {
		panic(fmt.Sprintf("pool: Free(%d): no block is allocated there", offset))
	}
	delete(s.blocks, offset)
	s.used -= size
	return hole{size, offset}
}

// join makes a free chunk, with those of its set on both sides.
func (s *Streams) join(c chunk) {
	if below, ok := s.ends[c.at]; ok && below.set == c.set {
		s.drop(below)
		c.at, c.size = below.at, c.size+below.size
	}
	if above, ok := s.begins[c.at+c.size]; ok && above.set == c.set {
		s.drop(above)
		c.size += above.size
	}
	s.keep(c)
}

// Sync says that all streams wait for one another here (SyncAndCoalesce): whatever is free may be taken by any of them
// from now on.
func (s *Streams) Sync() {
	synced := len(s.sets) - 1
	var own []chunk
	for set := range s.sets[:synced] {
		for h := range s.sets[set].from(0) {
			own = append(own, chunk{h, set})
		}
	}
	slices.SortFunc(own, func(a, b chunk) int { return cmp.Compare(a.at, b.at) })
	for _, c := range own {
		s.drop(c)
		c.set = synced
		s.join(c)
	}
}

// Height is the end of the highest block that was ever allocated, in bytes.
func (s *Streams) Height() int64 { return s.height }

// Used is how many bytes are allocated.
func (s *Streams) Used() int64 { return s.used }

// Forced is how often Alloc has synchronised the streams.
func (s *Streams) Forced() int { return s.forced }

func (s *Streams) synced() *holes { return &s.sets[len(s.sets)-1] }

func (s *Streams) known(stream int) {
	if stream < 0 || stream >= len(s.sets)-1 {
		panic(fmt.Sprintf("pool: stream %d of %d", stream, len(s.sets)-1))
	}
}

// keep adds a free chunk, unless it is empty.
func (s *Streams) keep(c chunk) {
	if c.size > 0 {
		s.begins[c.at], s.ends[c.at+c.size] = c, c
		s.sets[c.set].add(c.hole)
	}
}

// drop takes a free chunk away.
func (s *Streams) drop(c chunk) {
	delete(s.begins, c.at)
	delete(s.ends, c.at+c.size)
	s.sets[c.set].remove(c.hole)
}
