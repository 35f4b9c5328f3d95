package program

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
