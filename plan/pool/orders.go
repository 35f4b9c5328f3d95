package pool

import (
	"cmp"
	"slices"
)

// order is a sequence in which to place buffers.
type order struct {
	name    string
	compare func(a, b *item) int // ties are broken by the buffers' numbers
	plain   bool                 // items that are always resident get no precedence
}

// The orders by name: what comes first, and what decides among equals. Among equal sizes the longer residency goes
// first, so that the activations of a training step, which nest, pile up without holes.
var (
	smartPoolOrder = order{name: "size", compare: largest, plain: true}
	sizeOrder      = order{name: "size,slots", compare: then(largest, longest)}
	areaOrder      = order{name: "area", compare: then(widest, longest)}
	slotsOrder     = order{name: "slots,size", compare: then(longest, largest)}
	loadSlotsOrder = order{name: "load,slots", compare: then(busiest, longest)}
	loadSizeOrder  = order{name: "load,size", compare: then(busiest, largest)}
	startOrder     = order{name: "start,slots", compare: then(earliest, longest)}
)

func largest(a, b *item) int  { return cmp.Compare(b.size, a.size) }
func longest(a, b *item) int  { return cmp.Compare(b.slots, a.slots) }
func busiest(a, b *item) int  { return cmp.Compare(b.load, a.load) }
func earliest(a, b *item) int { return cmp.Compare(a.spans[0].From, b.spans[0].From) }
func widest(a, b *item) int {
	return cmp.Or(cmp.Compare(b.area.hi, a.area.hi), cmp.Compare(b.area.lo, a.area.lo))
}

// then compares by the first and, among equals, by the second.
func then(first, second func(a, b *item) int) func(a, b *item) int {
	return func(a, b *item) int {
		if c := first(a, b); c != 0 {
			return c
		}
		return second(a, b)
	}
}

// of returns the item numbers in the order. Items resident in every column come first, the most aligned at the bottom:
// they take a strip that no other item could use, wherever it lies, so at the bottom they lose nothing (bar the padding
// where alignments differ) and, being merged into one range, cost nothing to look past.
func (o order) of(items []item) []int {
	numbers := make([]int, len(items))
	for i := range numbers {
		numbers[i] = i
	}
	slices.SortFunc(numbers, func(i, j int) int {
		a, b := &items[i], &items[j]
		c := 0
		switch {
		case o.plain:
			c = o.compare(a, b)
		case a.always && b.always:
			c = cmp.Compare(b.align, a.align)
		case a.always:
			return -1
		case b.always:
			return 1
		default:
			c = o.compare(a, b)
		}
		return cmp.Or(c, cmp.Compare(i, j))
	})
	return numbers
}
