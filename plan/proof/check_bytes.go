package proof

import (
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/plan/program"
)

// nothing is the content of bytes that hold no storage.
const nothing graph.StorageID = -1

// checkBytes keeps, for all bytes of all regions, who used them last and what they hold.
type checkBytes struct {
	streams int
	bounds  [][]graph.Bytes // per region, ascending; cell i lies between bounds i and i+1
	cells   [][]cell        // per region
	reads   [][]int         // per region: of every cell a number per stream, the last read since the write
}

// cell is a range of bytes that every command uses as a whole or not at all.
type cell struct {
	storage    graph.StorageID // whose content it holds, or nothing
	generation int             // which one: see checker.generation
	base       graph.Bytes     // where that storage begins
	write      program.Point
}

// newBytes divides the regions by everything that a command uses.
func (c *checker) newBytes() checkBytes {
	n := len(c.p.Regions)
	b := checkBytes{len(c.p.Streams), make([][]graph.Bytes, n), make([][]cell, n), make([][]int, n)}
	mark := func(a program.Address, size graph.Bytes) {
		b.bounds[a.Region] = append(b.bounds[a.Region], a.Offset, a.Offset+size)
	}
	for s := range c.g.Storages {
		if c.slots[s].Offset >= 0 {
			mark(c.slots[s], c.g.Storages[s].Bytes)
		}
	}
	for s, at := range c.saved {
		if c.g.Storages[s].Role.Persistent() {
			mark(at, c.g.Storages[s].Bytes)
		}
	}
	for _, section := range c.p.Sections() {
		for i := range section.Commands {
			c.tick(checkTicks / 4)
			if cmd := &section.Commands[i]; c.flaw(cmd) == "" {
				for _, u := range c.uses(cmd, 0) {
					if c.fits(&u) {
						mark(u.at, u.size)
					}
				}
			}
		}
	}
	for r := range b.bounds {
		slices.Sort(b.bounds[r])
		b.bounds[r] = slices.Compact(b.bounds[r])
		b.cells[r] = make([]cell, len(b.bounds[r]))
		b.reads[r] = make([]int, len(b.bounds[r])*b.streams)
		c.tick(checkTicks * len(b.bounds[r]))
	}
	return b
}

// forget leaves no content and no uses.
func (b *checkBytes) forget() {
	for r := range b.cells {
		(&span{b.cells[r], b.reads[r], b.streams}).fill(cell{storage: nothing})
	}
}

// span is the cells of a range whose ends are bounds.
type span struct {
	cells   []cell
	reads   []int // of each cell a number per stream
	streams int
}

func (b *checkBytes) span(a program.Address, size graph.Bytes) span {
	from, _ := slices.BinarySearch(b.bounds[a.Region], a.Offset)
	to, _ := slices.BinarySearch(b.bounds[a.Region], a.Offset+size)
	return span{b.cells[a.Region][from:to], b.reads[a.Region][from*b.streams : to*b.streams], b.streams}
}

// fill gives all cells a content that nobody has read.
func (s *span) fill(content cell) {
	for i := range s.cells {
		s.cells[i] = content
	}
	clear(s.reads)
}

// read records a read of all cells.
func (s *span) read(at program.Point) {
	for i := int(at.Stream); i < len(s.reads); i += s.streams {
		s.reads[i] = max(s.reads[i], at.Count)
	}
}

// findOther returns the first cell that does not hold a storage, which begins at base, in a generation; nil if all do.
func (s *span) findOther(storage graph.StorageID, generation int, base graph.Bytes) *cell {
	for i := range s.cells {
		if x := &s.cells[i]; x.storage != storage || x.generation != generation || x.base != base {
			return x
		}
	}
	return nil
}

// sayContent tells of a cell that should hold a storage in a generation.
func (c *checker) sayContent(where any, x *cell, storage graph.StorageID, generation int) {
	found := "nothing"
	if x.storage != nothing {
		found = fmt.Sprintf("content %d of %s", x.generation, c.g.Storages[x.storage].Name)
	}
	c.say(where, ErrContent, "want content %d of %s, found %s", generation, c.g.Storages[storage].Name, found)
}
