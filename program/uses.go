package program

import (
	"slices"

	"tensile/graph"
)

// uses is what is known of the accesses to one residency, host slot or scratch: its last write, and per lane the last
// read since. Counts are absolute over several runs of a section; 0 is none.
type uses struct {
	write Point
	reads [Lanes]int
}

// need collects, per lane, the count that must have been reached.
type need [Lanes]int

func (n *need) point(p Point)   { n[p.Lane] = max(n[p.Lane], p.Count) }
func (n *need) toRead(u *uses)  { n.point(u.write) }
func (n *need) toWrite(u *uses) { n.point(u.write); n.raise(u.reads) }
func (n *need) raise(m [Lanes]int) {
	for l, c := range m {
		n[l] = max(n[l], c)
	}
}

func (u *uses) read(at Point)  { u.reads[at.Lane] = max(u.reads[at.Lane], at.Count) }
func (u *uses) wrote(at Point) { *u = uses{write: at} }

// occupancy says who used each byte of a region last. Ranges are disjoint and ascending.
type occupancy struct {
	ranges []occupied
}

type occupied struct {
	from, to graph.Bytes
	by       *uses
}

// occupy gives [from, to) to by and adds the accesses of everyone who was there before to n.
func (o *occupancy) occupy(from, to graph.Bytes, by *uses, n *need) {
	first, _ := slices.BinarySearchFunc(o.ranges, from, func(r occupied, at graph.Bytes) int {
		if r.to <= at {
			return -1
		}
		return 1
	})
	last := first
	replacement := make([]occupied, 0, 3)
	for ; last < len(o.ranges) && o.ranges[last].from < to; last++ {
		r := o.ranges[last]
		n.toWrite(r.by)
		if r.from < from {
			replacement = append(replacement, occupied{r.from, from, r.by})
		}
		if r.to > to {
			replacement = append(replacement, occupied{from, to, by}, occupied{to, r.to, r.by})
		}
	}
	if len(replacement) == 0 || replacement[len(replacement)-1].to <= from {
		replacement = append(replacement, occupied{from, to, by})
	}
	o.ranges = slices.Replace(o.ranges, first, last, replacement...)
}
