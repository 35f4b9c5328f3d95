package pool

import (
	"slices"
	"sort"
)

// columns is time with everything left out that does not matter to a layout: a new column begins at the first slot in
// which a span begins after another has ended. Two spans share a slot exactly when they share a column, and the largest
// load of a column is the largest load of its slots.
//
//	slot     0  1  2  3  4  5  6
//	a        [-----)
//	b           [--------)
//	c                 [-----)
//	d                       [--)
//	column   0--------1-----2--
type columns struct {
	starts []int // the first slot of each column
}

// newColumns divides the time of the buffers that have any bytes.
func newColumns(buffers []Buffer) columns {
	var from, to []int
	for _, b := range buffers {
		if b.Size <= 0 {
			continue
		}
		for _, s := range b.Spans {
			from, to = append(from, s.From), append(to, s.To)
		}
	}
	slices.Sort(from)
	slices.Sort(to)
	var starts []int
	ended, next := true, 0 // ended: a span has ended since the last column began
	for _, slot := range from {
		for ; to[next] <= slot; next++ {
			ended = true
		}
		if ended {
			starts, ended = append(starts, slot), false
		}
	}
	return columns{starts}
}

// count is the number of columns.
func (c columns) count() int { return len(c.starts) }

// of translates a span of slots into one of columns.
func (c columns) of(s Span) Span {
	return Span{sort.SearchInts(c.starts, s.From+1) - 1, sort.SearchInts(c.starts, s.To)}
}
