package sidecar

import (
	"bytes"
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"tensile/executor"
	"tensile/graph"
	"tensile/graph/cost"
	_ "tensile/internal/long" // the flag -long
	"tensile/models/external"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// most is how many ops a graph may have that is planned for here.
const most = 40

// trade is a sidecar that hears a script to its end: what it sends must be messages, or Encode panics.
type trade struct {
	t     *testing.T
	over  bool
	plans int64
}

// sends writes what a machine sends.
func (s *trade) sends(outputs []Output) {
	s.t.Helper()
	for _, out := range outputs {
		s.over = s.over || out.Fail != nil
		if out.Send == nil {
			continue
		}
		if s.over {
			s.t.Fatalf("after a failure it sends %+v", out.Send)
		}
		line, err := external.Encode(out.Send)
		if err != nil {
			s.t.Fatal(err)
		}
		m, err := external.Decode(line[:len(line)-1], external.Sidecar)
		if err != nil {
			s.t.Fatalf("it sends what a script cannot read: %v", err)
		}
		if p, ok := m.(external.Plan); ok {
			if s.plans++; p.Number != s.plans {
				s.t.Fatalf("plan %d follows plan %d", p.Number, s.plans-1)
			}
		}
	}
}

// alone has a machine hear messages, and plans for what it asks for.
func (s *trade) alone(messages []external.Message, limit graph.Bytes) {
	m := NewMachine(Terms{Limit: limit})
	take := func(in Input) {
		for inputs := []Input{in}; len(inputs) > 0; inputs = inputs[1:] {
			outputs := m.Step(inputs[0])
			s.sends(outputs)
			for _, out := range outputs {
				if out.Plan == nil {
					continue
				}
				made := Make(context.Background(), out.Plan)
				if made.Err == nil && limit > 0 && made.Lines.Bytes > limit {
					s.t.Fatalf("a plan of %s within %s", made.Lines.Bytes, limit)
				}
				inputs = append(inputs, Input{Planned: &made})
			}
		}
	}
	for _, message := range messages {
		take(Input{Message: message})
	}
	take(Input{Closed: true})
	if sum := m.Summary(); sum.Claim < 0 || sum.Claim < sum.Plan {
		s.t.Fatalf("summary %+v", sum)
	}
}

// job has a guest hear messages, and orders in between, and plans for what it records as a controller does.
func (s *trade) job(messages []external.Message, limit graph.Bytes, orders []byte) {
	epoch := int64(1)
	plan := func(r *external.Recorded, budget graph.Bytes) *program.Program {
		p, err := planner.Plan(context.Background(), scheduler.Request{Policy: "tensile", Budget: budget, Align: 64,
			Out: cost.Link{Rate: 1e9}, In: cost.Link{Rate: 1e9}, Jobs: []scheduler.Job{{Name: "a", Epoch: epoch,
				Graph: r.Graph, Latency: r.Latency, Held: r.Held}}})
		if epoch++; err != nil {
			return nil
		}
		return p.Programs[0].Program()
	}
	first := plan(&external.Recorded{Graph: external.Claim(1000), Latency: make([]time.Duration, 1)}, 0)
	g := new(Guest)
	inputs := []GuestInput{{Open: &Open{Job: "a", Program: first}}}
	for i, m := range messages {
		if i < len(orders) {
			switch orders[i] % 4 {
			case 1:
				inputs = append(inputs, GuestInput{Park: int64(i + 1)})
			case 2:
				inputs = append(inputs, GuestInput{Resume: true})
			case 3:
				inputs = append(inputs, GuestInput{Stop: true})
			}
		}
		inputs = append(inputs, GuestInput{Message: m})
	}
	inputs = append(inputs, GuestInput{Closed: true}, GuestInput{Exited: &Exit{}})
	ended, number := 0, int64(0)
	for len(inputs) > 0 {
		outputs := g.Step(inputs[0])
		inputs = inputs[1:]
		s.sends(outputs)
		for _, out := range outputs {
			switch e := out.Event; {
			case out.Record != nil:
				in := GuestInput{Change: plan(out.Record, limit)}
				if in.Change == nil {
					why := "the budget is too small"
					in.Reason = &why
				}
				inputs = slices.Insert(inputs, 0, in)
			case e == nil:
			case e.Applied != nil && (e.Applied.Epoch < number || e.Applied.Epoch >= epoch):
				s.t.Fatalf("program %d is in force after %d, of %d", e.Applied.Epoch, number, epoch-1)
			case e.Applied != nil:
				number = e.Applied.Epoch
			case e.Report != nil:
				s.reported(e.Report)
			case e.Ended != nil:
				ended++
			}
		}
	}
	if ended != 1 || g.bytes < 0 {
		s.t.Fatalf("it ended %d times, with %s", ended, g.bytes)
	}
}

// reported checks what is said of an iteration.
func (s *trade) reported(r *executor.Report) {
	if r.Iteration < 0 || r.Begin > r.End || r.Script.Plan < 0 || r.Script.Reserve < 0 {
		s.t.Fatalf("report %+v of %+v", r, r.Script)
	}
}

// FuzzScript has both machines hear any lines of a script, up to the first that cannot be read: they neither panic nor
// send what cannot be read, and their plans keep to the limit.
func FuzzScript(f *testing.F) {
	said, err := os.ReadFile("../../models/external/testdata/script.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(said, uint32(0), []byte{})
	f.Add(said, uint32(90), []byte{0, 0, 1, 1, 2})
	followed := func(n, graph int, plan int64, reserved graph.Bytes) external.Iteration {
		return external.Iteration{Iteration: n, Graph: graph, Plan: plan, Touched: 70, Reserved: reserved}
	}
	full := recorded(1, 1)
	full.Held = graph.MaxBytes - graph.GiB
	for _, messages := range [][]external.Message{
		{hello, followed(1, 0, 0, 90), recorded(1, 1), external.Applied{Plan: 1}, external.Applied{Plan: 2},
			followed(2, 1, 2, 99), followed(3, 1, 2, 99), recorded(2, 2), external.Applied{Plan: 3, Error: "no"},
			followed(4, 2, 0, 99), followed(5, 1, 0, 99), external.Passive{Iteration: 5, Why: "compiled", Always: true},
			external.End{Iteration: 5}},
		{hello, full, external.Applied{Plan: 1}, external.Applied{Plan: 2}, followed(2, 1, 2, graph.MaxBytes),
			followed(3, 1, 2, graph.MaxBytes), recorded(2, 2), followed(4, 2, 0, graph.MaxBytes),
			external.Passive{Iteration: 5, Why: "compiled", Always: true}, followed(6, 0, 0, 9)},
		{hello, recorded(1, 1), external.Applied{Plan: 1}, external.Applied{Plan: 2}, followed(2, 1, 2, graph.MaxBytes),
			followed(3, 1, 2, graph.MaxBytes), recorded(2, 2), external.Applied{Plan: 3},
			external.Iteration{Iteration: 4, Touched: graph.MaxBytes, Reserved: graph.MaxBytes},
			external.Passive{Iteration: 5, Why: "compiled", Always: true}, followed(6, 0, 0, 9)},
	} {
		var all []byte
		for _, m := range messages {
			line, err := external.Encode(m)
			if err != nil {
				f.Fatal(err)
			}
			all = append(all, line...)
		}
		f.Add(all, uint32(0), []byte{})
		f.Add(all, uint32(1<<20), []byte{0, 0, 0, 1, 2, 0, 3})
	}
	f.Fuzz(func(t *testing.T, lines []byte, limit uint32, orders []byte) {
		r := external.NewReader(bytes.NewReader(lines), external.Script)
		var messages []external.Message
		for {
			m, err := r.Next()
			if err != nil {
				break
			}
			if g, ok := m.(external.Recorded); ok && len(g.Graph.Ops) > most {
				t.Skip("planning takes long")
			}
			messages = append(messages, m)
		}
		(&trade{t: t}).alone(messages, graph.Bytes(limit))
		(&trade{t: t}).job(messages, graph.Bytes(limit), orders)
	})
}
