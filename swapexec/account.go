package swapexec

import (
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/program"
)

// Copy is what became of one copy of a section.
type Copy struct {
	// Kind is program.Out or program.In.
	Kind program.Kind
	// Storage is what was copied.
	Storage graph.StorageID
	// Slot is the step that the copy followed.
	Slot int
	// Bytes is how much was copied.
	Bytes graph.Bytes
	// Ready is when the copy's lane was free and its waits were reached.
	Ready time.Duration
	// Start is when it started. A delay lies between Ready and Start.
	Start time.Duration
	// End is when it ended.
	End time.Duration
	// Stall is for how long the compute stream waited for it.
	Stall time.Duration
}

// Account returns the copies that its plan has in a section that has ended, in list order; those of a snapshot are not
// among them. events holds one event per command; before those of the section before, nil if it was drained before;
// gated, of each command, how long its stream had nothing issued before it, which no copy is the cause of; nil: never.
func Account(s *program.Section, events, before []device.Event, gated []time.Duration) []Copy {
	a := accountant{events: events, before: before, gated: gated, streams: streamsOf(s)}
	if len(before) > 0 {
		a.last = streamsOf(before[0].Section)
	}
	var copies []Copy
	at := make(map[int]int) // index of a command to its place in copies
	for i := range s.Commands {
		c := &s.Commands[i]
		if e := events[i]; c.Kind == program.Out || c.Kind == program.In {
			at[i] = len(copies)
			copies = append(copies, Copy{c.Kind, c.Storage, c.Slot, c.Bytes, e.Ready, e.Start, e.End, 0})
		}
	}
	for stream, commands := range a.streams {
		if len(commands) == 0 || s.Commands[commands[0]].Kind.Unit() != program.Compute {
			continue
		}
		for nth, i := range commands {
			last, stall := a.longestWait(program.Point{Stream: program.Stream(stream), Count: nth}, i,
				s.Commands[i].Waits)
			if place, ok := at[last]; ok {
				copies[place].Stall += stall
			}
		}
	}
	return copies
}

type accountant struct {
	events, before []device.Event
	gated          []time.Duration
	streams, last  [][]int // commands by stream, of the section and of the one before; last is nil if there was none
}

func streamsOf(s *program.Section) [][]int {
	streams := make([][]int, len(s.Counts))
	for i := range s.Commands {
		c := &s.Commands[i]
		streams[c.Stream] = append(streams[c.Stream], i)
	}
	return streams
}

// longestWait returns the command of this section that a command waited for longest, and how long; -1 if it waited for
// none, or longest for one of the section before. previous is the point that its stream reaches before it.
func (a *accountant) longestWait(previous program.Point, command int, waits []program.Point) (last int,
	stall time.Duration) {
	start := a.events[command].Start
	_, free, ok := a.commandAt(previous)
	if !ok {
		free = start
	}
	last = -1
	latest := free
	for _, w := range waits {
		if i, end, ok := a.commandAt(w); ok && end > latest {
			last, latest = i, end
		}
	}
	stall = start - free
	if a.gated != nil {
		stall -= a.gated[command]
	}
	return last, stall
}

// commandAt returns the command that reaches a point, -1 if it is of the section before, and when it ended; false if
// there was no such command or its end is not known.
func (a *accountant) commandAt(p program.Point) (i int, end time.Duration, ok bool) {
	if p.Count > 0 {
		i = a.streams[p.Stream][p.Count-1]
		return i, a.events[i].End, true
	}
	if a.last != nil {
		stream := a.last[p.Stream]
		if at := len(stream) - 1 + p.Count; at >= 0 {
			return -1, a.before[stream[at]].End, true
		}
	}
	return -1, 0, false
}
