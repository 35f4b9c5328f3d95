package ptx

import "slices"

// The shadow of memory says for every word who read and who wrote it last, and when: what it takes to find races, and
// the footprint. A page of it, of words, becomes one of bytes at the first access to a part of a word.
//
// Time rises with every block and every barrier. Two accesses of different threads are ordered if they are in one block
// and a barrier was between them. Blocks run one after the other, so that a time tells the block, too.

const (
	pageBytes = 4096
	wordPage  = 2 // a cell per 1<<2 bytes
	bytePage  = 0
)

// A mark is a time, and below it who: the thread's number in its block, and flags.
const (
	markThread = 1<<10 - 1
	markWarp   = 1 << 10 // several threads of the warp of that thread
	markMany   = 1 << 11 // several warps
	markAtomic = 1 << 12 // all that the mark stands for was atomic
	markOthers = 1 << 13 // also earlier blocks of the launch, of reads such as were not atomic
	markTime   = 14      // where the time begins
	markTick   = 1 << markTime
)

// cell holds the marks of the last write and of the reads since.
type cell struct{ write, read uint64 }

type page struct {
	shift uint // wordPage or bytePage
	cells []cell
}

// shadow lends pages, and registers, from one launch to the next. Pages keep their marks, which are older than anything
// in the next launch.
type shadow struct {
	now       uint64 // a mark's time
	pages     []*page
	used      int
	registers []lanes
	taken     int
}

func (s *shadow) advance() uint64 {
	s.now += markTick
	return s.now
}

func (s *shadow) page() *page {
	if s.used == len(s.pages) {
		s.pages = append(s.pages, &page{wordPage, make([]cell, pageBytes>>wordPage)})
	}
	s.used++
	return s.pages[s.used-1]
}

// take returns n registers with undefined content.
func (s *shadow) take(count int) []lanes {
	if len(s.registers)-s.taken < count {
		s.registers, s.taken = make([]lanes, max(count, 2*len(s.registers))), 0 // earlier ones stay with their warps
	}
	s.taken += count
	return s.registers[s.taken-count : s.taken : s.taken]
}

// giveBack ends the use of all registers and pages. Those that became bytes are dropped.
func (s *shadow) giveBack() {
	s.used, s.taken = 0, 0
	s.pages = slices.DeleteFunc(s.pages, func(p *page) bool { return p.shift == bytePage })
	s.pages = s.pages[:min(len(s.pages), 1<<12)]
}

// split makes a page one of bytes.
func (p *page) split() {
	if p.shift == bytePage {
		return
	}
	cells := make([]cell, pageBytes)
	for i := range cells {
		cells[i] = p.cells[i>>wordPage]
	}
	p.shift, p.cells = bytePage, cells
}

// cellsOf returns the cells of an access, which lies in one page.
func (r *region) cellsOf(w *warp, offset, size uint64) []cell {
	p := r.pages[offset/pageBytes]
	if p == nil {
		p = w.r.s.page()
		r.pages[offset/pageBytes] = p
	}
	if size < 1<<wordPage {
		p.split()
	}
	return p.cells[offset%pageBytes>>p.shift : (offset%pageBytes+size)>>p.shift]
}

// ordered tells whether what a mark of this block stands for is ordered before what the thread does now.
func (w *warp) ordered(mark, thread uint64) bool {
	switch {
	case mark < w.r.since:
		return true
	case mark&markMany != 0:
		return false
	case mark&markWarp == 0 && mark&markThread == thread:
		return true
	}
	return mark&markThread/32 == thread/32 && mark < w.since
}

// reads marks a read. It returns the mark of a write that races with it, 0 if there is none.
func (w *warp) reads(c *cell, r *region, thread uint64, atomic uint64) uint64 {
	if c.write >= r.since && !(c.write >= w.r.blockBegin && c.write < w.r.since) {
		if w.writeRaces(c, thread, atomic) {
			return c.write
		}
	}
	now := w.r.s.now | thread | atomic
	old := c.read
	switch {
	case old < r.since:
		c.read = now
	case (old^now)&^(markThread|markWarp|markOthers) == 0 && (old^now)&markThread < 32:
		if old&markThread != thread {
			c.read = old | markWarp
		}
	default:
		c.read = w.merged(old, now, thread)
	}
	return 0
}

// merged is the mark of earlier reads and this one.
func (w *warp) merged(old, now, thread uint64) uint64 {
	if old < w.r.blockBegin {
		if old&markAtomic == 0 || old&markOthers != 0 {
			now |= markOthers
		}
		return now
	}
	now |= old & markOthers
	if w.ordered(old, thread) && old&markThread != thread {
		return now
	}
	if old&markAtomic == 0 {
		now &^= markAtomic
	}
	switch {
	case old < w.r.since:
	case old&markMany != 0 || old&markThread/32 != thread/32:
		now |= markMany
	case old&markWarp != 0 && old >= w.since || old&markThread != thread:
		now |= markWarp
	}
	return now
}

// writeRaces tells whether the last write, in this launch, races with an access.
func (w *warp) writeRaces(c *cell, thread, atomic uint64) bool {
	if c.write < w.r.blockBegin || c.write&markOthers != 0 {
		return atomic == 0 || c.write&markAtomic == 0
	}
	return !w.ordered(c.write, thread) && (atomic == 0 || c.write&markAtomic == 0)
}

// writes marks a write. It returns the mark of an access that races with it, 0 if there is none.
func (w *warp) writes(c *cell, r *region, thread uint64, atomic uint64) uint64 {
	now := w.r.s.now | thread | atomic
	if c.write >= r.since {
		if w.writeRaces(c, thread, atomic) {
			return c.write
		}
		if c.write < w.r.blockBegin || c.write&markOthers != 0 {
			now |= markOthers
		}
	}
	if old := c.read; old >= r.since {
		apart := atomic == 0 || old&markAtomic == 0
		switch {
		case old&markOthers != 0, old < w.r.blockBegin && apart:
			return old
		case old >= w.r.blockBegin && apart && !w.ordered(old, thread):
			return old
		}
	}
	c.write = now
	return 0
}

// footprint collects what was read and written in global memory.
func (r *run) footprint() Footprint {
	f := Footprint{}
	for _, w := range r.warps {
		f.Instructions += w.executed
	}
	slices.SortFunc(r.regions, func(a, b *region) int {
		if a.begin < b.begin {
			return -1
		}
		return 1
	})
	for _, region := range r.regions {
		for i, p := range region.pages {
			if p == nil {
				continue
			}
			begin := region.begin + uint64(i)*pageBytes
			for j, c := range p.cells {
				at := Range{begin + uint64(j)<<p.shift, begin + uint64(j+1)<<p.shift}
				if c.read >= region.since {
					f.Reads = extended(f.Reads, at)
				}
				if c.write >= region.since {
					f.Writes = extended(f.Writes, at)
				}
			}
		}
	}
	r.s.giveBack()
	return f
}

// extended appends a range that begins no earlier than the last one ends.
func extended(all []Range, at Range) []Range {
	if n := len(all); n > 0 && all[n-1].End == at.Begin {
		all[n-1].End = at.End
		return all
	}
	return append(all, at)
}
