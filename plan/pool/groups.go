package pool

import (
	"cmp"
	"container/heap"
	"slices"
)

// mergeGroups replaces each group of buffers with one offset by a buffer that is as large as its largest and resident
// when any is. members are the numbers of the buffers that each stands for.
func mergeGroups(buffers []Buffer) (merged []Buffer, members [][]int) {
	groups := make(map[int]int) // where the group is in merged
	numbers := make([]int, len(buffers))
	for i, b := range buffers {
		numbers[i] = i
		at, ok := groups[b.Alias]
		if b.Alias == 0 || !ok {
			groups[b.Alias] = len(merged)
			merged, members = append(merged, b), append(members, numbers[i:i+1:i+1])
			continue
		}
		m := &merged[at]
		m.Size, m.Align = max(m.Size, b.Size), max(m.Align, b.Align)
		m.Spans = append(slices.Clip(m.Spans), b.Spans...)
		if b.Fixed {
			m.Fixed, m.At = true, b.At
		}
		members[at] = append(members[at], i)
	}
	for i, n := range members {
		if len(n) > 1 {
			merged[i].Spans = union(merged[i].Spans)
		}
	}
	return merged, members
}

// union sorts spans and joins those that overlap or touch.
func union(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	joined := spans[:1]
	for _, s := range spans[1:] {
		if last := &joined[len(joined)-1]; s.From <= last.To {
			last.To = max(last.To, s.To)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

// apart returns buffers without groups that have the same load in each slot: a group gives way to pieces, each as large
// as the largest member that is resident then.
func apart(buffers []Buffer) []Buffer {
	groups := make(map[int][]Buffer)
	var order []int
	out := make([]Buffer, 0, len(buffers))
	for _, b := range buffers {
		switch {
		case b.Alias == 0:
			out = append(out, b)
		case b.Size > 0:
			if groups[b.Alias] == nil {
				order = append(order, b.Alias)
			}
			groups[b.Alias] = append(groups[b.Alias], b)
		}
	}
	for _, alias := range order {
		out = append(out, envelope(groups[alias])...)
	}
	return out
}

// envelope sweeps over the slots of buffers and makes a piece wherever the largest resident one changes.
func envelope(group []Buffer) []Buffer {
	var pieces []piece
	for _, b := range group {
		for _, s := range b.Spans {
			pieces = append(pieces, piece{s, b.Size})
		}
	}
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(a.span.From, b.span.From) })
	var out []Buffer
	var here largestFirst
	for next := 0; next < len(pieces) || len(here) > 0; {
		if len(here) == 0 {
			heap.Push(&here, pieces[next])
			next++
			continue
		}
		largest := here[0]
		for next < len(pieces) && pieces[next].size <= largest.size && pieces[next].span.From < largest.span.To {
			heap.Push(&here, pieces[next])
			next++
		}
		end := largest.span.To
		if next < len(pieces) {
			end = min(end, pieces[next].span.From)
		}
		if end > largest.span.From {
			out = append(out, Buffer{Size: largest.size, Spans: []Span{{largest.span.From, end}}})
		}
		if end < largest.span.To { // a larger one begins here
			here[0].span.From = end
			heap.Push(&here, pieces[next])
			next++
			continue
		}
		heap.Pop(&here)
		for len(here) > 0 && here[0].span.To <= end {
			heap.Pop(&here)
		}
		if len(here) > 0 {
			here[0].span.From = max(here[0].span.From, end)
		}
	}
	return out
}

// piece is some bytes for a span of slots.
type piece struct {
	span Span
	size int64
}

// largestFirst is a heap of pieces.
type largestFirst []piece

func (h largestFirst) Len() int           { return len(h) }
func (h largestFirst) Less(i, j int) bool { return h[i].size > h[j].size }
func (h largestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *largestFirst) Push(x any)        { *h = append(*h, x.(piece)) }
func (h *largestFirst) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
