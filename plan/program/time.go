package program

import (
	"time"

	"tensile/graph/cost"
)

// Durations says how long commands take.
type Durations struct {
	Steps []time.Duration // per step of the plan
	Out   cost.Link
	In    cost.Link
	Host  cost.Link // from host memory to host memory
}

// Timing is the predicted course of one body in the steady state, from the end of the previous body's last step.
type Timing struct {
	Start, End []time.Duration // per command of the body
	Iteration  time.Duration   // from one body's last step to the next one's
	Stall      time.Duration   // of the compute stream within that time
}

// Time predicts the steady state of a program. It carries out bodies until one is like the one before it: a command
// starts when its lane is free and its waits have ended. Most programs are steady after two or three bodies; where a
// lane takes a little longer than the others, copies pile up over many, and the last of 32 is taken.
func Time(p *Program, d Durations) Timing {
	t, _ := steady(p, d, newReplay(p))
	return t
}

// TimeSnapshot predicts by how much longer training takes for a snapshot section in the place of one body of the steady
// state: how much longer that iteration takes, and those after it until they are as before.
func TimeSnapshot(p *Program, d Durations) time.Duration {
	r := newReplay(p)
	usual, _ := steady(p, d, r)
	before := r.computed
	r.section(&p.Snapshot, d, nil)
	_, after := steady(p, d, r)
	return r.computed - before - time.Duration(1+after)*usual.Iteration
}

// TimeHome predicts by how much longer training takes for a snapshot that is taken in Home: the epilogue, a copy of all
// persistent storages within host memory, what the first iteration waits for of the prologue, and what is lost because
// no iterations overlap there.
func TimeHome(p *Program, d Durations) time.Duration {
	r := newReplay(p)
	usual, _ := steady(p, d, r)
	before := r.computed
	r.drained(&p.Epilogue, d)
	r.drain()
	_, state := SnapshotSlots(p.Graph)
	r.floor += d.Host.Time(state)
	r.drained(&p.Prologue, d)
	_, after := steady(p, d, r)
	return r.computed - before - time.Duration(after)*usual.Iteration
}

// drained carries out a section before which all streams drain.
func (r *replay) drained(s *Section, d Durations) {
	r.drain()
	run := r.lanes.Start(s, 0, true)
	for i := range s.Commands {
		r.command(run, &s.Commands[i], d.of(&s.Commands[i]))
	}
}

// drain lets nothing begin before all has ended.
func (r *replay) drain() {
	for s := range r.ends {
		r.floor = max(r.floor, r.last(Stream(s)))
	}
}

// steady carries out bodies until one is like the one before it, and returns its times and the number of bodies.
func steady(p *Program, d Durations, r *replay) (Timing, int) {
	const limit = 32
	n := len(p.Body.Commands)
	t := Timing{Start: make([]time.Duration, n), End: make([]time.Duration, n)}
	for body := 1; ; body++ {
		before := r.computed
		same := r.section(&p.Body, d, &t) && body > 1
		if t.Iteration = r.computed - before; same || body == limit {
			return t, body // what follows depends on this body alone
		}
	}
}

// section carries out an iteration. It puts its times into t, if that is not nil, and reports whether they were there
// already.
func (r *replay) section(s *Section, d Durations, t *Timing) (same bool) {
	run := r.lanes.Start(s, 0, false)
	before := r.computed
	var stall time.Duration
	same = t != nil
	for i := range s.Commands {
		c := &s.Commands[i]
		free := r.last(c.Stream)
		start, end := r.command(run, c, d.of(c))
		if c.Kind.Unit() == Compute {
			stall += start - free
			r.computed = max(r.computed, end)
		}
		if t != nil {
			same = same && t.Start[i] == start-before && t.End[i] == end-before
			t.Start[i], t.End[i] = start-before, end-before
		}
	}
	if t != nil {
		t.Stall = stall
	}
	return same
}

// of returns how long a command takes.
func (d *Durations) of(c *Command) time.Duration {
	switch c.Kind {
	case Kernel, Reduce:
		return d.Steps[c.Slot]
	case Out, Save:
		return d.Out.Time(c.Bytes)
	case In:
		return d.In.Time(c.Bytes)
	case Keep:
		return d.Host.Time(c.Bytes)
	}
	return 0
}

// replay carries out commands in list order and remembers when each ended.
type replay struct {
	lanes    *Lanes
	ends     [][]time.Duration // per stream
	computed time.Duration     // end of the last command of the compute unit
	floor    time.Duration     // nothing begins before it
}

func newReplay(p *Program) *replay {
	return &replay{lanes: NewLanes(p.Streams), ends: make([][]time.Duration, len(p.Streams))}
}

func (r *replay) last(s Stream) time.Duration {
	if n := len(r.ends[s]); n > 0 {
		return r.ends[s][n-1]
	}
	return 0
}

func (r *replay) command(run *Run, c *Command, took time.Duration) (start, end time.Duration) {
	start = max(r.floor, r.last(c.Stream))
	for _, w := range c.Waits {
		if count := run.Count(w); count > 0 {
			start = max(start, r.ends[w.Stream][count-1])
		}
	}
	end = start + took
	r.ends[c.Stream] = append(r.ends[c.Stream], end)
	r.lanes.Pass(c.Stream)
	return start, end
}

// Stalls returns, per step of the plan, how long the compute stream stands still before it.
func (t Timing) Stalls(p *Program) []time.Duration {
	stalls := make([]time.Duration, len(p.Plan.Steps))
	var free time.Duration
	for i, c := range p.Body.Commands {
		if c.Kind.Unit() != Compute {
			continue
		}
		if c.Kind == Kernel {
			stalls[c.Slot] = t.Start[i] - free
		}
		free = t.End[i]
	}
	return stalls
}
