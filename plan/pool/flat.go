package pool

import "sort"

// flat holds placed byte ranges in one list by offset and reads through all of it. It does the same as index, faster
// for up to some thousand spans.
type flat struct {
	ranges []byteRange
	spans  []Span // of the ranges
	found  byteSet
}

func (f *flat) clear() { f.ranges, f.spans = f.ranges[:0], f.spans[:0] }

func (f *flat) add(s Span, r byteRange) {
	at := sort.Search(len(f.ranges), func(i int) bool { return f.ranges[i].lo > r.lo })
	f.ranges, f.spans = append(f.ranges, r), append(f.spans, s)
	copy(f.ranges[at+1:], f.ranges[at:])
	copy(f.spans[at+1:], f.spans[at:])
	f.ranges[at], f.spans[at] = r, s
}

func (f *flat) taken(q *query, spans []Span) {
	q.steps += len(spans) * len(f.spans) / 4
	f.found = f.found[:0]
	for _, s := range spans {
		start := len(f.found)
		end := int64(-1)
		for i, t := range f.spans {
			if s.From >= t.To || t.From >= s.To {
				continue
			}
			if r := f.ranges[i]; r.lo > end {
				f.found = append(f.found, r)
				end = r.hi
			} else if r.hi > end {
				end = r.hi
				f.found[len(f.found)-1].hi = end
			}
		}
		if set := f.found[start:len(f.found):len(f.found)]; len(set) > 0 {
			q.sets = append(q.sets, set)
		}
	}
}
