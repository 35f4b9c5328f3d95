package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"tensile/device"
	"tensile/device/devicetest"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/executor/reduce"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/plan/compile"
	"tensile/plan/proof"
	"tensile/wire"
)

// TestMachine plays the scripts in testdata to a machine, by datadriven. Each takes a tenth of a second of the
// machine's time. The commands, with what stands in their input:
//
//	new                                  a new machine, online
//	online | offline | tick [JOB] | drain | quit | closed
//	                                     with a job: it has waited long for the lease
//	orders number=N [link=(OUT, IN)] [leave] [refused] [elsewhere]
//	                                     a line "JOB epoch=N [seed=N] [stop]" per job;
//	                                     10 iterations each;
//	                                     link in bytes per second; more of the line:
//	    [seconds=N] [it=N]               between checkpoints
//	    [from=N] [incarnation=N]         the newest checkpoint that is known, and who begins there
//	    [park=memory | park=disk]
//	    [replica=N [at=N] [neighbour=ADDRESS]]   it is one of two: when it is to rest, end or take a checkpoint; where
//	                                     replica 0 listens
//	    [script=GRAPH [unplanned]]       it is a script's, which was seen to do this; and there is no plan for it
//	stray number=N                       orders to another executor, of no job
//	prepared job=J [again | broken]      graph and data of a job are there; or could not be fetched, or are wrong;
//	    [begin=N [foreign]] [note]       it goes on after N iterations, from a checkpoint of its own or another
//	    [script=GRAPH]                   the graph is this one, of a script
//	met job=J [broken]                   a replica listens for the next one; or cannot
//	layout job=J epoch=N [again | broken]  a layout was proven; or could not be fetched, or is wrong
//	late job=J epoch=N                   a layout came for the job before the present one of that name
//	applied job=J epoch=N arena=BYTES    the host trains with a layout
//	home | refused | failed | removed job=J     what else the host says
//	begun job=J iterations=N             it was told too late to rest, or to take its state
//	lost job=J                           it has failed since the connection to replica 1 broke
//	failed job=J free=BYTES              the device had no room for its arena, but for so much
//	parked job=J [number=N]              as it was told last, or the Nth time
//	snapshot job=J [iteration=N]         the state of a job at an iteration boundary; or there is none
//	written job=J [iteration=N]          a checkpoint was written; or could not be
//	report job=J iteration=N epoch=N [reserve=BYTES]    that a script's allocator has
//	ended job=J iterations=N
//	kept job=J [saved | broken] [losses]   the outcome of a job was taken, and saved; or could not be saved;
//	                                     it has losses; more of the line:
//	    [again | iteration=N | diverged]  with broken: it is on no disk; it is in a checkpoint; it is not worth it
//	stored job=J [broken]                its result was stored; or could not be
func TestMachine(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, s.command)
	})
}

// script is a machine and what it was told.
type script struct {
	m       *Machine
	now     time.Duration
	tickets map[string]Ticket // of the youngest job of each name
	before  map[string]Ticket // of the one before that
	parks   map[string]int64  // how often the host was told to park a job
	out     strings.Builder   // the answer to the present command
}

var errScript = errors.New("it went wrong")

// command tells the machine what a command says and returns its answer.
func (s *script) command(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	if d.Cmd == "new" {
		s.m, s.tickets, s.before = NewMachine(Process{Executor: "x1", Life: "life", Device: "device"}),
			map[string]Ticket{}, map[string]Ticket{}
		s.parks = map[string]int64{}
	}
	s.step(s.input(t, d))
	return s.out.String()
}

// input returns what a command says.
func (s *script) input(t *testing.T, d *datadriven.TestData) Input {
	yes := d.Cmd != "offline"
	switch d.Cmd {
	case "new", "online", "offline":
		return Input{Online: &yes}
	case "tick":
		in := Input{Tick: true}
		for _, a := range d.CmdArgs {
			in.Waits = map[lease.Job]string{lease.Job(a.Key): "it waits"}
		}
		return in
	case "drain":
		return Input{Drain: errInterrupted}
	case "quit":
		return Input{Quit: errScript}
	case "closed":
		return Input{Closed: true}
	case "orders":
		return Input{Orders: ordersOf(t, "x1", d)}
	case "stray":
		return Input{Orders: ordersOf(t, "x2", d)}
	}
	var job string
	var err error
	d.ScanArgs(t, "job", &job)
	again := d.HasArg("again")
	if again || d.HasArg("broken") {
		err = errScript
	}
	switch d.Cmd {
	case "prepared":
		p := &Prepared{Ticket: s.tickets[job], Err: err, Again: again}
		if d.HasArg("note") {
			p.Notes = []string{"checkpoint FILE is passed over"}
		}
		if d.HasArg("begin") {
			c := checkpointOf(intArg(t, d, "begin"))
			if p.Begin = (&Begin{Iteration: c.Iteration, File: c.File, Checkpoint: c}); d.HasArg("foreign") {
				p.Begin.Checkpoint = nil
			}
		}
		d.MaybeScanArgs(t, "script", (*string)(&p.Graph))
		return Input{Prepared: p}
	case "met":
		if err != nil {
			return Input{Met: &Met{Ticket: s.tickets[job], Err: err}}
		}
		return Input{Met: &Met{Ticket: s.tickets[job], Meeting: &wire.Meeting{Address: "10.0.0.7:1"}}}
	case "layout", "late":
		ticket := s.tickets[job]
		if d.Cmd == "late" {
			ticket = s.before[job]
		}
		epoch := intArg(t, d, "epoch")
		return Input{Fetched: &Fetched{Ticket: ticket, Epoch: epoch, Proven: provenOf(epoch), Err: err, Again: again}}
	case "kept":
		kept := &Kept{Ticket: s.tickets[job], Err: err, Again: again}
		if d.HasArg("diverged") {
			kept.Err = &task.DivergedError{What: "its loss is NaN"}
		}
		if d.HasArg("iteration") {
			kept.Checkpoint = checkpointOf(intArg(t, d, "iteration"))
		}
		if d.HasArg("saved") {
			kept.Saved = "FILE"
		}
		if d.HasArg("losses") {
			kept.Losses = []float32{2, 1}
		}
		return Input{Kept: kept}
	case "stored":
		return Input{Stored: &Stored{s.tickets[job], err}}
	case "written":
		if !d.HasArg("iteration") {
			return Input{Written: &Written{Ticket: s.tickets[job], Err: errScript}}
		}
		return Input{Written: &Written{Ticket: s.tickets[job], Checkpoint: checkpointOf(intArg(t, d, "iteration"))}}
	}
	return Input{Event: s.event(t, job, d)}
}

// checkpointOf is the checkpoint after some iterations.
func checkpointOf(iterations int64) *wire.Checkpoint {
	return &wire.Checkpoint{Iteration: int(iterations), File: fmt.Sprint("FILE", iterations)}
}

// event returns what the host observed of a job.
func (s *script) event(t *testing.T, job string, d *datadriven.TestData) *executor.Event {
	e := &executor.Event{Job: job}
	switch d.Cmd {
	case "applied":
		e.Applied = &executor.Applied{Epoch: intArg(t, d, "epoch"), Arena: graph.Bytes(intArg(t, d, "arena"))}
	case "home":
		e.Home = true
	case "parked":
		e.Parked = s.parks[job]
		d.MaybeScanArgs(t, "number", &e.Parked)
	case "snapshot":
		if e.Snapshot = (&executor.Snapshot{Err: errScript}); d.HasArg("iteration") {
			e.Snapshot = &executor.Snapshot{Iteration: int(intArg(t, d, "iteration"))}
		}
	case "begun":
		e.Begun = int(intArg(t, d, "iterations"))
	case "lost":
		e.Ended = &executor.Ended{Err: &reduce.LostError{Replica: 1, Err: io.EOF}}
	case "refused":
		e.Refused = errScript
	case "failed":
		e.Ended = &executor.Ended{Err: errScript}
		if d.HasArg("free") {
			e.Ended.Err = recordedError{&device.OutOfMemoryError{Free: graph.Bytes(intArg(t, d, "free"))}, "no room"}
		}
	case "ended":
		e.Ended = &executor.Ended{Iterations: int(intArg(t, d, "iterations"))}
	case "removed":
		e.Removed = true
	case "report":
		e.Report = &executor.Report{Job: job, Iteration: int(intArg(t, d, "iteration")), Epoch: intArg(t, d, "epoch"),
			Begin: 1, End: 1 + time.Second}
		if d.HasArg("reserve") {
			e.Report.Script = &executor.Script{Plan: 100, Reserve: graph.Bytes(intArg(t, d, "reserve"))}
		}
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	return e
}

// ordersOf reads orders, one job per line of the input.
func ordersOf(t *testing.T, executor string, d *datadriven.TestData) *wire.Orders {
	o := &wire.Orders{Executor: executor, Number: intArg(t, d, "number"), Leave: d.HasArg("leave")}
	if d.HasArg("elsewhere") { // as is every job here
		o.Elsewhere = []int64{7}
	}
	if d.HasArg("refused") {
		o.Refused = &wire.Refusal{Life: "life", Reason: "it is not wanted"}
	}
	if d.HasArg("link") {
		var out, in float64
		d.ScanArgs(t, "link", &out, &in)
		o.Link = wire.Rates{Out: cost.BytesPerSecond(out), In: cost.BytesPerSecond(in)}
	}
	for line := range strings.Lines(d.Input) {
		job, args, err := datadriven.ParseLine(line)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		line := &datadriven.TestData{Pos: d.Pos, CmdArgs: args}
		w := wire.Assignment{Spec: wire.Spec{Name: job, ID: 7, Model: "net", Iterations: 10},
			Epoch: intArg(t, line, "epoch"),
			Stop:  line.HasArg("stop")}
		line.MaybeScanArgs(t, "seed", &w.Spec.Seed)
		var seconds int
		line.MaybeScanArgs(t, "seconds", &seconds)
		w.Spec.Checkpoint.Every = time.Duration(seconds) * time.Second
		line.MaybeScanArgs(t, "it", &w.Spec.Checkpoint.Iterations)
		line.MaybeScanArgs(t, "from", &w.From)
		line.MaybeScanArgs(t, "incarnation", &w.Incarnation)
		line.MaybeScanArgs(t, "park", (*string)(&w.Park))
		if line.MaybeScanArgs(t, "replica", &w.Spec.Replica.Number) {
			w.Spec.Replica.Of = 2
		}
		line.MaybeScanArgs(t, "at", &w.At)
		if line.HasArg("neighbour") {
			w.Neighbour = &wire.Meeting{}
			line.ScanArgs(t, "neighbour", &w.Neighbour.Address)
		}
		if line.MaybeScanArgs(t, "script", (*string)(&w.Spec.Graph)) {
			w.Spec.Script, w.Spec.Iterations = true, 0
		}
		if line.HasArg("unplanned") {
			w.Unplanned = "the budget is too small"
		}
		o.Jobs = append(o.Jobs, w)
	}
	return o
}

// provenOf returns a program of an epoch.
func provenOf(epoch int64) proof.Proven {
	g := devicetest.Tiny()
	p := devicetest.KeepAll(g)
	p.Epoch = epoch
	l, err := compile.Place(g, p, align)
	if err != nil {
		panic(err)
	}
	proven, err := compile.Prove(g, p, l, compile.Options{})
	if err != nil {
		panic(err)
	}
	return proven
}

func (s *script) step(in Input) {
	s.now += time.Second / 10
	for _, out := range s.m.Step(s.now, in) {
		if p := out.Prepare; p != nil {
			s.before[p.Spec.Name] = s.tickets[p.Spec.Name]
			s.tickets[p.Spec.Name] = p.Ticket
		}
		if out.Park != nil {
			s.parks[out.Park.Job] = out.Park.Number
		}
		fmt.Fprintln(&s.out, textOf(out))
		if err := s.m.Farewell(); out.Leave && err != nil {
			fmt.Fprintln(&s.out, err)
		}
	}
}

func textOf(o Output) string {
	switch {
	case o.Prepare != nil:
		text := "prepare " + o.Prepare.Spec.Name
		if o.Prepare.Exact {
			return text + fmt.Sprintf(", exactly after %d", o.Prepare.From)
		}
		if o.Prepare.From > 0 {
			text += fmt.Sprintf(", known to have a checkpoint after %d", o.Prepare.From)
		}
		return text
	case o.Fetch != nil:
		return fmt.Sprintf("fetch %s %d", o.Fetch.Job, o.Fetch.Epoch)
	case o.Open != nil:
		text := fmt.Sprintf("open %s with %d", o.Open.Spec.Name, o.Open.Proven.Program().Plan.Epoch)
		if b := o.Open.Begin; b != nil {
			text += fmt.Sprintf(" after %d", b.Iteration)
		}
		return text
	case o.Change != nil:
		return fmt.Sprintf("change %s to %d", o.Change.Job, o.Change.Proven.Program().Plan.Epoch)
	case o.Stop != "":
		return "stop " + o.Stop
	case o.Park != nil:
		text := "park " + o.Park.Job
		if o.Park.Number > 1 {
			text += fmt.Sprintf(", number %d", o.Park.Number)
		}
		return text + after(o.Park.At)
	case o.Resume != "":
		return "resume " + o.Resume
	case o.Unplanned != nil:
		return fmt.Sprintf("no plan for %s: %s", o.Unplanned.Job, cmp.Or(o.Unplanned.Reason, "that is over"))
	case o.Take != nil:
		return "take the state of " + o.Take.Job + after(o.Take.At)
	case o.Meet != nil:
		return fmt.Sprintf("meet the replica behind %s, %d of %d, which begins after %d", o.Meet.Spec.Name,
			o.Meet.Spec.Replica.Number, o.Meet.Spec.Replica.Of, o.Meet.Begin)
	case o.Join != nil:
		return fmt.Sprintf("join %s to %s", o.Join.Job, o.Join.Meeting.Address)
	case o.Part != "":
		return "part " + o.Part
	case o.Write != nil:
		return fmt.Sprintf("write %s after %d", o.Write.Spec.Name, o.Write.Snapshot.Iteration)
	case o.Discard != nil:
		return fmt.Sprintf("discard the checkpoints of %s, up to incarnation %d", o.Discard.Job, o.Discard.Incarnation)
	case o.Remove != "":
		return "remove " + o.Remove
	case o.Keep != nil:
		return "keep " + o.Keep.Spec.Name
	case o.Store != nil:
		return "store " + o.Store.Key
	case o.Report != nil:
		r := o.Report
		return fmt.Sprintf("report %s %s iteration %d of %d, %v", r.Executor, r.Job, r.Iteration, r.Epoch, r.Wall)
	case o.Event != nil:
		var lines []string
		if text := o.Event.Log(); text != "" {
			lines = append(lines, fmt.Sprintf("log %s: %s", o.Event.Job, text))
		}
		if text := o.Event.Notice(); text != "" {
			lines = append(lines, "notice: "+text)
		}
		return strings.Join(lines, "\n")
	case o.Link != nil:
		return fmt.Sprintf("copy at %v and %v", float64(o.Link.Out), float64(o.Link.In))
	case o.Leave:
		return "leave"
	case o.Refused != "":
		return "end: " + o.Refused
	case o.Status == nil:
		panic(fmt.Sprintf("agent: an output that says nothing: %+v", o))
	}
	text := fmt.Sprintf("status %d of %s, orders %d", o.Status.Number, o.Status.Executor, o.Status.Orders)
	if o.Status.Leaves {
		text += ", leaves"
	}
	if o.Status.Dead != nil {
		text += fmt.Sprintf(", dead: %s", o.Status.Dead)
	}
	for _, j := range o.Status.Jobs {
		text += fmt.Sprintf("\n  %s %s epoch %d arena %d iteration %d", j.Name, j.State, j.Epoch, j.Arena, j.Iteration)
		if j.Begun > j.Iteration {
			text += fmt.Sprintf(", begun %d", j.Begun)
		}
		if j.Meets != nil {
			text += ", listens at " + j.Meets.Address
		}
		if j.Alone {
			text += ", alone"
		}
		if j.Free != nil {
			text += fmt.Sprintf(", %d bytes are free", *j.Free)
		}
		if j.Checkpoint != nil {
			text += fmt.Sprintf(", checkpoint %d", j.Checkpoint.Iteration)
			if j.Since > 0 {
				text += fmt.Sprintf(" since %d", j.Since)
			}
		}
		if j.Script != nil {
			text += fmt.Sprintf(", reserve %d", j.Script.Reserve)
		}
		if j.Result != nil {
			text += ", with a result"
		}
		if j.Error != "" {
			text += ": " + j.Error
		}
	}
	return text
}

// after says after how many iterations.
func after(at int) string {
	if at == 0 {
		return ""
	}
	return fmt.Sprintf(" after %d", at)
}

// intArg returns the value of an argument that a command must have.
func intArg(t *testing.T, d *datadriven.TestData, key string) (n int64) {
	t.Helper()
	d.ScanArgs(t, key, &n)
	return n
}
