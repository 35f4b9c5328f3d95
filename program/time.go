package program

import (
	"time"

	"tensile/cost"
)

// Durations says how long commands take.
type Durations struct {
	Steps []time.Duration // per step of the plan
	Out   cost.Link
	In    cost.Link
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
	const limit = 32
	r := &replay{lanes: NewLanes(p.Streams), ends: make([][]time.Duration, len(p.Streams))}
	commands := p.Body.Commands
	t := Timing{Start: make([]time.Duration, len(commands)), End: make([]time.Duration, len(commands))}
	var before, computed time.Duration // ends of the last kernels of the previous body and so far
	for body := range limit {
		run := r.lanes.Start(&p.Body, body, false)
		before = computed
		t.Stall = 0
		steady := body > 0
		for i := range commands {
			c := &commands[i]
			free := r.last(c.Stream)
			start, end := r.command(run, c, d.of(c))
			if c.Kind.Unit() == Compute {
				t.Stall += start - free
				computed = max(computed, end)
			}
			steady = steady && t.Start[i] == start-before && t.End[i] == end-before
			t.Start[i], t.End[i] = start-before, end-before
		}
		if steady {
			break // what follows depends on this body alone
		}
	}
	t.Iteration = computed - before
	return t
}

// of returns how long a command takes.
func (d *Durations) of(c *Command) time.Duration {
	switch c.Kind {
	case Kernel:
		return d.Steps[c.Slot]
	case Out:
		return d.Out.Time(c.Bytes)
	case In:
		return d.In.Time(c.Bytes)
	}
	return 0
}

// replay carries out commands in list order and remembers when each ended.
type replay struct {
	lanes *Lanes
	ends  [][]time.Duration // per stream
}

func (r *replay) last(s Stream) time.Duration {
	if n := len(r.ends[s]); n > 0 {
		return r.ends[s][n-1]
	}
	return 0
}

func (r *replay) command(run *Run, c *Command, took time.Duration) (start, end time.Duration) {
	start = r.last(c.Stream)
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
