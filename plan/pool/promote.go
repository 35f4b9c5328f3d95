package pool

import "slices"

// burst is how many rounds in a row promote mends one order.
const burst = 32

// promote mends orders: it tries one against the best height so far, moves the item that would have stood above that
// height forward, and tries again. It moves it halfway to the front: all the way there undoes more of what earlier
// rounds found and ended higher on most of the hard instances tried. So did starting from the orders by size or area.
func promote(s *search) {
	if s.mending == nil {
		s.mending = newMending(s.problem.items)
	}
	for len(s.mending) > 0 && !s.done() {
		s.mending = slices.DeleteFunc(s.mending, func(m *mended) bool { return !m.mend(s) })
	}
}

func newMending(items []item) []*mended {
	var all []*mended
	for _, o := range []order{loadSlotsOrder, startOrder, slotsOrder} {
		order := o.of(items)
		for _, fit := range fits {
			all = append(all, &mended{slices.Clone(order), fit})
		}
	}
	return all
}

// mended is an order that promote works on.
type mended struct {
	order []int
	fit   fit
}

// mend changes the order for a burst of rounds. It reports whether more of them may help.
func (m *mended) mend(s *search) bool {
	first := 0 // items that are always resident keep their places
	for first < len(m.order) && s.problem.items[m.order[first]].always {
		first++
	}
	for range burst {
		if s.done() {
			return true
		}
		stopped := s.try(m.order, m.fit, s.steps/2)
		if stopped == first {
			return false // the item is too high with nothing but always resident ones below it
		}
		if stopped > first {
			forward(m.order, stopped, (first+stopped)/2)
		}
	}
	return true
}

// forward moves the element at from to an earlier position.
func forward(order []int, from, to int) {
	moved := order[from]
	copy(order[to+1:from+1], order[to:from])
	order[to] = moved
}
