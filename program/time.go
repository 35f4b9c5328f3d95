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
	Stall      time.Duration   // of the compute lane within that time
}

// Time predicts the steady state of a program by carrying out bodies until one is like that before it: a command starts when its lane
// is free and its waits have ended. Most programs are steady after two or three; where a lane takes a little longer than the others,
// copies pile up over many, and the last of 32 is taken.
func Time(p *Program, d Durations) Timing {
	const most = 32
	r := &replay{}
	commands := p.Body.Commands
	t := Timing{Start: make([]time.Duration, len(commands)), End: make([]time.Duration, len(commands))}
	var before time.Duration
	for body := range most {
		before = r.last(Compute)
		t.Stall = 0
		steady := body > 0
		for i, c := range commands {
			free := r.last(c.Lane)
			start, end := r.run(c, d.of(c))
			if c.Lane == Compute {
				t.Stall += start - free
			}
			steady = steady && t.Start[i] == start-before && t.End[i] == end-before
			t.Start[i], t.End[i] = start-before, end-before
		}
		if steady {
			break // what follows depends on this body alone
		}
		r.origin = r.counts()
	}
	t.Iteration = r.last(Compute) - before
	return t
}

// of returns how long a command takes.
func (d Durations) of(c Command) time.Duration {
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
	ends   [Lanes][]time.Duration
	origin [Lanes]int
}

func (r *replay) last(l Lane) time.Duration {
	if n := len(r.ends[l]); n > 0 {
		return r.ends[l][n-1]
	}
	return 0
}

func (r *replay) counts() [Lanes]int {
	var n [Lanes]int
	for l := range n {
		n[l] = len(r.ends[l])
	}
	return n
}

func (r *replay) run(c Command, took time.Duration) (start, end time.Duration) {
	start = r.last(c.Lane)
	for _, w := range c.Waits {
		if at := r.origin[w.Lane] + w.Count; at > 0 {
			start = max(start, r.ends[w.Lane][at-1])
		}
	}
	end = start + took
	r.ends[c.Lane] = append(r.ends[c.Lane], end)
	return start, end
}

// Stalls returns, per step of the plan, how long the compute lane stands still before it.
func (t Timing) Stalls(p *Program) []time.Duration {
	stalls := make([]time.Duration, len(p.Plan.Steps))
	var free time.Duration
	for i, c := range p.Body.Commands {
		if c.Lane != Compute {
			continue
		}
		if c.Kind == Kernel {
			stalls[c.Slot] = t.Start[i] - free
		}
		free = t.End[i]
	}
	return stalls
}
