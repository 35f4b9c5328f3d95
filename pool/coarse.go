package pool

import (
	"cmp"
	"slices"
)

// Which items are substantial, where there are more than fewItems: those of at least 1/smallShare of the lower bound, at
// most mostItems. In a training step most buffers are small, and fit into the gaps that the large ones leave.
const (
	fewItems   = 400
	mostItems  = 1000
	smallShare = 2048
)

// coarse runs stages on the substantial items alone, which is quicker, and fills in the others after each improvement.
func coarse(stages []stage) method {
	return func(s *search) {
		part := s.substantial()
		if len(part) == 0 || len(part) == len(s.problem.items) {
			return
		}
		buffers := make([]Buffer, len(part))
		for i, n := range part {
			it := &s.problem.items[n]
			buffers[i] = Buffer{Size: it.size, Spans: it.spans, Align: it.align, Fixed: it.fixed, At: it.at}
		}
		t := newSearch(newProblem(buffers), Options{Capacity: s.capacity, Stop: s.stop})
		t.bound, t.whole, t.part = s.bound, s, part
		if s.placed {
			offsets := make([]int64, len(part))
			for i, n := range part {
				offsets[i] = s.offsets[n]
			}
			t.placed, t.height, t.offsets = true, s.height, offsets
		}
		budget := s.steps
		s.steps = 0
		s.steps = t.apply(stages, budget)
	}
}

// substantial returns the items that decide the height: all if they are few.
func (s *search) substantial() []int {
	items := s.problem.items
	var part []int
	for i := range items {
		if it := &items[i]; len(items) <= fewItems || it.always || it.fixed || it.size >= s.bound/smallShare {
			part = append(part, i)
		}
	}
	if len(part) > mostItems {
		slices.SortStableFunc(part, func(i, j int) int {
			a, b := &items[i], &items[j]
			return cmp.Or(first(b.always || b.fixed)-first(a.always || a.fixed), cmp.Compare(b.size, a.size))
		})
		part = part[:mostItems]
		slices.Sort(part)
	}
	return part
}

func first(is bool) int {
	if is {
		return 1
	}
	return 0
}
