package pool

import (
	"slices"
	"sort"
)

// byteRange is a half-open range of bytes.
type byteRange struct{ lo, hi int64 }

// byteSet is a union of byte ranges: sorted, disjoint, and merged where they touch.
type byteSet []byteRange

// add joins a range to the set.
func (s *byteSet) add(r byteRange) {
	set := *s
	from := sort.Search(len(set), func(i int) bool { return set[i].hi >= r.lo })
	to := from
	for to < len(set) && set[to].lo <= r.hi {
		r = byteRange{min(r.lo, set[to].lo), max(r.hi, set[to].hi)}
		to++
	}
	if to == from+1 {
		set[from] = r
		return
	}
	*s = slices.Replace(set, from, to, r)
}

// after drops the ranges that end at or before x. It looks at a few at the front and doubles its stride from there,
// since callers move up by small steps.
func (s byteSet) after(x int64) byteSet {
	step := 1
	for step < len(s) && s[step-1].hi <= x {
		s = s[step:]
		step *= 2
	}
	n := min(step, len(s))
	if n <= 4 {
		for len(s) > 0 && s[0].hi <= x {
			s = s[1:]
		}
		return s
	}
	return s[sort.Search(n, func(i int) bool { return s[i].hi > x }):]
}
