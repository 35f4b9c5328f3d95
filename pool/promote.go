package pool

import "slices"

// promoteRounds is how often each order is mended.
const promoteRounds = 48

// promote mends orders: it tries one against the best height so far, moves the item that would have stood above that
// height forward, and tries again. It moves it halfway to the front: all the way there undoes more of what earlier rounds
// found and ended higher on most of the hard instances tried. So did starting from the orders by size or area.
func promote(s *search) {
	for _, o := range []order{loadSlotsOrder, startOrder, slotsOrder} {
		order := o.of(s.problem.items)
		for _, fit := range fits {
			mend(s, slices.Clone(order), fit)
		}
	}
}

// mend changes one order for a fixed number of rounds.
func mend(s *search, order []int, fit fit) {
	first := 0 // items that are always resident keep their places
	for first < len(order) && s.problem.items[order[first]].always {
		first++
	}
	for range promoteRounds {
		if s.done() {
			return
		}
		stopped := s.try(order, fit)
		if stopped == first {
			return // the item is too high with nothing but always resident ones below it
		}
		if stopped > first {
			forward(order, stopped, (first+stopped)/2)
		}
	}
}

// forward moves the element at from to an earlier position.
func forward(order []int, from, to int) {
	moved := order[from]
	copy(order[to+1:from+1], order[to:from])
	order[to] = moved
}
