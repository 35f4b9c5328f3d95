package pool

// method improves the layout of a search, or makes the first one. It stops when the search is done.
type method func(s *search)

// methods run one after another, cheap ones first.
var methods = []method{simple, promote}

// Pack places the buffers so that no two that share a slot share a byte, in as little height as its methods find: for
// training steps most often within 1 % of the lower bound. Equal buffers give equal layouts. The error names each buffer
// that is not as [Buffer] says, or at which the sizes and alignments add up to more than an int64 holds; offsets never
// wrap.
//
// The work is bounded by counted steps: about 10 ms for a thousand buffers, a few seconds at most for 100,000.
func Pack(buffers []Buffer) (Layout, error) {
	if err := check(buffers).err(); err != nil {
		return Layout{}, err
	}
	return pack(buffers, methods), nil
}

// pack packs buffers that check finds nothing wrong with.
func pack(buffers []Buffer, methods []method) Layout {
	s := newSearch(newProblem(buffers))
	s.apply(methods)
	l := Layout{Offsets: make([]int64, len(buffers)), Height: s.height, LowerBound: s.problem.load}
	for i, it := range s.problem.items {
		l.Offsets[it.buffer] = s.offsets[i]
	}
	return l
}

// simple tries each order once with each fit.
func simple(s *search) {
	for _, o := range []order{sizeOrder, loadSlotsOrder, startOrder, slotsOrder, areaOrder, loadSizeOrder} {
		order := o.of(s.problem.items)
		for _, fit := range fits {
			if s.done() {
				return
			}
			s.try(order, fit)
		}
	}
}
