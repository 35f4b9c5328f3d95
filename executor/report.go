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
	// Job is the job's name.
	Job string
	// Epoch numbers the plan.
	Epoch int64
	// Iteration is the number of the iteration, from 0.
	Iteration int
	// Left is when the job left Home last, or when the way through Home began by which its plan changed.
	Left time.Duration
	// Begin is, by the device's clock, the end of the last kernel of the iteration before. For the first iteration
	// after Home it is the start of the iteration's own first kernel, which may come before the end of the prologue.
	Begin time.Duration
	// End is the end of the iteration's last kernel.
	End time.Duration
	// Steps are the latencies of the plan's steps, waits left out.
	Steps []time.Duration
	// Stall is for how long the compute stream waited: the sum over kernels of start(k) - end(k-1), Gate left out.
	Stall time.Duration
	// Gate is for how long nothing was issued to the compute stream because a group waited for its grant.
	Gate time.Duration `json:",omitzero"`
	// Copies are the copies of the iteration.
	Copies []swapexec.Copy
	// Script is what a script says of itself; nil for other jobs.
	Script *Script `json:",omitempty"`

	// Touched is the highest byte of the arena that a command has used since the plan came into force; of a script the
	// most that its allocator had in the iteration.
	Touched graph.Bytes `json:",omitzero"`
}

// Script is what a script says of itself.
type Script struct {
	// Plan is the most that the plan in force needs, with what the script holds beside it, in bytes; 0: there is no
	// plan.
	Plan graph.Bytes
	// Reserve is the most that the allocator has had beyond plans, in bytes.
	Reserve graph.Bytes
	// Hooks says that the plan is played by hooks of what autograd saves.
	Hooks bool
	// Loss is the loss of the iteration; nil: the script has told none.
	Loss *float64 `json:",omitempty"`
}

// Trace is what a section of a job has done, command by command.
type Trace struct {
	// Program is the program in force.
	Program *program.Program
	// Section is the section that the events are of.
	Section *program.Section
	// Iteration is the iteration that it belongs to, from 0.
	Iteration int
	// Begin is, for an iteration, the Begin of its Report.
	Begin time.Duration
	// Events are the ends of the section's commands.
	Events []device.Event
	// Gates are, per command of an iteration, the part of its Report's Gate that comes before the command; nil for
	// other sections.
	Gates []time.Duration
}

// measure measures a body that is complete, and returns the part of Gate that is before each of its commands.
func (m *Machine) measure(r *run) (*Report, []time.Duration) {
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

// departureEnd returns when the way out of Home ended: when the first kernel of the first body started.
func (m *Machine) departureEnd(r *run) time.Duration {
	for i := range r.section.Commands {
		if r.section.Commands[i].Kind.Unit() == program.Compute {
			return r.events[i].Start
		}
	}
	return m.pausedSince
}
