package executor

import (
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/program"
	"tensile/swapexec"
)

// Report is what was measured of one iteration.
type Report struct {
	Job       string
	Epoch     int64
	Iteration int
	Left      time.Duration // when the job left Home last, or the way through Home began by which its plan changed
	// end of the last kernel of the iteration before; of the first one after Home the start of its own first kernel,
	// which may come before the end of the prologue; of the device's clock
	Begin time.Duration
	End   time.Duration   // end of the last kernel
	Steps []time.Duration // latency of each step of the plan, waits left out
	Stall time.Duration   // of the compute stream: sum over kernels of start(k) - end(k-1), Gate left out
	// Gate is of the compute stream: nothing was issued to it because a group waited for its grant.
	Gate   time.Duration `json:",omitzero"`
	Copies []swapexec.Copy
	Script *Script `json:",omitempty"` // nil of a job of ours

	// Touched is the highest byte of the arena that a command has used since the plan came into force; of a script the
	// most that its allocator had in the iteration.
	Touched graph.Bytes `json:",omitzero"`
}

// Script is what a script says of itself.
type Script struct {
	Plan    graph.Bytes // the most that the plan in force has, with what the script holds beside it; 0: there is none
	Reserve graph.Bytes // what its allocator had beyond plans, at most
	Loss    *float64    `json:",omitempty"` // of the iteration; nil: it has told none
}

// Trace is what a section of a job has done, command by command.
type Trace struct {
	Program   *program.Program
	Section   *program.Section
	Iteration int
	Begin     time.Duration   // of an iteration, as its Report has it
	Events    []device.Event  // per command
	Gates     []time.Duration // per command of an iteration: what its Report counts as Gate before it; else nil
}

// report measures a body that is complete, and returns the part of Gate that is before each of its commands.
func (m *Machine) report(r *run) (*Report, []time.Duration) {
	if r.iteration == m.endedAtDeparture {
		m.nextBegin = m.departureEnd(r)
		m.paused += m.nextBegin - m.pausedSince
	}
	rep := &Report{Job: m.name, Epoch: m.program.Plan.Epoch, Iteration: r.iteration + m.skipped,
		Left: m.pausedSince, Begin: m.nextBegin,
		Steps: make([]time.Duration, len(m.program.Plan.Steps))}
	free, group, gated := m.nextBegin, -1, make([]time.Duration, len(r.section.Commands))
	for i := range r.section.Commands {
		c, e := &r.section.Commands[i], r.events[i]
		if c.Kind == program.Reduce && len(m.program.Plan.Made) > 0 {
			// what is measured has waits for the other replicas in it, and says nothing of the next iteration
			rep.Steps[c.Slot] = m.program.Plan.Made[c.Slot]
		}
		if c.Kind.Unit() != program.Compute {
			continue
		}
		if c.Kind == program.Kernel {
			rep.Steps[c.Slot] = e.End - e.Start
		}
		gap := max(0, e.Start-free)
		if r.gates != nil {
			gated[i] = min(gap, r.gateWait(&group, i, free))
		}
		rep.Gate += gated[i]
		rep.Stall += gap - gated[i]
		free = e.End
	}
	rep.End, m.nextBegin = free, free
	rep.Copies = swapexec.Account(r.section, r.events, m.previousEvents, gated)
	return rep, gated
}

// departureEnd is when the way out of Home ended: when the first command of the first body that computes started.
func (m *Machine) departureEnd(r *run) time.Duration {
	for i := range r.section.Commands {
		if r.section.Commands[i].Kind.Unit() == program.Compute {
			return r.events[i].Start
		}
	}
	return m.pausedSince
}
