package sidecar

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/models/external"
	"tensile/models/graphtest"
)

var hello = external.Hello{PID: 1, Framework: "torch", Release: "2.9",
	Device: external.Device{Kind: "cpu", Name: "cpu"}}

// recorded is a graph of a seed as a script sends it.
func recorded(seed uint64, number int) external.Recorded {
	g := graphtest.Script(rand.New(rand.NewPCG(seed, 3)))
	r := external.Recorded{Number: number, Graph: g, Held: 100}
	for range g.Ops {
		r.Latency = append(r.Latency, time.Microsecond)
	}
	return r
}

// talk steps a machine through what a script says and does its errands. It returns what was sent and the failure.
func talk(m *Machine, messages ...external.Message) (sent []external.Plan, fail error) {
	inputs := make([]Input, len(messages))
	for i := range messages {
		inputs[i].Message = messages[i]
	}
	for len(inputs) > 0 {
		in := inputs[0]
		inputs = inputs[1:]
		for _, out := range m.Step(in) {
			switch {
			case out.Plan != nil:
				made := Make(context.Background(), out.Plan)
				inputs = append([]Input{{Planned: &made}}, inputs...)
			case out.Fail != nil:
				fail = out.Fail
			case out.Send != nil:
				if p, ok := out.Send.(external.Plan); ok {
					sent = append(sent, p)
				}
			}
		}
	}
	return sent, fail
}

// TestRetries shows that iterations in which allocations failed do not count as planned, and have one lower plan made,
// though all that the allocator kept was within the limit.
func TestRetries(t *testing.T) {
	plain, _ := talk(NewMachine(Terms{}), hello, recorded(1, 1))
	limit := plain[1].Bytes + 64
	m := NewMachine(Terms{Limit: limit})
	tight := external.Iteration{Iteration: 5, Graph: 1, Plan: 2, Reserved: limit, Retries: 3}
	sent, fail := talk(m, hello, recorded(1, 1), external.Applied{Plan: 2}, tight)
	if fail != nil || len(sent) != 2 || m.Summary().Reserve != 0 {
		t.Fatalf("after the first iteration: sent %v, failed with %v", sent, fail)
	}
	reserve := limit - sent[1].Bytes + sent[1].Bytes/32
	sent, fail = talk(m, tight, tight)
	if fail != nil || len(sent) != 1 || sent[0].Bytes > limit-reserve {
		t.Fatalf("after the second: sent %v, failed with %v", sent, fail)
	}
	enough := external.Iteration{Iteration: 8, Graph: 1, Plan: 3, Reserved: sent[0].Bytes, Hooks: true}
	sent, fail = talk(m, external.Applied{Plan: 3}, enough, enough)
	if s := m.Summary(); fail != nil || len(sent) > 0 || s.Reserve != reserve || s.Planned != 2 || s.Retried != 3 ||
		s.Hooks != 2 {
		t.Errorf("sent %v, failed with %v, summary %+v", sent, fail, s)
	}
}

// TestGraphs shows that each of several graphs gets a plan within the limit, held bytes included, and that what its
// allocator has beyond a plan has only the plan of that graph made again, once, and lower.
func TestGraphs(t *testing.T) {
	m := NewMachine(Terms{})
	plain, fail := talk(m, hello, recorded(1, 1), recorded(2, 2))
	if fail != nil || len(plain) != 3 || plain[0].Graph != 0 || plain[1].Graph != 1 || plain[2].Graph != 2 {
		t.Fatalf("sent %v, failed with %v", plain, fail)
	}
	limit := max(plain[1].Bytes, plain[2].Bytes) + 64*64
	m = NewMachine(Terms{Limit: limit})
	sent, fail := talk(m, hello, recorded(1, 1), recorded(2, 2), external.Applied{Plan: 2}, external.Applied{Plan: 3})
	if fail != nil || len(sent) != 3 || sent[1].Bytes > limit || sent[2].Limit != limit {
		t.Fatalf("sent %v, failed with %v", sent, fail)
	}
	much := external.Iteration{Iteration: 5, Graph: 1, Plan: 2, Touched: 7, Reserved: limit + 500}
	sent, fail = talk(m, much)
	if fail != nil || len(sent) > 0 {
		t.Fatalf("after the first iteration: sent %v, failed with %v", sent, fail)
	}
	sent, fail = talk(m, much, much)
	if fail != nil || len(sent) != 1 || sent[0].Graph != 1 || sent[0].Bytes >= plain[1].Bytes {
		t.Fatalf("after the second: sent %v, failed with %v", sent, fail)
	}
	if s := m.Summary(); s.Reserve != limit+500-plain[1].Bytes || s.Graphs != 2 || s.Planned != 3 || s.Touched != 7 ||
		s.Over != 2 {
		t.Errorf("summary %+v", s)
	}
	if notes := strings.Join(notesOf(m, much), "; "); notes != "" {
		t.Errorf("said again: %s", notes)
	}
	m = NewMachine(Terms{Limit: limit})
	talk(m, hello, recorded(1, 1), external.Applied{Plan: 2}, external.Iteration{Iteration: 5, Graph: 1, Plan: 2})
	if notes := strings.Join(notesOf(m, much), "; "); !strings.Contains(notes,
		"iteration 5 had "+much.Reserved.String()+", MORE THAN THE LIMIT of "+limit.String()) {
		t.Errorf("of an iteration above the limit it says %q", notes)
	}
}

// notesOf are the lines for people that a message leads to.
func notesOf(m *Machine, message external.Message) (notes []string) {
	for _, out := range m.Step(Input{Message: message}) {
		if out.Note != "" {
			notes = append(notes, out.Note)
		}
	}
	return notes
}

// TestComesBack shows that each of several shapes of iterations keeps its plan, whatever comes in turn, and also if
// there is none for another.
func TestComesBack(t *testing.T) {
	plain, _ := talk(NewMachine(Terms{}), hello, recorded(1, 1))
	limit := plain[1].Bytes + 64*64
	large := recorded(2, 2)
	large.Held = limit // so that it has no plan
	m := NewMachine(Terms{Limit: limit})
	planned := func(m *Machine, want int, messages ...external.Message) {
		t.Helper()
		sent, fail := talk(m, messages...)
		var got []int
		for _, p := range sent {
			got = append(got, p.Graph)
		}
		if wants := []int{want}; fail != nil || want > 0 && !slices.Equal(got, wants) || want == 0 && len(got) > 0 {
			t.Errorf("plans for graphs %v, failed with %v; want %v", got, fail, want)
		}
	}
	iteration := func(graph int, plan int64) external.Iteration {
		return external.Iteration{Iteration: 9, Graph: graph, Plan: plan}
	}
	talk(m, hello)
	planned(m, 1, recorded(1, 1))
	planned(m, 0, large, iteration(1, 0), iteration(2, 0), iteration(1, 0))
	m = NewMachine(Terms{})
	talk(m, hello, recorded(1, 1), recorded(2, 2), external.Applied{Plan: 2}, external.Applied{Plan: 3})
	planned(m, 0, iteration(2, 3), iteration(1, 2), iteration(1, 2), iteration(2, 3), iteration(1, 2))
	planned(m, 0, iteration(2, 0), iteration(1, 0))
	planned(m, 0, external.Passive{Why: "compiled", Always: true}, iteration(1, 0))
}

// TestOutOfTurn shows what a script cannot say.
func TestOutOfTurn(t *testing.T) {
	for _, c := range []struct {
		want     string
		messages []external.Message
	}{
		{"hello comes first", []external.Message{recorded(1, 1)}},
		{"hello comes first, and once", []external.Message{hello, hello}},
		{"graph 2 follows 0", []external.Message{hello, recorded(1, 2)}},
		{"plan 2 of 1", []external.Message{hello, external.Applied{Plan: 2}}},
		{"graph 1 of 0", []external.Message{hello, external.Iteration{Iteration: 1, Graph: 1}}},
		{"was not told", []external.Message{hello, external.Parked{Number: 1}}},
		{"cannot have followed plan 2", []external.Message{hello, recorded(1, 1),
			external.Iteration{Iteration: 1, Graph: 1, Plan: 2}}},
		{"with 1 steps", []external.Message{hello, recorded(1, 1), external.Applied{Plan: 2},
			external.Iteration{Iteration: 1, Graph: 1, Plan: 2, Steps: []time.Duration{1}}}},
	} {
		m := NewMachine(Terms{})
		if _, fail := talk(m, c.messages...); fail == nil || !strings.Contains(fail.Error(), c.want) {
			t.Errorf("failed with %v, want %q", fail, c.want)
		}
		if out := m.Step(Input{Message: hello}); len(out) > 0 {
			t.Errorf("after a failure: %v", out)
		}
	}
}

// TestRefused shows that what does not fit is said in one line, and that the script is then to end, unless it is to
// train on anyway.
func TestRefused(t *testing.T) {
	stops := 0
	m := NewMachine(Terms{Share: 1e-9})
	for _, message := range []external.Message{hello, recorded(1, 1)} {
		for _, out := range m.Step(Input{Message: message}) {
			if out.Plan != nil {
				made := Make(context.Background(), out.Plan)
				for _, out := range m.Step(Input{Planned: &made}) {
					if out.Send == (external.Stop{}) {
						stops++
					}
				}
			}
		}
	}
	if s := m.Summary(); stops != 1 || s.Limit != 1 || !strings.Contains(s.Unmet, "too small") {
		t.Errorf("it is told %d times to end; summary %+v", stops, s)
	}
	m = NewMachine(Terms{Limit: 1, Anyway: true})
	sent, fail := talk(m, hello, recorded(1, 1))
	if fail != nil || len(sent) != 2 || sent[0].Limit != 1 || sent[0].Strict || sent[1].Graph != 0 ||
		sent[1].Limit != 0 || !strings.Contains(sent[1].Why, "too small") || strings.Contains(sent[1].Why, "\n") {
		t.Fatalf("sent %v, failed with %v", sent, fail)
	}
	talk(m, external.Passive{Why: "compiled", Always: true}, external.End{Iteration: 9, Error: "ValueError"})
	s := m.Summary()
	if s.Unmet != "" || s.Passive != "compiled" || s.Error != "ValueError" || !s.Ended || s.Claim != 0 {
		t.Errorf("summary %+v", s)
	}
}

// TestStrict shows that the first plan is a strict limit, where there is one that is kept to.
func TestStrict(t *testing.T) {
	for _, c := range []struct {
		terms Terms
		want  external.Plan
	}{
		{Terms{}, external.Plan{Number: 1}},
		{Terms{Share: 0.6}, external.Plan{Number: 1}},
		{Terms{Limit: 9}, external.Plan{Number: 1, Limit: 9, Strict: true}},
	} {
		sent, fail := talk(NewMachine(c.terms), hello)
		if diff := cmp.Diff([]external.Plan{c.want}, sent); fail != nil || diff != "" {
			t.Errorf("%+v (-want +got): %v\n%s", c.terms, fail, diff)
		}
	}
}

// TestStopBeforeHello shows that a script is told to end which joins after that was asked for.
func TestStopBeforeHello(t *testing.T) {
	m := NewMachine(Terms{})
	if out := m.Step(Input{Stop: true}); len(out) > 0 {
		t.Errorf("told before it has joined: %v", out)
	}
	if out := m.Step(Input{Message: hello}); len(out) == 0 || out[len(out)-1].Send != (external.Stop{}) {
		t.Errorf("told when it joins: %v, want to be stopped", out)
	}
}

// TestDrift shows that a plan is made again when ops take other times than it was made for, with those times, and not
// before, nor again while they stay.
func TestDrift(t *testing.T) {
	m := NewMachine(Terms{})
	if _, fail := talk(m, hello, recorded(1, 1), external.Applied{Plan: 2}); fail != nil {
		t.Fatal(fail)
	}
	iterations := func(plan int64, n int, each time.Duration) []external.Message {
		steps := make([]time.Duration, len(m.sent[plan-1].steps))
		for i := range steps {
			steps[i] = each
		}
		all := make([]external.Message, n)
		for i := range all {
			all[i] = external.Iteration{Iteration: 9, Graph: 1, Plan: plan, Steps: steps}
		}
		return all
	}
	for _, c := range []struct {
		plan  int64
		count int
		each  time.Duration
		want  int
	}{{2, 30, time.Microsecond, 0}, {2, 1, 9 * time.Microsecond, 1}, {3, 40, 9 * time.Microsecond, 1}} {
		sent, fail := talk(m, iterations(c.plan, c.count, c.each)...)
		if fail != nil || len(sent) != c.want {
			t.Fatalf("%d iterations with steps of %v: sent %v, failed with %v", c.count, c.each, sent, fail)
		}
		for _, p := range sent {
			if _, fail := talk(m, external.Applied{Plan: p.Number}); fail != nil {
				t.Fatal(fail)
			}
		}
	}
	if got := m.graphs[0].Latency[0]; got < 5*time.Microsecond {
		t.Errorf("the newest plan is for an op that takes %v, and it takes 9µs", got)
	}
}
