package proof

import "tensile/plan/program"

// checkOrder knows what comes before what: it keeps a vector clock per command.
type checkOrder struct {
	lanes  *program.Lanes
	clocks [][]int // per stream: clocks of its commands, each with a number per stream, one after the other
}

func newCheckOrder(streams []program.Unit) checkOrder {
	return checkOrder{lanes: program.NewLanes(streams), clocks: make([][]int, len(streams))}
}

// endedBy returns, per stream, how many commands have ended whenever the command at a point ends. A point's Count is
// absolute here, and 1 or more.
func (o *checkOrder) endedBy(p program.Point) []int {
	n := len(o.clocks)
	return o.clocks[p.Stream][(p.Count-1)*n : p.Count*n]
}

// add records a command that comes after the floor of its run, after those before it in its stream, and after some
// points. It returns its place.
func (o *checkOrder) add(run *program.Run, s program.Stream, waits []program.Point) program.Point {
	before := o.lanes.Ended(s)
	if floor := run.Floor(); floor == nil {
		o.clocks[s] = append(o.clocks[s], make([]int, len(o.clocks))...)
	} else {
		o.clocks[s] = append(o.clocks[s], floor...)
	}
	at := program.Point{Stream: s, Count: o.lanes.Pass(s)}
	clock := o.endedBy(at)
	if before > 0 {
		join(clock, o.endedBy(program.Point{Stream: s, Count: before}))
	}
	for _, w := range waits {
		if count := run.Count(w); count > 0 {
			join(clock, o.endedBy(program.Point{Stream: w.Stream, Count: count}))
		}
	}
	clock[s] = at.Count
	return at
}

func join(clock, other []int) {
	for s, count := range other {
		clock[s] = max(clock[s], count)
	}
}

// checkWaits checks the waits of a command and records it.
func (c *checker) checkWaits(where place, run *program.Run, cmd *program.Command) program.Point {
	waits := cmd.Waits
	for i, w := range cmd.Waits {
		switch {
		case w.Stream < 0 || int(w.Stream) >= len(c.p.Streams):
			c.say(where, ErrCommand, "waits on stream %d", w.Stream)
		case !c.order.lanes.Reached(run, w):
			c.say(where, ErrWait, "waits for %s, %d issued so far", w,
				c.order.lanes.Ended(w.Stream)-run.Count(program.Point{Stream: w.Stream}))
		default:
			continue
		}
		waits = waits[:min(i, len(waits))] // one mistake makes many
	}
	return c.order.add(run, cmd.Stream, waits)
}

// unordered returns an earlier access to cells that conflicts with one and may come after it, and what it is; "" if
// there is none.
func (o *checkOrder) unordered(cells *span, write bool, at program.Point) (other program.Point, what string) {
	known := o.endedBy(at) // at itself included, so that what it read before it writes is no conflict
	for i := range cells.cells {
		if w := &cells.cells[i].write; known[w.Stream] < w.Count {
			return *w, access(true)
		}
	}
	if !write {
		return program.Point{}, ""
	}
	for reads := cells.reads; len(reads) > 0; reads = reads[len(known):] {
		for s, n := range reads[:len(known)] {
			if known[s] < n {
				return program.Point{Stream: program.Stream(s), Count: n}, access(false)
			}
		}
	}
	return program.Point{}, ""
}

func access(write bool) string {
	if write {
		return "write"
	}
	return "read"
}
