package compile

import "tensile/plan/program"

// Compile writes a stream per unit, of its number, but for the network, then one more for the copies of the prologue,
// and one of the network where the graph has something to reduce.
const (
	entryStream   = program.Stream(program.Network)
	networkStream = entryStream + 1
	streams       = networkStream + 1
)

// clock says, per stream, how many commands are known to have ended.
type clock [streams]int

func (c *clock) join(d clock) {
	for s, count := range d {
		c[s] = max(c[s], count)
	}
}

// order keeps vector clocks of the commands written so far, to leave out waits that others imply.
type order struct {
	clocks [streams][]clock // per stream and command: what is known when it ends
}

// waits returns the waits that a new command of a stream needs to come after n, counted from origin, and records its
// clock. Needs that follow from the stream's own order or from another wait are left out.
func (o *order) waits(own program.Stream, n need, origin need) []program.Point {
	var known clock
	if done := len(o.clocks[own]); done > 0 {
		known = o.clocks[own][done-1]
	}
	var waits []program.Point
	for s := range streams {
		if n[s] <= known[s] || o.implied(s, n, known) {
			continue
		}
		waits = append(waits, program.Point{Stream: s, Count: n[s] - origin[s]})
	}
	for _, w := range waits {
		known.join(o.clocks[w.Stream][w.Count+origin[w.Stream]-1])
	}
	known[own] = len(o.clocks[own]) + 1
	o.clocks[own] = append(o.clocks[own], known)
	return waits
}

// implied reports whether the need of a stream follows from that of another one.
func (o *order) implied(s program.Stream, n need, known clock) bool {
	for other := range streams {
		if other != s && n[other] > known[other] && o.clocks[other][n[other]-1][s] >= n[s] {
			return true
		}
	}
	return false
}
