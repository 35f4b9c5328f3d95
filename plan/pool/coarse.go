package pool

import (
	"cmp"
	"slices"
)

// Which items are substantial, where there are more than fewItems: those of at least 1/smallShare of the lower bound,
// at most maxItems. In a training step most buffers are small, and fit into the gaps that the large ones leave.
const (
	fewItems   = 400
	maxItems   = 1000
	smallShare = 2048
)

// coarse has a method look for layouts of the substantial items alone, which is quicker, and fills in the others after
// each improvement.
func coarse(m method) method {
	return func(s *search) {
		if s.coarse == nil {
			s.coarse = newCoarse(s)
		}
		if t := s.coarse; len(t.part) > 0 && len(t.part) < len(s.problem.items) {
			t.take()
			t.steps, s.steps = s.steps, 0
			m(t)
			s.steps = t.steps
		}
	}
}

// newCoarse is a search of the substantial items of another.
func newCoarse(s *search) *search {
	part := s.substantial()
	buffers := make([]Buffer, len(part))
	for i, n := range part {
		it := &s.problem.items[n]
		buffers[i] = Buffer{Size: it.size, Spans: it.spans, Align: it.align, Fixed: it.fixed, At: it.at}
	}
	t := newSearch(newProblem(buffers), Options{Capacity: s.capacity, Enough: s.enough, Stop: s.stop})
	t.bound, t.whole, t.part = s.bound, s, part
	return t
}

// take takes over the layout of the whole.
func (s *search) take() {
	if !s.whole.placed {
		return
	}
	s.placed, s.height, s.bound = true, s.whole.height, s.whole.bound
	s.offsets = s.offsets[:0]
	for _, n := range s.part {
		s.offsets = append(s.offsets, s.whole.offsets[n])
	}
}

// hand fills the others into a layout of the part.
func (s *search) hand(height int64, offsets []int64) {
	w := s.whole
	if height > w.below() {
		return
	}
	place := make([]int64, len(w.problem.items))
	for i := range place {
		place[i] = -1
	}
	for i, n := range s.part {
		place[n] = offsets[i]
	}
	w.attempt(run{order: sizeOrder.of(w.problem.items), fit: bestFit, at: place, limit: w.below(), steps: w.allowance})
	s.steps, w.steps = s.steps+w.steps, 0
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
	if len(part) > maxItems {
		slices.SortStableFunc(part, func(i, j int) int {
			a, b := &items[i], &items[j]
			return cmp.Or(first(b.always || b.fixed)-first(a.always || a.fixed), cmp.Compare(b.size, a.size))
		})
		part = part[:maxItems]
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
