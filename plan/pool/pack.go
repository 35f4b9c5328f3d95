package pool

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Options says how to pack. The zero value is what programs use.
type Options struct {
	// Method is one of Methods. Empty is "search", which is never higher than the greedy ones.
	Method string

	// Capacity in bytes is the height that a search aims at first and ends with. 0: it aims at the lower bound, and on
	// its way there at heights between that and the best layout, as it does where it misses a capacity.
	Capacity int64

	// Enough is a height in bytes that ends the search, which otherwise goes on as without. 0: none is but the lowest.
	Enough int64

	// Rounds bounds the work of a search: a round takes 5 to 20 ms for a thousand buffers. 0 means 1.
	Rounds int

	// Stop is asked every fraction of a millisecond, by the caller's goroutine, and ends a search early when it reports
	// true; the layout is then no longer the same each time. It may panic: nothing is kept of the search then. nil:
	// never.
	Stop func() bool
}

// methods are the ways to pack by their names.
var methods = map[string]procedure{
	"search":    {[]method{simple}, []stage{{coarse(promote), 6}, {descend, 2}, {promote, 1}}},
	"greedy":    {first: []method{simple}},
	"promote":   {[]method{simple}, []stage{{promote, 1}}},
	"descend":   {[]method{simple}, []stage{{descend, 1}}},
	"smartpool": {first: []method{once(smartPoolOrder, bestFit)}},
	"first-fit": {first: []method{once(smartPoolOrder, firstFit)}},
	"size":      {first: []method{once(sizeOrder, bestFit)}},
	"area":      {first: []method{once(areaOrder, bestFit)}},
	"lifetime":  {first: []method{once(slotsOrder, bestFit)}},
	"online":    {},
}

// Methods returns the names of the ways to pack:
//
//	search     greedy, and then promote on the large buffers alone, descend and promote in turn
//	greedy     the best of several orders, each by first fit and by best fit
//	promote    greedy, and then orders mended by local search
//	descend    greedy, and then descents below one limit after another, which may prove that no layout is lower
//	smartpool  largest first into the smallest gap (SmartPool, section III-C)
//	first-fit  largest first into the lowest gap (the same section)
//	size       largest, then longest first, into the smallest gap
//	area       largest size times slots first, into the smallest gap
//	lifetime   longest first, into the smallest gap
//	online     as the buffers come, by an [Online] allocator
func Methods() []string { return slices.Sorted(maps.Keys(methods)) }

// Pack places the buffers so that no two that share a slot share a byte, in as little height as the method finds: a
// search ends for training steps most often within 0.1 % of the lower bound. Equal buffers and options give equal
// layouts, unless Stop ends the search. The error names each buffer that is not as [Buffer] says, or at which the sizes
// and alignments add up to more than an int64 holds; offsets never wrap.
//
// The work is bounded by counted steps: about 10 ms a round for a thousand buffers, a few seconds at most for 100,000.
func Pack(buffers []Buffer, o Options) (Layout, error) {
	name := o.Method
	if name == "" {
		name = "search"
	}
	procedure, ok := methods[name]
	if !ok {
		return Layout{}, fmt.Errorf("pool: there is no method %q; the methods are %s", name,
			strings.Join(Methods(), ", "))
	}
	if err := check(buffers).err(); err != nil {
		return Layout{}, err
	}
	p := prepare(buffers, o.Stop)
	if err := p.clash(); err != nil {
		return Layout{}, err
	}
	if name == "online" {
		return packOnline(buffers, p.load)
	}
	s := newSearch(p, o)
	before := s.steps
	s.run(procedure)
	l := s.layout(buffers)
	l.Work = before - s.steps
	return l, nil
}

func packOnline(buffers []Buffer, bound int64) (Layout, error) {
	offsets, err := onlineLayout(buffers)
	if err != nil {
		return Layout{}, err
	}
	l := Layout{Offsets: offsets, LowerBound: bound}
	for i, b := range buffers {
		if b.Size > 0 {
			l.Height = max(l.Height, offsets[i]+b.Size)
		}
	}
	l.Optimal = l.Height == bound
	return l, nil
}

// layout is the lowest found.
func (s *search) layout(buffers []Buffer) Layout {
	l := Layout{Offsets: make([]int64, len(buffers)), Height: s.height, LowerBound: s.bound,
		Optimal: s.height == s.bound}
	fixed := make(map[int]int64) // per group
	for _, b := range buffers {
		if b.Fixed {
			fixed[b.Alias] = b.At
		}
	}
	for i, b := range buffers { // those without bytes stay where this puts them
		if b.Fixed {
			l.Offsets[i] = b.At
		} else if b.Alias != 0 {
			l.Offsets[i] = fixed[b.Alias]
		}
	}
	for i, it := range s.problem.items {
		for _, b := range it.buffers {
			l.Offsets[b] = s.offsets[i]
		}
	}
	return l
}

// simple tries each order once with each fit, whatever work is left: a search is never higher than these.
func simple(s *search) {
	for _, o := range []order{sizeOrder, loadSlotsOrder, startOrder, slotsOrder, areaOrder, loadSizeOrder,
		smartPoolOrder} {
		order := o.of(s.problem.items)
		for _, fit := range fits {
			if s.placed && s.content() {
				return
			}
			s.try(order, fit, s.allowance)
		}
	}
}

// once tries one order with one fit.
func once(o order, fit fit) method {
	return func(s *search) { s.try(o.of(s.problem.items), fit, s.allowance) }
}
