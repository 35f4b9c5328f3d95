package pool

import "slices"

// newSkyline is empty, for some items of a problem, each given by its number.
func newSkyline(p *problem, items []int) *skyline {
	chosen := make([]Buffer, 0, len(items))
	for _, i := range items {
		chosen = append(chosen, Buffer{Size: p.items[i].room, Spans: p.items[i].spans})
	}
	cols := newColumns(chosen)
	s := &skyline{unit: p.unit, levels: make([]int64, len(items)),
		columns: make([]column, cols.count()), floors: make([]int64, cols.count()), in: make([][]int32, cols.count())}
	for i, n := range items {
		s.add(int32(i), n, &p.items[n], cols, p.strip)
	}
	s.findOverlaps()
	s.findTwins()
	for n := range s.columns {
		c := &s.columns[n]
		c.top, c.block = p.strip, -1
		s.floors[n], c.lowest = s.lowestIn(int32(n))
	}
	return s
}

func (s *skyline) add(number int32, itemNumber int, it *item, cols columns, strip int64) {
	b := block{item: int32(itemNumber), align: it.align, room: it.room, size: it.size, fixed: it.fixed}
	if s.levels[number] = alignUp(strip, it.align); it.fixed {
		s.levels[number] = it.at
	}
	for _, span := range it.spans {
		span = cols.of(span)
		for n := int32(span.From); n < int32(span.To); n++ {
			b.columns = append(b.columns, n)
			c := &s.columns[n]
			c.total += b.room
			c.live++
			c.hash ^= blockHash(number)
			s.in[n] = append(s.in[n], number)
		}
	}
	b.from, b.to = b.columns[0], b.columns[len(b.columns)-1]+1
	for n := b.from; n+1 < b.to; n++ {
		s.columns[n].cross++
	}
	s.blocks = append(s.blocks, b)
}

func (s *skyline) findOverlaps() {
	seen := make([]int, len(s.blocks))
	for i := range s.blocks {
		b := &s.blocks[i]
		seen[i] = i + 1
		for _, n := range b.columns {
			for _, o := range s.in[n] {
				if seen[o] != i+1 {
					seen[o] = i + 1
					b.over = append(b.over, o)
				}
			}
		}
	}
}

// findTwins numbers the kinds of blocks. Only blocks of one first column can be of one kind.
func (s *skyline) findTwins() {
	for i := range s.blocks {
		b := &s.blocks[i]
		b.same = int32(i)
		for _, o := range s.in[b.from] {
			if other := &s.blocks[o]; o < int32(i) && other.room == b.room && other.size == b.size &&
				other.align == b.align &&
				!other.fixed && !b.fixed && slices.Equal(other.columns, b.columns) {
				b.same = other.same
				break
			}
		}
	}
}
