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
	a := accountant{s: s, events: events, before: before}
	var copies []Copy
	at := make(map[int]int) // index of a command to its place in copies
	for i := range s.Commands {
		c := &s.Commands[i]
		a.lanes[c.Lane] = append(a.lanes[c.Lane], i)
		if e := events[i]; isCopy(c) {
			at[i] = len(copies)
			copies = append(copies, Copy{c.Kind, c.Storage, c.Slot, c.Bytes, e.Ready, e.Start, e.End, 0})
		}
		if c.Lane != program.Compute {
			continue
		}
		if last, stall := a.stall(c, i); last >= 0 {
			if place, ok := at[last]; ok {
				copies[place].Stall += stall
			}
		}
	}
	return copies
}

type accountant struct {
	s              *program.Section
	events, before []device.Event
	lanes          [program.Lanes][]int // commands so far
}

// stall returns the command of this section that compute command i waited for longest, or -1, and how long.
func (a *accountant) stall(c *program.Command, i int) (last int, stall time.Duration) {
	free := a.free()
	last = -1
	end := free
	for _, w := range c.Waits {
		if w.Count > 0 && w.Lane != program.Compute {
			if other := a.lanes[w.Lane][w.Count-1]; a.events[other].End > end {
				last, end = other, a.events[other].End
			}
		}
	}
	return last, a.events[i].Start - free
}

// free returns when the compute lane had ended what came before its newest command.
func (a *accountant) free() time.Duration {
	own := a.lanes[program.Compute]
	if len(own) > 1 {
		return a.events[own[len(own)-2]].End
	}
	for i := len(a.before) - 1; i >= 0; i-- {
		if a.s.Commands[i].Lane == program.Compute {
			return a.before[i].End
		}
	}
	return a.events[own[0]].Start
}
