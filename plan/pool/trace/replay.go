package trace

import (
	"errors"
	"fmt"
	"math"

	"tensile/plan/pool"
)

// replay is SmartPool at work: it answers the requests of one iteration after another by a layout that was made before,
// a malloc by its number in the iteration, in constant time. The offsets are those of one arena: below Height stands
// what the layout has a place for, above it all else, as a pool.Online has it.
//
// It does not trust the framework to keep to the iteration. A malloc that is not the next of the iteration goes online,
// and the next one is still awaited; when all blocks of the layout but those that go on over the boundary are freed,
// the first malloc of the iteration begins it again. Hence no two blocks that are there at the same time share a byte,
// whatever is requested. A Replay is not for concurrent use.
type replay struct {
	Height int64 // bytes of the layout, up to a multiple of the alignment
	Hits   int   // mallocs answered by the layout so far
	Misses int   // mallocs that went online

	online   *pool.Online
	align    int64
	requests []request
	offsets  []int64
	next     int // request awaited

	// Invariant: of the layout's blocks only those are there that the iteration has before its next request.
	there   []bool        // per buffer
	extra   int           // buffers that are there although they are not when an iteration begins
	over    []bool        // per buffer: there when an iteration begins
	holders map[int64]int // offset to buffer, of those that are there
}

// newReplay returns an allocator for packed lifetimes, best made with the option Transient, in an arena of some bytes;
// 0 means as many as an int64 counts. Offsets are aligned as the lifetimes are. The error says that the layout does not
// fit in the arena, or that the lifetimes were tightened: they hold as long as the accesses come as recorded, and an
// allocator does not see those.
func newReplay(l *Lifetimes, layout pool.Layout, capacity int64) (*replay, error) {
	if l.options.Tighten {
		return nil,
			errors.New("lifetimes tightened by accesses are nothing for an allocator: make them without Tighten")
	}
	if len(layout.Offsets) != len(l.Buffers) || capacity < 0 {
		panic(fmt.Sprintf("trace: NewReplay: a layout of %d buffers for %d, in %d bytes", len(layout.Offsets),
			len(l.Buffers), capacity))
	}
	if capacity == 0 {
		capacity = math.MaxInt64
	}
	align := max(l.options.Align, 1)
	if layout.Height > capacity-align { // so that something is left for the online allocator
		return nil, fmt.Errorf("a layout of %d bytes leaves no room in an arena of %d: give it more", layout.Height,
			capacity)
	}
	height := (layout.Height + align - 1) &^ (align - 1)
	r := &replay{Height: height, online: pool.NewOnline(capacity - height), align: align, requests: l.requests,
		offsets: layout.Offsets, there: make([]bool, len(l.Buffers)), over: make([]bool, len(l.Buffers)),
		holders: make(map[int64]int)}
	for i := len(r.requests) - 1; i >= 0; i-- {
		if q := r.requests[i]; q.buffer >= 0 {
			r.over[q.buffer] = q.free
		}
	}
	return r, nil
}

// Malloc returns the offset of a new block. A block of no bytes takes one. The error wraps a *pool.FullError.
func (r *replay) Malloc(size int64) (int64, error) {
	r.skip()
	if !r.awaits(size) && r.extra == 0 {
		at := r.next
		r.next = 0
		if r.skip(); !r.awaits(size) {
			r.next = at
		}
	}
	if r.awaits(size) {
		q := r.requests[r.next]
		r.next++
		if q.buffer >= 0 {
			r.Hits++
			return r.hold(q.buffer), nil
		}
	}
	offset, err := r.online.Alloc(max(size, 1), r.align)
	if err != nil {
		return 0, fmt.Errorf("above the %d bytes of the iteration: %w", r.Height, err)
	}
	r.Misses++
	return r.Height + offset, nil
}

// Free ends the block at an offset that Malloc returned.
func (r *replay) Free(offset int64) {
	if offset >= r.Height {
		r.online.Free(offset - r.Height)
		return
	}
	buffer, ok := r.holders[offset]
	if !ok {
		panic(fmt.Sprintf("trace: Free(%d): no block is there", offset))
	}
	delete(r.holders, offset)
	if r.there[buffer] = false; !r.over[buffer] {
		r.extra--
	}
}

// skip goes past the frees of blocks that are not there.
func (r *replay) skip() {
	for r.next < len(r.requests) && r.requests[r.next].free && !r.there[r.requests[r.next].buffer] {
		r.next++
	}
}

// awaits reports whether the next request is a malloc of that size.
func (r *replay) awaits(size int64) bool {
	return r.next < len(r.requests) && !r.requests[r.next].free && r.requests[r.next].bytes == size
}

func (r *replay) hold(buffer int) int64 {
	if r.there[buffer] = true; !r.over[buffer] {
		r.extra++
	}
	r.holders[r.offsets[buffer]] = buffer
	return r.offsets[buffer]
}
