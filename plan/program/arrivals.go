package program

import (
	"slices"
	"time"

	"tensile/graph/cost"
)

// Arrivals orders the copies of the prologues that are under way on a device, of all its jobs: those that are needed
// later leave the link to others. A device tells it what was issued, what begins and what has ended.
//
// How soon a job needs a copy is told by how far its first iteration has come, which is the sum of the latencies of the
// steps that have ended, as its plan has them. No clock is asked: jobs that slow each other down stay comparable.
type Arrivals struct {
	all   []*Arrival // with copies that have not ended, in the order in which they were issued
	swaps int        // copies in of bodies of all jobs that are under way
}

// Arrival is the prologue of a program that a job has loaded.
type Arrival struct {
	program *Program
	made    []time.Duration // per step
	latest  []time.Duration // per copy: when it has to begin, alone on the link, for all from it on to be in time
	ended   int             // copies
	come    time.Duration   // how far the first iteration has come
	swaps   int             // copies in of bodies of the job that are under way
}

// NewArrival returns the prologue of a program, which was not issued yet, for a device with a link.
func NewArrival(p *Program, in cost.Link) *Arrival {
	x := &Arrival{program: p, made: p.Plan.Made, latest: make([]time.Duration, len(p.Prologue.Commands))}
	for i, c := range slices.Backward(p.Prologue.Commands) {
		x.latest[i] = c.Due
		if i+1 < len(x.latest) {
			x.latest[i] = min(x.latest[i], x.latest[i+1])
		}
		x.latest[i] -= in.Time(c.Bytes)
	}
	return x
}

// Issue tells that a section of a program is issued.
func (a *Arrivals) Issue(x *Arrival, s *Section) {
	if s == &x.program.Prologue && len(x.latest) > 0 {
		x.ended, x.come = 0, 0
		a.all = append(a.all, x)
	}
}

// Begin tells that a command of a section begins.
func (a *Arrivals) Begin(x *Arrival, s *Section, c *Command) {
	if c.Kind == In && s != &x.program.Prologue {
		x.swaps++
		a.swaps++
	}
}

// End tells that it has ended.
func (a *Arrivals) End(x *Arrival, s *Section, c *Command) {
	switch {
	case c.Kind.Executes() && c.Slot < len(x.made):
		x.come += x.made[c.Slot]
	case c.Kind == In && s != &x.program.Prologue:
		x.swaps--
		a.swaps--
	case c.Kind == In:
		if x.ended++; x.ended == len(x.latest) {
			a.remove(x)
		}
	}
}

// Close forgets what a job has under way, whose last prologue is x; nil: it has loaded none.
func (a *Arrivals) Close(x *Arrival) {
	if x != nil {
		a.swaps -= x.swaps
		a.remove(x)
	}
}

func (a *Arrivals) remove(x *Arrival) {
	a.all = slices.DeleteFunc(a.all, func(y *Arrival) bool { return y == x })
}

// Yields reports whether the next copy of a prologue waits: for one of another prologue that is needed sooner, or,
// while there is time, for the bodies' copies that are under way. One that its job stands still for never waits, so
// that nothing waits for ever.
func (a *Arrivals) Yields(x *Arrival, awaited bool) bool {
	if awaited || x.ended == len(x.latest) {
		return false
	}
	if a.swaps > 0 && x.come < x.latest[x.ended] {
		return true
	}
	before := true
	for _, y := range a.all {
		if y == x {
			before = false
		} else if y.slack() < x.slack() || y.slack() == x.slack() && before {
			return true
		}
	}
	return false
}

// slack is the work that a job has before it needs the next copy of its prologue.
func (x *Arrival) slack() time.Duration { return x.program.Prologue.Commands[x.ended].Due - x.come }
