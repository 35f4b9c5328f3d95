package program

// clock says, per lane, how many commands are known to have ended.
type clock [Lanes]int

func (c *clock) join(d clock) {
	for l, count := range d {
		c[l] = max(c[l], count)
	}
}

// order keeps vector clocks of the commands written so far, to leave out waits that others imply.
type order struct {
	clocks [Lanes][]clock // per lane and command: what is known when it ends
}

// waits returns the waits that a new command of a lane needs to come after n, counted from origin, and records its
// clock. Needs that follow from the lane's own order or from another wait are left out.
func (o *order) waits(lane Lane, n need, origin [Lanes]int) []Point {
	var known clock
	if done := len(o.clocks[lane]); done > 0 {
		known = o.clocks[lane][done-1]
	}
	var waits []Point
	for l := range Lanes {
		if n[l] <= known[l] || o.implied(l, n, known) {
			continue
		}
		waits = append(waits, Point{l, n[l] - origin[l]})
	}
	for _, w := range waits {
		known.join(o.clocks[w.Lane][w.Count+origin[w.Lane]-1])
	}
	known[lane] = len(o.clocks[lane]) + 1
	o.clocks[lane] = append(o.clocks[lane], known)
	return waits
}

// implied reports whether the need of lane l follows from that of another lane.
func (o *order) implied(l Lane, n need, known clock) bool {
	for m := range Lanes {
		if m != l && n[m] > known[m] && o.clocks[m][n[m]-1][l] >= n[l] {
			return true
		}
	}
	return false
}
