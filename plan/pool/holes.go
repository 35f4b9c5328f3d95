package pool

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"
)

// hole is a free range of bytes.
type hole struct{ size, at int64 }

func (h hole) compare(g hole) int {
	return cmp.Or(cmp.Compare(h.size, g.size), cmp.Compare(h.at, g.at))
}

// chunkHoles is the most that a chunk of holes holds: 4 KiB, which a memmove shifts in less time than a search takes.
const chunkHoles = 256

// holes are in order of size, equal ones in order of offset. They stand in sorted chunks, none empty, so that one that
// comes or goes moves its neighbours in the chunk only: O(log n + chunkHoles + n / chunkHoles).
type holes struct{ chunks [][]hole }

// locate returns where h stands or would be inserted; c is len(chunks) if it comes after all others.
func (s *holes) locate(h hole) (c, i int) {
	c = sort.Search(len(s.chunks), func(c int) bool {
		chunk := s.chunks[c]
		return chunk[len(chunk)-1].compare(h) >= 0
	})
	if c < len(s.chunks) {
		i, _ = slices.BinarySearchFunc(s.chunks[c], h, hole.compare)
	}
	return c, i
}

func (s *holes) add(h hole) {
	c, i := s.locate(h)
	if c == len(s.chunks) {
		if c == 0 {
			s.chunks = append(s.chunks, []hole{h})
			return
		}
		c--
		i = len(s.chunks[c])
	}
	chunk := slices.Insert(s.chunks[c], i, h)
	if len(chunk) > chunkHoles {
		s.chunks = slices.Insert(s.chunks, c+1, slices.Clone(chunk[chunkHoles/2:]))
		chunk = chunk[:chunkHoles/2]
	}
	s.chunks[c] = chunk
}

func (s *holes) remove(h hole) {
	c, i := s.locate(h)
	if c == len(s.chunks) || s.chunks[c][i] != h {
		panic(fmt.Sprintf("pool: hole %+v is to go and is not there", h))
	}
	if s.chunks[c] = slices.Delete(s.chunks[c], i, i+1); len(s.chunks[c]) == 0 {
		s.chunks = slices.Delete(s.chunks, c, c+1)
	}
}

// from returns the holes of at least a size, smallest first.
func (s *holes) from(size int64) iter.Seq[hole] {
	return func(yield func(hole) bool) {
		for c, i := s.locate(hole{size: size}); c < len(s.chunks); c, i = c+1, 0 {
			for _, h := range s.chunks[c][i:] {
				if !yield(h) {
					return
				}
			}
		}
	}
}

// largest is the size of the largest hole, 0 if there is none.
func (s *holes) largest() int64 {
	if len(s.chunks) == 0 {
		return 0
	}
	last := s.chunks[len(s.chunks)-1]
	return last[len(last)-1].size
}
