package compile

import "tensile/plan/program"

// uses is what is known of the accesses to one residency, host slot or scratch: its last write, and per stream the last
// read since. Counts are absolute over several runs of a section; 0 is none.
type uses struct {
	write program.Point
	reads need
}

// need collects, per stream, the count that must have been reached.
type need [streams]int

func (n *need) point(p program.Point) { n[p.Stream] = max(n[p.Stream], p.Count) }
func (n *need) toRead(u *uses)        { n.point(u.write) }
func (n *need) toWrite(u *uses)       { n.point(u.write); n.raise(u.reads) }
func (n *need) raise(m need) {
	for s, c := range m {
		n[s] = max(n[s], c)
	}
}

func (u *uses) read(at program.Point)  { u.reads[at.Stream] = max(u.reads[at.Stream], at.Count) }
func (u *uses) wrote(at program.Point) { *u = uses{write: at} }
