package agent

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"tensile/cost"
	"tensile/device/devicetest"
	"tensile/executor"
	"tensile/graph"
	"tensile/internal/golden"
	"tensile/program"
	"tensile/wire"
)

// TestMachine plays the scripts in testdata to a machine. A script is prose behind '#', commands, and after "----" what
// the machine answered to them, up to an empty line. Its commands are
//
//	new                                     a new machine, online
//	online | offline | tick | drain | quit
//	orders NUMBER [JOB[=SEED]:EPOCH[:stop]]... [leave]   jobs train for 10 iterations
//	stray NUMBER                            orders to another executor, of no job
//	prepared JOB [again | broken]           graph and data of a job are there; or could not be fetched, or are wrong
//	layout JOB EPOCH [again | broken]       a layout was proven; or could not be fetched, or is wrong
//	late JOB EPOCH                          a layout came for the job before the present one of that name
//	applied JOB EPOCH ARENA                 what the host observed
//	home | refused | failed | removed JOB
//	report JOB ITERATION EPOCH | ended JOB ITERATIONS
//	kept JOB [saved | broken]               what a job came to was taken, and saved; or could not be saved
func TestMachine(t *testing.T) {
	golden.Play(t, "testdata/*.txt", func(t *testing.T) golden.Player { return &script{t: t} })
}

// script is a machine and what was said to it.
type script struct {
	t       *testing.T
	m       *Machine
	tickets map[string]Ticket // of the youngest job of each name
	before  map[string]Ticket // of the one before that
	out     strings.Builder
}

var errScript = errors.New("it went wrong")

func (s *script) Command(words []string) {
	name, outcome := "", ""
	if len(words) > 1 {
		name, outcome = words[1], words[len(words)-1]
	}
	err, again := errScript, outcome == "again"
	if !again && outcome != "broken" {
		err = nil
	}
	yes := words[0] == "online"
	switch words[0] {
	case "new":
		s.m, s.tickets, s.before = NewMachine("x1", "life", "device"), map[string]Ticket{}, map[string]Ticket{}
		s.Command([]string{"online"})
	case "online", "offline":
		s.step(Input{Online: &yes})
	case "tick":
		s.step(Input{Tick: true})
	case "drain":
		s.step(Input{Drain: errInterrupted})
	case "quit":
		s.step(Input{Quit: errScript})
	case "orders":
		s.step(Input{Orders: ordersOf("x1", words[1:])})
	case "stray":
		s.step(Input{Orders: ordersOf("x2", words[1:])})
	case "prepared":
		s.step(Input{Prepared: &Prepared{Ticket: s.tickets[name], Err: err, Again: again}})
	case "layout", "late":
		epoch, ticket := int64(number(words[2])), s.tickets[name]
		if words[0] == "late" {
			ticket = s.before[name]
		}
		s.step(Input{Fetched: &Fetched{Ticket: ticket, Epoch: epoch, Proven: provenOf(epoch), Err: err, Again: again}})
	case "kept":
		r := &wire.Result{Plans: 1}
		if outcome == "saved" {
			r.Saved = "FILE"
		}
		s.step(Input{Kept: &Kept{Ticket: s.tickets[name], Result: r, Err: err}})
	default:
		s.observed(name, words)
	}
}

func (s *script) observed(name string, words []string) {
	e := executor.Event{Job: name}
	switch words[0] {
	case "applied":
		e.Applied = &executor.Applied{Epoch: int64(number(words[2])), Arena: graph.Bytes(number(words[3]))}
	case "home":
		e.Home = true
	case "refused":
		e.Refused = errScript
	case "failed":
		e.Ended = &executor.Ended{Err: errScript}
	case "ended":
		e.Ended = &executor.Ended{Iterations: number(words[2])}
	case "removed":
		e.Removed = true
	case "report":
		e.Report = &executor.Report{Job: name, Iteration: number(words[2]), Epoch: int64(number(words[3])), Begin: 1, End: 1 + time.Second}
	default:
		s.t.Fatalf("unknown command %q", words)
	}
	s.step(Input{Event: &e})
}

// ordersOf reads the words of a script's orders.
func ordersOf(executor string, words []string) *wire.Orders {
	o := &wire.Orders{Executor: executor, Number: int64(number(words[0]))}
	for _, word := range words[1:] {
		if word == "leave" {
			o.Leave = true
			continue
		}
		fields := strings.Split(word, ":")
		if fields[0] == "link" {
			o.Link = wire.Rates{Out: cost.BytesPerSecond(number(fields[1])), In: cost.BytesPerSecond(number(fields[2]))}
			continue
		}
		job, seed, _ := strings.Cut(fields[0], "=")
		w := wire.Order{Spec: wire.Spec{Name: job, Model: "net", Iterations: 10}, Epoch: int64(number(fields[1])), Stop: len(fields) > 2}
		if seed != "" {
			w.Spec.Seed = uint64(number(seed))
		}
		o.Jobs = append(o.Jobs, w)
	}
	return o
}

// Answer returns what the machine said since the last one.
func (s *script) Answer() string {
	defer s.out.Reset()
	return s.out.String()
}

// provenOf returns a program of an epoch.
func provenOf(epoch int64) program.Proven {
	g := devicetest.Tiny()
	p := devicetest.KeepAll(g)
	p.Epoch = epoch
	l, err := program.Place(g, p, align)
	if err != nil {
		panic(err)
	}
	proven, err := program.Prove(g, p, l, program.Options{})
	if err != nil {
		panic(err)
	}
	return proven
}

func (s *script) step(in Input) {
	for _, out := range s.m.Step(in) {
		if p := out.Prepare; p != nil {
			s.before[p.Spec.Name] = s.tickets[p.Spec.Name]
			s.tickets[p.Spec.Name] = p.Ticket
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
		return "prepare " + o.Prepare.Spec.Name
	case o.Fetch != nil:
		return fmt.Sprintf("fetch %s %d", o.Fetch.Job, o.Fetch.Epoch)
	case o.Open != nil:
		return fmt.Sprintf("open %s with %d", o.Open.Spec.Name, o.Open.Proven.Program().Plan.Epoch)
	case o.Change != nil:
		return fmt.Sprintf("change %s to %d", o.Change.Job, o.Change.Proven.Program().Plan.Epoch)
	case o.Stop != "":
		return "stop " + o.Stop
	case o.Remove != "":
		return "remove " + o.Remove
	case o.Keep != nil:
		return "keep " + o.Keep.Spec.Name
	case o.Report != nil:
		r := o.Report
		return fmt.Sprintf("report %s %s iteration %d of %d, %v", r.Executor, r.Job, r.Iteration, r.Epoch, r.Wall)
	case o.Line != nil:
		return fmt.Sprintf("log %s: %s", o.Line.Job, o.Line.Text)
	case o.Link != nil:
		return fmt.Sprintf("copy at %v and %v", float64(o.Link.Out), float64(o.Link.In))
	case o.Notice != "":
		return "notice: " + o.Notice
	case o.Leave:
		return "leave"
	case o.Status == nil:
		panic(fmt.Sprintf("agent: an output that says nothing: %+v", o))
	}
	text := fmt.Sprintf("status %d of %s, orders %d", o.Status.Number, o.Status.Executor, o.Status.Orders)
	for _, j := range o.Status.Jobs {
		text += fmt.Sprintf("\n  %s %s epoch %d arena %d iteration %d", j.Name, j.State, j.Epoch, j.Arena, j.Iteration)
		if j.Result != nil {
			text += ", with a result"
		}
		if j.Error != "" {
			text += ": " + j.Error
		}
	}
	return text
}

func number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		panic(err)
	}
	return n
}
