package pool

import (
	"math"
	"slices"
)

// skyline is a partial layout that grows from the bottom. Every column has a floor: nothing that is still to come can
// begin below it. A block begins at or above the highest floor of its columns, and place puts it just there.
//
//	limit ------------------------
//	      |     :     :     |
//	      |     :  ___:_____|        columns a, b, c, d; block B may come to stand on b and c, at the floor of c;
//	      |_____:_|   :     |        nothing else can begin at the floor of b if B is all that is left there,
//	      |     : |   :     |        so that the floor of b rises to that of c
//	      +-----+-----+-----+
//	         a     b     c     d
//
// What place and shut do is undone by rewind.
type skyline struct {
	blocks  []block
	levels  []int64   // bytes, per block: it begins there or above; settled for one that is placed
	floors  []int64   // bytes, per column: every block to come begins there or above
	columns []column  // the rest about each
	unit    int64     // bytes: all alignments are multiples of it
	limit   int64     // bytes: no block may end above it
	in      [][]int32 // per column its blocks, those to come first

	saved   []savedColumn // columns before they were changed
	raised  []savedFloor  // blocks before their floors were raised
	placed  []int32       // in this order
	version int           // of the last change, for saved
	stale   []int32       // columns whose lowest block has risen
	full    int32         // the column that settle last found too full
	steps   int           // work done, ever
}

// block is an item in the skyline.
type block struct {
	item    int32
	align   int64
	room    int64   // bytes it takes from the columns
	size    int64   // bytes it needs at the top
	columns []int32 // ascending
	over    []int32 // the blocks it shares a column with
	from    int32   // its first column
	to      int32   // after its last
	fixed   bool
	seen    int   // in next
	same    int32 // blocks with the same number have equal columns, sizes and alignments
	at      int64 // bytes: its offset, once it is placed
}

// settled is the level of a block that is placed.
const settled = math.MaxInt64

// column is a column of the skyline.
type column struct {
	top    int64  // bytes: where the last block placed here ends
	total  int64  // bytes of the blocks to come
	hash   uint64 // of the blocks to come
	live   int32  // the number of blocks to come
	lowest int32  // the number of them whose floor is that of the column
	cross  int32  // the number of blocks to come that are here or before, and after
	saved  int    // the version in which the column was last saved

	// a block at the floor that is not flush, and a column where there is room below it; a guess; -1: none
	block, low int32
}

type savedColumn struct {
	number int32
	floor  int64
	column column
}

type savedFloor struct {
	block int32
	floor int64
}

// mark is a state to go back to.
type mark struct{ saved, raised, placed int }

func (s *skyline) mark() mark { return mark{len(s.saved), len(s.raised), len(s.placed)} }

// rewind undoes everything since the mark.
func (s *skyline) rewind(m mark) {
	s.version++
	for _, b := range s.placed[m.placed:] {
		s.levels[b] = s.blocks[b].at
	}
	for i := len(s.raised) - 1; i >= m.raised; i-- {
		s.levels[s.raised[i].block] = s.raised[i].floor
	}
	for i := len(s.saved) - 1; i >= m.saved; i-- {
		saved := &s.saved[i]
		s.columns[saved.number], s.floors[saved.number] = saved.column, saved.floor
	}
	s.steps += len(s.saved) - m.saved + len(s.raised) - m.raised
	s.placed, s.raised, s.saved = s.placed[:m.placed], s.raised[:m.raised], s.saved[:m.saved]
}

// change returns a column to be changed.
func (s *skyline) change(n int32) *column {
	c := &s.columns[n]
	if c.saved != s.version {
		s.saved = append(s.saved, savedColumn{n, s.floors[n], *c})
		c.saved = s.version
	}
	return c
}

// place puts a block at its floor. It reports whether the rest may still fit.
func (s *skyline) place(n int32) bool {
	s.version++
	b := &s.blocks[n]
	b.at, s.levels[n] = s.levels[n], settled
	s.placed = append(s.placed, n)
	top := b.at + b.room
	if b.size > s.limit-b.at {
		return false
	}
	s.stale = s.stale[:0]
	hash := blockHash(n)
	for _, i := range b.columns {
		c := s.change(i)
		c.total -= b.room
		c.top, s.floors[i] = top, top
		c.hash ^= hash
		s.drop(i, n)
		c.lowest = 0
		s.stale = append(s.stale, i)
	}
	for i := b.from; i+1 < b.to; i++ {
		s.change(i).cross--
	}
	s.steps += 2*len(b.columns) + len(b.over)
	for _, o := range b.over {
		if s.levels[o] < top && !s.raise(o, top) {
			return false
		}
	}
	return s.settle()
}

// toCome are the blocks to come in a column, in any order.
func (s *skyline) toCome(n int32) []int32 { return s.in[n][:s.columns[n].live] }

// drop takes a block from those to come in a column: it moves it behind them. When rewind makes them more again it is
// the first that comes back.
func (s *skyline) drop(n, block int32) {
	in := s.toCome(n)
	last := len(in) - 1
	at := slices.Index(in, block)
	in[at], in[last] = in[last], in[at]
	s.columns[n].live--
	s.steps += at / 4
}

// shut says that no block begins in the column below the level. It reports whether the rest may still fit.
func (s *skyline) shut(n int32, level int64) bool {
	s.version++
	s.stale = append(s.stale[:0], n)
	c := s.change(n)
	s.floors[n], c.lowest = level, 0
	for _, i := range s.toCome(n) {
		if s.levels[i] < level && !s.raise(i, level) {
			return false
		}
	}
	return s.settle()
}

// raise lifts the floor of a block that is to come. It reports whether the block still fits below the limit.
func (s *skyline) raise(n int32, floor int64) bool {
	b := &s.blocks[n]
	old := s.levels[n]
	s.raised = append(s.raised, savedFloor{n, old})
	floor = alignUp(floor, b.align)
	s.levels[n] = floor
	if b.fixed || b.size > s.limit-floor {
		return false
	}
	s.steps += len(b.columns)
	for _, i := range b.columns {
		if s.floors[i] == old {
			c := s.change(i)
			if c.lowest--; c.lowest == 0 {
				s.stale = append(s.stale, i)
			}
		}
	}
	return true
}

// settle lifts the floors of columns to their lowest block to come. It reports whether the rest may still fit.
func (s *skyline) settle() bool {
	roof := alignUp(s.limit, s.unit)
	for _, n := range s.stale {
		c := &s.columns[n]
		if c.live > 0 {
			floor, count := s.lowestIn(n)
			if floor != s.floors[n] || count != c.lowest {
				c = s.change(n)
				s.floors[n], c.lowest = floor, count
			}
		}
		if c.total > roof-s.floors[n] {
			s.full = n
			return false
		}
	}
	return true
}

// lowestIn returns the lowest floor of the blocks that are to come in a column, of which there are any, and how many
// have it.
func (s *skyline) lowestIn(n int32) (floor int64, count int32) {
	floor = math.MaxInt64
	for _, i := range s.toCome(n) {
		switch level := s.levels[i]; {
		case level < floor:
			floor, count = level, 1
		case level == floor:
			count++
		}
	}
	s.steps += len(s.toCome(n))
	return floor, count
}

// candidates appends the blocks that may begin at the floor of a column.
func (s *skyline) candidates(n int32, to []int32) []int32 {
	floor := s.floors[n]
	for _, i := range s.toCome(n) {
		if s.levels[i] == floor {
			to = append(to, i)
		}
	}
	s.steps += len(s.toCome(n))
	return to
}

// flush reports whether the blocks at the floor of a column stand on the floor in all of their columns, so that nothing
// can come below them any more.
func (s *skyline) flush(n int32) bool {
	c, floor := &s.columns[n], s.floors[n]
	if c.block >= 0 && s.levels[c.block] == floor && s.floors[c.low] < floor {
		return false
	}
	s.steps += len(s.toCome(n))
	for _, i := range s.toCome(n) {
		if s.levels[i] != floor {
			continue
		}
		columns := s.blocks[i].columns
		s.steps += len(columns) / 4
		for _, low := range columns {
			if s.floors[low] != floor {
				c.block, c.low = i, low
				return false
			}
		}
	}
	return true
}

// rests reports whether a block at its floor stands on the bottom or on another one, so that it could not sink.
func (s *skyline) rests(n int32) bool {
	b := &s.blocks[n]
	if b.fixed {
		return true
	}
	for _, i := range b.columns {
		if alignUp(s.columns[i].top, b.align) == s.levels[n] {
			return true
		}
	}
	return false
}

// next is the lowest level at which a block of the column can begin if none does at the floor, in a layout in which no
// block can sink. Blocks that could then stand on another one: that one is to come, and not in this column at the
// floor.
func (s *skyline) next(n int32) int64 {
	floor := s.floors[n]
	level := int64(math.MaxInt64)
	s.version++ // marks the blocks of this column
	for _, i := range s.toCome(n) {
		s.blocks[i].seen = s.version
	}
	for _, i := range s.toCome(n) {
		if s.levels[i] > floor {
			level = min(level, s.levels[i])
			continue
		}
		s.steps += len(s.blocks[i].over)
		for _, o := range s.blocks[i].over {
			if l := s.levels[o]; l != settled && (l > floor || s.blocks[o].seen != s.version) {
				level = min(level, l+s.blocks[o].room)
			}
		}
	}
	return level
}
