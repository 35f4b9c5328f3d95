package executor

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"tensile/device"
	"tensile/device/lease"
	"tensile/graph"
	"tensile/plan"
	"tensile/plan/program"
)

// TestMachine plays the scripts in testdata to a machine, by datadriven. Times are durations from the start. The
// commands:
//
//	job iterations=N [begin=N] [every=N]  a new machine, at home, which waits for a checkpoint at each multiple
//	program name=P arena=KIB [prologue=(KIND, ...)] [body=(KIND, ...)] [epilogue=(KIND, ...)]
//	        [snapshot=(KIND, ...)] [base=PAGES groups=(N:PAGES, ...)]
//	                                      a program of commands: kernel, poison, in, out, load, read,
//	                                      save, keep; with groups of N commands of the body, it is for a lease.
//	                                      PAGES is FROM-TO, both included, or several with a + between
//	give program=P at=TIME                the program goes to the machine
//	end lane=L from=TIME to=TIME          the first command of a lane that has not ended ran in that time
//	stop                                  the machine is told to stop
//	until iterations=N at=TIME            the machine is told to rest after N iterations
//	park [after=N], resume at=TIME, checkpoint [after=N]     the machine is told so, after N iterations
//	forgo after=N                         no checkpoint is taken there
//	grant at=TIME [ask=N]                 the lease grants what was asked for last, or by a number
//	drain at=TIME                         the lease wants the job Home
//
// An answer ends with the machine's state where that has changed.
func TestMachine(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, s.command)
	})
}

// script is a machine and what it was told.
type script struct {
	m        *Machine
	now      time.Duration
	programs map[string]*program.Program
	groups   map[*program.Program]*program.Groups
	ask      int64 // number of what the machine has asked the lease for last
	names    map[*program.Section]string
	flying   []*flight
	out      strings.Builder // the answer to the present command
	state    string          // the machine's, as it was said last
	parks    int64           // how often it was told to park
}

// flight is a part of a section that was issued, with the number of commands that have ended per lane.
type flight struct {
	Issue
	ended [program.Units]int
}

// command tells the machine what a command says and returns its answer.
func (s *script) command(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	switch d.Cmd {
	case "job":
		s.m, s.flying, s.now, s.parks = NewMachine("job", begin(t, d), intArg(t, d, "iterations")), nil, 0, 0
		d.MaybeScanArgs(t, "every", &s.m.snapshotEvery)
		s.programs, s.names = map[string]*program.Program{}, map[*program.Section]string{}
		s.groups = map[*program.Program]*program.Groups{}
	case "program":
		s.define(t, d)
	case "give":
		var name string
		d.ScanArgs(t, "program", &name)
		s.now = timeArg(t, d, "at")
		s.step(Input{Program: s.programs[name], Groups: s.groups[s.programs[name]]})
	case "grant":
		ask := s.ask
		if d.HasArg("ask") {
			ask = int64(intArg(t, d, "ask"))
		}
		s.now = timeArg(t, d, "at")
		s.step(Input{Granted: ask})
	case "drain":
		s.now = timeArg(t, d, "at")
		s.step(Input{Drain: true})
	case "until":
		n := intArg(t, d, "iterations")
		s.now = timeArg(t, d, "at")
		s.step(Input{Until: &n})
	case "park":
		s.parks++
		s.step(Input{Park: s.parks, At: after(t, d)})
	case "resume":
		s.now = timeArg(t, d, "at")
		s.step(Input{Resume: true})
	case "checkpoint":
		s.step(Input{Checkpoint: true, At: after(t, d)})
	case "forgo":
		s.step(Input{Forgo: after(t, d)})
	case "stop":
		s.step(Input{Stop: true})
	case "end":
		s.end(t, d)
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	s.sayState()
	return s.out.String()
}

// after is after how many iterations something is to be; 0: after those in flight.
func after(t *testing.T, d *datadriven.TestData) (n int) {
	d.MaybeScanArgs(t, "after", &n)
	return n
}

// sayState prints the machine's state unless it was printed last.
func (s *script) sayState() {
	state := fmt.Sprintf("%s: %d in flight, %d copies in, %d copies out, %d plans, away %v\n", s.m.State(),
		len(s.m.runs),
		s.m.Queue(program.CopyIn).Copies, s.m.Queue(program.CopyOut).Copies, s.m.Plans(), s.m.Transition())
	if state != s.state {
		s.out.WriteString(state)
	}
	s.state = state
}

// define makes a program whose copies move 1 KiB each.
func (s *script) define(t *testing.T, d *datadriven.TestData) {
	var name string
	d.ScanArgs(t, "name", &name)
	p := &program.Program{Arena: graph.Bytes(intArg(t, d, "arena")) * graph.KiB,
		Plan: &plan.Plan{Epoch: int64(len(s.programs) + 1)}}
	for u := range program.Units {
		p.Streams = append(p.Streams, u)
	}
	sections := p.Sections()
	for i, part := range []string{"prologue", "body", "epilogue", "snapshot"} {
		s.names[sections[i]] = part + " of " + name
		var words []string
		d.MaybeScanArgs(t, part, &words)
		for _, word := range words {
			kind, ok := kinds[word]
			if !ok {
				d.Fatalf(t, "unknown kind of command %q", word)
			}
			add(sections[i], kind, p.Plan)
		}
	}
	s.programs[name] = p
	if d.HasArg("groups") {
		s.groups[p] = groupsOf(t, d)
	}
}

// groupsOf reads the groups of a body.
func groupsOf(t *testing.T, d *datadriven.TestData) *program.Groups {
	t.Helper()
	var base string
	var words []string
	d.ScanArgs(t, "base", &base)
	d.ScanArgs(t, "groups", &words)
	groups := &program.Groups{Page: graph.KiB, Base: pagesOf(t, base)}
	for _, word := range words {
		count, pages, _ := strings.Cut(word, ":")
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		from := 0
		if len(groups.Body) > 0 {
			from = groups.Body[len(groups.Body)-1].To
		}
		groups.Body = append(groups.Body, program.Group{From: from, To: from + n, Need: pagesOf(t, pages)})
	}
	return groups
}

// pagesOf reads a set of pages.
func pagesOf(t *testing.T, text string) program.Pages {
	t.Helper()
	if text == "" {
		return nil
	}
	var pages program.Pages
	for part := range strings.SplitSeq(text, "+") {
		var r program.PageRange
		if _, err := fmt.Sscanf(part, "%d-%d", &r.From, &r.To); err != nil {
			t.Fatalf("%q: %v", part, err)
		}
		r.To++
		pages = append(pages, r)
	}
	return pages
}

var kinds = map[string]program.Kind{"kernel": program.Kernel, "poison": program.Poison, "in": program.In,
	"out":  program.Out,
	"load": program.Load, "read": program.Read, "save": program.Save, "keep": program.Keep}

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

// end ends the first command of a lane that has not ended.
func (s *script) end(t *testing.T, d *datadriven.TestData) {
	var lane string
	d.ScanArgs(t, "lane", &lane)
	for l := range program.Units {
		for _, f := range s.flying {
			if l.String() != lane || !f.more(l) {
				continue
			}
			e := f.next(l)
			e.Start, e.End = timeArg(t, d, "from"), timeArg(t, d, "to")
			e.Ready, s.now = e.Start, e.End
			s.step(Input{Event: &e})
			return
		}
	}
	d.Fatalf(t, "nothing is in flight on lane %q", lane)
}

// more reports whether a command of a lane has not ended.
func (f *flight) more(l program.Unit) bool {
	n := 0
	for _, c := range f.Section.Commands[f.From:f.To] {
		if c.Kind.Unit() == l {
			n++
		}
	}
	return f.ended[l] < n
}

// next counts the next command of a lane as ended and returns its event, without times.
func (f *flight) next(l program.Unit) device.Event {
	skip := f.ended[l]
	f.ended[l]++
	for i, c := range f.Section.Commands[f.From:f.To] {
		if c.Kind.Unit() != l {
			continue
		}
		if skip == 0 {
			return device.Event{Section: f.Section, Iteration: f.Iteration, Index: f.From + i}
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
			i, part := out.Issue, ""
			if n := len(i.Section.Commands); i.To-i.From < n {
				part = fmt.Sprintf("commands %d to %d of ", i.From, i.To-1)
			}
			fmt.Fprintf(&s.out, "issue %s%s, iteration %d%s\n", part, s.names[i.Section], i.Iteration,
				map[bool]string{true: ", drained"}[i.Drain])
		case out.Hold != nil:
			fmt.Fprintf(&s.out, "hold %v\n", out.Hold.Pages)
		case out.Lease != nil:
			s.lease(out.Lease)
		case out.Report != nil:
			s.report(out.Report)
		case out.Home:
			s.out.WriteString("home\n")
		case out.Snapshot != nil:
			fmt.Fprintf(&s.out, "snapshot of %d iterations%s\n", out.Snapshot.Iteration,
				map[bool]string{true: ", in home"}[out.Snapshot.Home])
		case out.Parked != 0:
			fmt.Fprintf(&s.out, "parked, as told the %d. time\n", out.Parked)
		case out.Finished:
			s.out.WriteString("finished\n")
		}
	}
}

// lease prints what the lease is told.
func (s *script) lease(in *lease.Input) {
	switch {
	case in.Join != nil:
		s.ask = in.Join.Ask
		fmt.Fprintf(&s.out, "lease: ask %d to join with base %d, peak %d\n", in.Join.Ask, in.Join.Base, in.Join.Peak)
	case in.Want != nil:
		w := in.Want
		s.ask = w.Ask
		fmt.Fprintf(&s.out, "lease: ask %d for%s%s group with %d pages, rest %d\n", w.Ask,
			map[bool]string{true: " first"}[w.First], map[bool]string{true: " last"}[w.Last], w.Hold, w.Rest)
	case in.Passed != nil:
		fmt.Fprintf(&s.out, "lease: %d pages now, grant %d was seen\n", in.Passed.Hold, in.Passed.Seen)
	case in.Leave != nil:
		s.out.WriteString("lease: leave\n")
	}
}

func (s *script) report(r *Report) {
	fmt.Fprintf(&s.out, "report iteration %d of epoch %d: %v to %v, steps %v, stall %v", r.Iteration, r.Epoch, r.Begin,
		r.End, r.Steps, r.Stall)
	if r.Gate > 0 {
		fmt.Fprintf(&s.out, ", gate %v", r.Gate)
	}
	for _, c := range r.Copies {
		fmt.Fprintf(&s.out, ", %s %v to %v", c.Kind, c.Start, c.End)
	}
	s.out.WriteByte('\n')
}

func begin(t *testing.T, d *datadriven.TestData) (n int) {
	d.MaybeScanArgs(t, "begin", &n)
	return n
}

func intArg(t *testing.T, d *datadriven.TestData, key string) (n int) {
	t.Helper()
	d.ScanArgs(t, key, &n)
	return n
}

func timeArg(t *testing.T, d *datadriven.TestData, key string) (v time.Duration) {
	t.Helper()
	d.ScanArgs(t, key, &v)
	return v
}
