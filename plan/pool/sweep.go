package pool

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sort"
)

// mostPairs is after how many pairs a sweep ends: a layout that has so many is wrong throughout.
const mostPairs = 10_000

// sweep goes through the slots of a layout and keeps the buffers that are resident, to find those that share a byte.
// They stand in cells: a cell is a buffer, or what a group has at one offset. A segment tree over the cells, sorted by
// offset, knows the highest end of any subtree, so that the cells that meet a range of bytes are found without a look
// at the others.
//
// It shares no code with the packers, so that it can be believed. O(n log n) for n spans, and O(log n) for each pair
// found.
type sweep struct {
	buffers []Buffer
	cells   []cell
	// of node n of the tree, whose children are 2n and 2n+1: the highest end in bytes, 0 where none is resident
	ends  []int64
	leaf  int // the node of cell 0
	pairs map[[2]int]bool
	looks int // at cells that meet a range
}

// cell is what begins at one byte, for a buffer or the members of a group.
type cell struct {
	lo    int64
	alias int
	live  residents
}

// resident is a buffer for one of its spans.
type resident struct {
	buffer int
	size   int64
	to     int // the slot in which the span ends
}

// residents is a heap with the largest on top. Others that have ended may stay below it.
type residents []resident

func (r residents) Len() int           { return len(r) }
func (r residents) Less(i, j int) bool { return r[i].size > r[j].size }
func (r residents) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *residents) Push(x any)        { *r = append(*r, x.(resident)) }
func (r *residents) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// event is the begin or the end of a span.
type event struct {
	slot   int
	begins bool
	cell   int
	resident
}

// sharedBytes returns the pairs of buffers that share a slot and a byte, the lower number first, sorted; of a group
// only its largest resident member, and none after mostPairs. Buffers without bytes, and offsets or spans that make no
// sense, are left out.
func sharedBytes(buffers []Buffer, offsets []int64) [][2]int {
	s := &sweep{buffers: buffers, pairs: make(map[[2]int]bool)}
	for _, e := range s.events(offsets) {
		if len(s.pairs) >= mostPairs || s.looks >= 8*mostPairs {
			break
		}
		if e.begins {
			s.begin(e)
		}
		s.update(e.cell, e.slot)
	}
	pairs := make([][2]int, 0, len(s.pairs))
	for p := range s.pairs {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return pairs
}

// events makes the cells, and returns the begins and ends in order of time, ends first.
func (s *sweep) events(offsets []int64) []event {
	var some []int // buffers that take bytes
	for i := range s.buffers {
		if b := &s.buffers[i]; b.Size > 0 && offsets[i] >= 0 && b.Size <= math.MaxInt64-offsets[i] {
			some = append(some, i)
		}
	}
	slices.SortFunc(some, func(i, j int) int {
		return cmp.Or(cmp.Compare(offsets[i], offsets[j]), cmp.Compare(s.buffers[i].Alias, s.buffers[j].Alias),
			cmp.Compare(i, j))
	})
	var events []event
	for _, i := range some {
		b := &s.buffers[i]
		last := len(s.cells) - 1
		if last < 0 || b.Alias == 0 || s.cells[last].alias != b.Alias || s.cells[last].lo != offsets[i] {
			s.cells = append(s.cells, cell{lo: offsets[i], alias: b.Alias})
			last++
		}
		for _, span := range b.Spans {
			if span.From < span.To {
				r := resident{i, b.Size, span.To}
				events = append(events, event{span.From, true, last, r}, event{span.To, false, last, r})
			}
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		c := cmp.Compare(a.slot, b.slot)
		if c == 0 && a.begins != b.begins {
			if c = -1; a.begins {
				c = 1
			}
		}
		return cmp.Or(c, cmp.Compare(a.buffer, b.buffer))
	})
	for s.leaf = 1; s.leaf < len(s.cells); {
		s.leaf *= 2
	}
	s.ends = make([]int64, 2*s.leaf)
	return events
}

// begin notes which buffers a span meets, and makes it resident.
func (s *sweep) begin(e event) {
	c := &s.cells[e.cell]
	above := sort.Search(len(s.cells), func(i int) bool { return s.cells[i].lo-c.lo >= e.size })
	s.meet(1, 0, s.leaf, above, e)
	heap.Push(&c.live, e.resident)
}

// meet looks below a node, which has the cells [from, to), for those before cell above that end above the begin of a
// span.
func (s *sweep) meet(node, from, to, above int, e event) {
	c := &s.cells[e.cell]
	if from >= above || s.ends[node] <= c.lo || len(s.pairs) >= mostPairs {
		return
	}
	if node < s.leaf {
		middle := from + (to-from)/2
		s.meet(2*node, from, middle, above, e)
		s.meet(2*node+1, middle, to, above, e)
		return
	}
	s.looks++
	if from == e.cell || c.alias != 0 && s.cells[from].alias == c.alias {
		return
	}
	other := s.cells[from].live[0].buffer
	s.pairs[[2]int{min(other, e.buffer), max(other, e.buffer)}] = true
}

// update lets go of what has ended in a cell.
func (s *sweep) update(n, slot int) {
	c := &s.cells[n]
	for len(c.live) > 0 && c.live[0].to <= slot {
		heap.Pop(&c.live)
	}
	node := s.leaf + n
	if s.ends[node] = 0; len(c.live) > 0 {
		s.ends[node] = c.lo + c.live[0].size
	}
	for node /= 2; node > 0; node /= 2 {
		s.ends[node] = max(s.ends[2*node], s.ends[2*node+1])
	}
}
