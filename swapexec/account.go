package swapexec

import (
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/program"
)

// Copy is what became of one copy of a section.
type Copy struct {
	Kind    program.Kind // Out or In
	Storage graph.StorageID
	Slot    int // the step that it followed
	Bytes   graph.Bytes
	Ready   time.Duration // its lane was free and its waits were reached
	Start   time.Duration // after a hold
	End     time.Duration
	Stall   time.Duration // how long the compute lane stood still for it
}

// Account returns the copies of a section that has ended, in list order. events holds one event per command; before
// those of the previous run of the section, nil if it was drained before.
func Account(s *program.Section, events, before []device.Event) []Copy {
	a := accountant{events: events, before: before}
	var copies []Copy
	at := make(map[int]int) // index of a command to its place in copies
	for i := range s.Commands {
		c := &s.Commands[i]
		a.lanes[c.Lane] = append(a.lanes[c.Lane], i)
		if e := events[i]; isCopy(c) {
			at[i] = len(copies)
			copies = append(copies, Copy{c.Kind, c.Storage, c.Slot, c.Bytes, e.Ready, e.Start, e.End, 0})
		}
	}
	for nth, i := range a.lanes[program.Compute] {
		last, stall := a.stall(nth, s.Commands[i].Waits)
		if place, ok := at[last]; ok {
			copies[place].Stall += stall
		}
	}
	return copies
}

type accountant struct {
	events, before []device.Event
	lanes          [program.Lanes][]int // commands by lane
}

// stall returns the command of this section that the nth compute command waited for longest, and how long; -1 if it
// waited for none, or longest for one of the previous run.
func (a *accountant) stall(nth int, waits []program.Point) (last int, stall time.Duration) {
	start := a.events[a.lanes[program.Compute][nth]].Start
	_, free, ok := a.behind(program.Point{Lane: program.Compute, Count: nth})
	if !ok {
		free = start
	}
	last = -1
	latest := free
	for _, w := range waits {
		if i, end, ok := a.behind(w); ok && end > latest {
			last, latest = i, end
		}
	}
	return last, start - free
}

// behind returns the command that reaches a point, -1 if it is of the previous run, and when it ended; false if there
// was no such command or its end is not known.
func (a *accountant) behind(p program.Point) (i int, end time.Duration, ok bool) {
	lane := a.lanes[p.Lane]
	if p.Count > 0 {
		i = lane[p.Count-1]
		return i, a.events[i].End, true
	}
	if at := len(lane) - 1 + p.Count; at >= 0 && a.before != nil {
		return -1, a.before[lane[at]].End, true
	}
	return -1, 0, false
}
