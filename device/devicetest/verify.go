package devicetest

import (
	"fmt"

	"tensile/device"
	"tensile/plan/program"
)

// ended is an event and its place among those of its job.
type ended struct {
	device.Event
	place int
	what  string
}

// verify checks that every command of a job has ended once, and after everything that it has to come after: by the
// reported times, and in the order of the reports. It does not use program.Lanes, which the devices do.
func (s *seat) verify() {
	s.c.t.Helper()
	type key struct {
		section          *program.Section
		iteration, index int
	}
	found := map[key]ended{}
	for place, e := range s.events {
		k := key{e.Section, e.Iteration, e.Index}
		if _, twice := found[k]; twice {
			s.c.t.Fatalf("command %d of iteration %d was reported twice", e.Index, e.Iteration)
		}
		found[k] = ended{e, place, fmt.Sprintf("iteration %d command %d", e.Iteration, e.Index)}
	}
	v := &verifier{seat: s}
	for _, is := range s.issued {
		v.begin(is.program, is.drain)
		for index := range is.section.Commands {
			e, ok := found[key{is.section, is.iteration, index}]
			if !ok {
				s.c.t.Fatalf("command %d of iteration %d was not reported", index, is.iteration)
			}
			v.command(&is.section.Commands[index], e)
		}
	}
}

type verifier struct {
	*seat
	program       *program.Program
	done          [][]ended // per stream, in issue order
	origin, floor []int
}

// begin starts a section. A program is loaded when all of the one before has ended, and counts from the start.
func (v *verifier) begin(p *program.Program, drain bool) {
	if v.program != p {
		v.program, v.done, v.floor = p, make([][]ended, len(p.Streams)), nil
	}
	v.origin = make([]int, len(v.done))
	for l := range v.done {
		v.origin[l] = len(v.done[l])
	}
	if drain {
		v.floor = v.origin
	}
}

func (v *verifier) command(c *program.Command, e ended) {
	v.c.t.Helper()
	if e.Ready > e.Start || e.Start > e.End {
		v.c.t.Errorf("%s: ready %v, start %v, end %v", e.what, e.Ready, e.Start, e.End)
	}
	v.checkAfter(e, c.Stream, len(v.done[c.Stream]), "the order of its lane")
	for l, count := range v.floor {
		v.checkAfter(e, program.Stream(l), count, "a drain")
	}
	for _, w := range c.Waits {
		v.checkAfter(e, w.Stream, v.origin[w.Stream]+w.Count, "a wait")
	}
	v.done[c.Stream] = append(v.done[c.Stream], e)
}

// checkAfter checks that a command came after the first count commands of a lane, because of why.
func (v *verifier) checkAfter(e ended, l program.Stream, count int, why string) {
	v.c.t.Helper()
	if count <= 0 {
		return
	}
	before := v.done[l][count-1]
	if before.End > e.Ready {
		v.c.t.Errorf("%s was ready at %v, before the end of %s at %v: against %s", e.what, e.Ready, before.what,
			before.End, why)
	}
	if before.place > e.place {
		v.c.t.Errorf("%s was reported before %s: against %s", e.what, before.what, why)
	}
}

// reach is what Touched must say after some sections of a program ran.
func reach(p *program.Program, sections ...*program.Section) (end int64) {
	for _, section := range sections {
		for i := range section.Commands {
			end = max(end, int64(p.Reach(&section.Commands[i])))
		}
	}
	return end
}
