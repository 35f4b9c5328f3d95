package fakecuda

import (
	"slices"
	"sort"

	"tensile/device/ptx"
)

// lane is where operations follow one another. The host has lane 0, each stream and each operation of a graph one of
// its own.
type lane struct {
	number int
	tick   uint32 // of the latest operation, or of the one whose place it is
}

// clock is a vector clock: per lane, the tick of the last operation that is known to have ended.
type clock []uint32

// merge returns the least clock that knows all that c and o know. It may be c itself, changed.
func (c clock) merge(o clock) clock {
	for len(c) < len(o) {
		c = append(c, 0)
	}
	for number, tick := range o {
		c[number] = max(c[number], tick)
	}
	return c
}

// stamp returns c, changed, as the clock of an operation.
func (c clock) stamp(l lane) clock {
	for len(c) <= l.number {
		c = append(c, 0)
	}
	c[l.number] = l.tick
	return c
}

// knows reports whether an operation comes before all that have the clock.
func (c clock) knows(o *node) bool { return o.number < len(c) && c[o.number] >= o.tick }

// shadow holds who has used which bytes of an allocation, of pinned memory or, as one byte, of a module.
type shadow struct {
	parts []part // sorted, disjoint
}

type part struct {
	ptx.Range
	writer  *node   // the last, nil: none
	readers []*node // since then, none of which comes before another
}

// conflict is two uses of bytes that nothing orders.
type conflict struct {
	ptx.Range
	other  *node
	writes bool // the other
}

// use notes that an operation reads or writes a range, and returns a conflict if there is one.
func (s *shadow) use(r ptx.Range, n *node, writes bool) (found conflict, ok bool) {
	first := sort.Search(len(s.parts), func(i int) bool { return s.parts[i].End > r.Begin })
	last := first
	var fresh, tail []part
	at := r.Begin
	for ; last < len(s.parts) && s.parts[last].Begin < r.End; last++ {
		p := s.parts[last]
		if p.Begin < r.Begin {
			head := p
			head.End = r.Begin
			fresh = append(fresh, head)
			p.Begin = r.Begin
		}
		if p.End > r.End {
			rest := p
			rest.Begin = r.End
			tail = append(tail, rest)
			p.End = r.End
		}
		if other, writing := p.unordered(n, writes); other != nil && !ok {
			found, ok = conflict{p.Range, other, writing}, true
		}
		if writes {
			continue
		}
		if at < p.Begin {
			fresh = append(fresh, part{ptx.Range{Begin: at, End: p.Begin}, nil, []*node{n}})
		}
		at = p.End
		p.readers = append(slices.DeleteFunc(slices.Clone(p.readers), n.clock.knows), n)
		fresh = append(fresh, p)
	}
	switch {
	case writes:
		fresh = append(fresh, part{r, n, nil})
	case at < r.End:
		fresh = append(fresh, part{ptx.Range{Begin: at, End: r.End}, nil, []*node{n}})
	}
	s.parts = slices.Replace(s.parts, first, last, append(fresh, tail...)...)
	return found, ok
}

// unordered returns an operation that has used a part and is not known to come before n, if one of the two writes.
func (p *part) unordered(n *node, writes bool) (other *node, writing bool) {
	if p.writer != nil && !n.clock.knows(p.writer) {
		return p.writer, true
	}
	if writes {
		for _, reader := range p.readers {
			if !n.clock.knows(reader) {
				return reader, false
			}
		}
	}
	return nil, false
}
