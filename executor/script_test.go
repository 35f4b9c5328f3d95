package executor

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/internal/golden"
	"tensile/plan"
	"tensile/program"
)

// TestMachine plays the scripts in testdata to a machine. A script is prose behind '#', commands, and after "----" what
// the machine answered to them, up to an empty line. Its commands are
//
//	job N                            a new machine that trains for N iterations, at home
//	program NAME ARENA P | B | E     what a program does in prologue, body and epilogue: kernel, poison, in, out, load, read
//	give NAME AT                     the program goes to the machine at a time in milliseconds
//	end LANE FROM TO                 the first command of a lane that has not ended ran from a time to another
//	stop                             the machine is told to stop
//	until N AT                       it is to rest after N iterations
func TestMachine(t *testing.T) {
	golden.Play(t, "testdata/*.txt", func(t *testing.T) golden.Player { return &script{t: t} })
}

// script is a machine and what was said to it.
type script struct {
	t        *testing.T
	m        *Machine
	now      time.Duration
	programs map[string]*program.Program
	names    map[*program.Section]string
	flying   []*flight
	out      strings.Builder
}

// flight is a section that was issued, with the number of commands that have ended per lane.
type flight struct {
	Issue
	ended [program.Units]int
}

func (s *script) Command(words []string) {
	switch words[0] {
	case "job":
		s.m, s.flying, s.now = NewMachine("job", number(words[1])), nil, 0
		s.programs, s.names = map[string]*program.Program{}, map[*program.Section]string{}
	case "program":
		s.define(words[1], words[2], words[3:])
	case "give":
		s.now = ms(words[2])
		s.step(Input{Program: s.programs[words[1]]})
	case "until":
		n := number(words[1])
		s.now = ms(words[2])
		s.step(Input{Until: &n})
	case "stop":
		s.step(Input{Stop: true})
	case "end":
		s.end(words[1], ms(words[2]), ms(words[3]))
	default:
		s.t.Fatalf("unknown command %q", words)
	}
}

// define makes a program whose copies move 1 KiB each.
func (s *script) define(name, arena string, words []string) {
	p := &program.Program{Arena: graph.Bytes(number(arena)) * graph.KiB, Plan: &plan.Plan{Epoch: int64(len(s.programs) + 1)}}
	sections := p.Sections()
	for i, word := range strings.Split(strings.Join(words, " "), "|") {
		s.names[sections[i]] = []string{"prologue", "body", "epilogue"}[i] + " of " + name
		for _, kind := range strings.Fields(word) {
			add(sections[i], kinds[kind], p.Plan)
		}
	}
	s.programs[name] = p
}

var kinds = map[string]program.Kind{"kernel": program.Kernel, "poison": program.Poison, "in": program.In, "out": program.Out,
	"load": program.Load, "read": program.Read}

// add appends a command of a kind to a section, on the stream of its unit, and a step to the plan if it is a kernel.
func add(section *program.Section, k program.Kind, p *plan.Plan) {
	stream := program.Stream(k.Unit())
	c := program.Command{Kind: k, Stream: stream, Slot: len(p.Steps), Bytes: graph.KiB}
	if k == program.Kernel {
		p.Steps = append(p.Steps, plan.Step{})
	}
	if section.Counts == nil {
		section.Counts = make([]int, program.Units)
	}
	section.Commands = append(section.Commands, c)
	section.Counts[stream]++
}

func (s *script) end(lane string, from, to time.Duration) {
	for l := range program.Units {
		for _, f := range s.flying {
			if l.String() != lane || f.ended[l] == f.Section.Counts[l] {
				continue
			}
			e := f.next(l)
			e.Ready, e.Start, e.End = from, from, to
			s.now = to
			s.step(Input{Event: &e})
			return
		}
	}
	s.t.Fatalf("end %s: nothing is in flight on that lane", lane)
}

// next counts the next command of a lane as ended and returns its event, without times.
func (f *flight) next(l program.Unit) device.Event {
	skip := f.ended[l]
	f.ended[l]++
	for i, c := range f.Section.Commands {
		if c.Kind.Unit() != l {
			continue
		}
		if skip == 0 {
			return device.Event{Section: f.Section, Iteration: f.Iteration, Index: i}
		}
		skip--
	}
	panic("executor: a flight without a next command")
}

func (s *script) step(in Input) {
	for _, out := range s.m.Step(s.now, in) {
		switch {
		case out.Load != nil:
			fmt.Fprintf(&s.out, "reserve %s\n", out.Load.Arena)
		case out.Issue != nil:
			s.flying = append(s.flying, &flight{Issue: *out.Issue})
			fmt.Fprintf(&s.out, "issue %s, iteration %d%s\n", s.names[out.Issue.Section], out.Issue.Iteration,
				map[bool]string{true: ", drained"}[out.Issue.Drain])
		case out.Report != nil:
			s.report(out.Report)
		case out.Home:
			s.out.WriteString("home\n")
		case out.Finished:
			s.out.WriteString("finished\n")
		}
	}
}

func (s *script) report(r *Report) {
	fmt.Fprintf(&s.out, "report iteration %d of epoch %d: %v to %v, steps %v, stall %v", r.Iteration, r.Epoch, r.Begin, r.End, r.Steps, r.Stall)
	for _, c := range r.Copies {
		fmt.Fprintf(&s.out, ", %s %v to %v", c.Kind, c.Start, c.End)
	}
	s.out.WriteByte('\n')
}

// answer returns what the machine said since the last time, and its state.
func (s *script) Answer() string {
	fmt.Fprintf(&s.out, "%s: %d in flight, %d copies in, %d copies out, %d plans, away %v\n", s.m.State(), len(s.m.runs),
		s.m.Queue(program.CopyIn).Copies, s.m.Queue(program.CopyOut).Copies, s.m.Plans(), s.m.Transition())
	defer s.out.Reset()
	return s.out.String()
}

func number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		panic(err)
	}
	return n
}

func ms(word string) time.Duration { return time.Duration(number(word)) * time.Millisecond }
