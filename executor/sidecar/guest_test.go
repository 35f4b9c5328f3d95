package sidecar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tensile/device/lease"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/external"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// programOf is a program for a graph within a budget; 0: without a limit.
func programOf(t *testing.T, g *graph.Graph, epoch int64, budget graph.Bytes) *program.Program {
	t.Helper()
	p, err := planner.Plan(t.Context(), scheduler.Request{Policy: "tensile", Budget: budget, Align: 64,
		Out: cost.Link{Rate: 1e9}, In: cost.Link{Rate: 1e9}, Jobs: []scheduler.Job{{Name: "a", Epoch: epoch, Graph: g,
			Latency: slices.Repeat([]time.Duration{time.Microsecond}, len(g.Ops))}}})
	if err != nil {
		t.Fatal(err)
	}
	return p.Programs[0].Program()
}

// told tells a guest something, and returns what it wants, a line each, without notes.
func told(g *Guest, in GuestInput) string {
	var lines []string
	in.Now = max(in.Now, g.now+10)
	for _, o := range g.Step(in) {
		switch e := o.Event; {
		case o.Note != "":
		case o.Start:
			lines = append(lines, "start")
		case o.Fail != nil:
			lines = append(lines, "fail: "+o.Fail.Error())
		case o.Record != nil:
			lines = append(lines, fmt.Sprintf("record graph %d", o.Record.Number))
		case o.Lease != nil && o.Lease.Join != nil:
			lines = append(lines, fmt.Sprintf("join with %d pages", o.Lease.Join.Base))
		case o.Lease != nil && o.Lease.Leave != nil:
			lines = append(lines, "leave")
		case o.Send != nil:
			if p, ok := o.Send.(external.Plan); ok {
				line := fmt.Sprintf("plan %d for graph %d within %d: %s", p.Number, p.Graph, p.Limit, p.Why)
				lines = append(lines, strings.TrimSuffix(line, ": "))
			} else {
				lines = append(lines, fmt.Sprintf("%T %+[1]v", o.Send))
			}
		case e.Applied != nil:
			lines = append(lines, fmt.Sprintf("applied %d in %d", e.Applied.Epoch, e.Applied.Arena))
		case e.Report != nil:
			said := e.Report.Script
			line := fmt.Sprintf("report of %d by %d, reserve %d", e.Report.Iteration, e.Report.Epoch, said.Reserve)
			if said.Loss != nil {
				line += fmt.Sprint(", loss ", *said.Loss)
			}
			if r := e.Report; r.Left == 0 || r.Left > r.Begin || r.Begin > r.End {
				line += fmt.Sprintf(", left at %v, began at %v, ended at %v", r.Left, r.Begin, r.End)
			}
			lines = append(lines, line)
		case e.Parked != 0:
			lines = append(lines, fmt.Sprintf("parked %d", e.Parked))
		case e.Home:
			lines = append(lines, "home")
		case e.Ended != nil:
			lines = append(lines, fmt.Sprintf("ended after %d: %v", e.Ended.Iterations, e.Ended.Err))
		case e.Refused != nil:
			lines = append(lines, "refused: "+e.Refused.Error())
		case e.Removed:
			lines = append(lines, "removed")
		}
	}
	return strings.Join(lines, "; ")
}

// TestGuestIsLetIn takes a process that trains already through its rest until its job has its memory: what it has
// recorded meanwhile is planned for then. When it has ended its memory is free, while its job goes on.
func TestGuestIsLetIn(t *testing.T) {
	r := recorded(1, 1)
	first, next := programOf(t, external.Claim(6400), 1, 0), programOf(t, r.Graph, 2, 0)
	nothing := programOf(t, external.Claim(1), 3, 0)
	g := new(Guest)
	walk(t, g, []any{
		hello, "",
		external.Iteration{Iteration: 1, Wall: 5, Touched: 7}, "",
		r, "",
		external.Parked{Number: Rest.Number}, "",
		GuestInput{Open: &Open{Job: "a", Program: first}},
		"start; plan 1 for graph 0 within 6400; external.Resume {Number:2}",
		external.Applied{Plan: 1}, "applied 1 in 6400; record graph 1",
		GuestInput{Change: next}, fmt.Sprintf("plan 2 for graph 1 within %d", next.Arena+100),
		external.Applied{Plan: 2}, fmt.Sprintf("applied 2 in %d", next.Arena),
		GuestInput{Gone: true}, "record graph 0",
		GuestInput{Change: nothing}, fmt.Sprintf("applied 3 in %d", nothing.Arena),
		GuestInput{Park: 1}, "home; parked 1",
		GuestInput{Resume: true}, fmt.Sprintf("applied 3 in %d", nothing.Arena),
		GuestInput{Exited: &Exit{}}, "ended after 1: <nil>",
	})
	for _, test := range []struct {
		says external.Message
		want string
	}{
		{external.End{Iteration: 1}, "ended after 0: <nil>"},
		{external.End{Iteration: 1, Error: "KeyError"}, "ended after 0: the script has ended: KeyError"},
		{external.Iteration{Iteration: 1},
			"ended after 1: the script has ended: it was killed, has crashed or has called os._exit"},
	} {
		g := new(Guest)
		walk(t, g, []any{hello, "", test.says, "", GuestInput{Exited: &Exit{Said: true}}, "",
			GuestInput{Open: &Open{Job: "a", Program: first}}, test.want})
	}
}

// walk tells a guest one thing after the other and compares what it wants.
func walk(t *testing.T, g *Guest, steps []any) {
	t.Helper()
	for i := 0; i < len(steps); i += 2 {
		in, ok := steps[i].(GuestInput)
		if m, message := steps[i].(external.Message); message {
			in, ok = GuestInput{Message: m}, true
		}
		if got, want := told(g, in), steps[i+1].(string); !ok || got != want {
			t.Fatalf("step %d, %+v:\ngot  %s\nwant %s", i/2, steps[i], got, want)
		}
	}
}

// TestGuest takes a script from its first claim through a plan, a smaller one and a rest to its end. The smaller plan
// is acknowledged when an iteration has followed it, and no sooner.
func TestGuest(t *testing.T) {
	r := recorded(1, 1)
	first, large := programOf(t, external.Claim(6400), 1, 0), programOf(t, r.Graph, 2, 0)
	small := programOf(t, r.Graph, 3, large.Arena-64)
	all, some := large.Arena+100, small.Arena+100 // with what is held
	iteration := func(n int, plan int64, reserved graph.Bytes) external.Iteration {
		i := external.Iteration{Iteration: n, Plan: plan, Wall: 5, Touched: 7, Reserved: reserved}
		if plan > 0 {
			i.Graph = 1
		}
		return i
	}
	lossy, loss := iteration(3, 2, all), 1.5
	lossy.Loss = &loss
	without := programOf(t, external.Claim(max(some, external.Need(r.Graph)+100)+50), 4, 0)
	g := new(Guest)
	walk(t, g, []any{
		GuestInput{Open: &Open{Job: "a", Program: first}}, "start; applied 1 in 6400",
		hello, "plan 1 for graph 0 within 6400",
		iteration(1, 0, 9), "report of 0 by 1, reserve 0",
		r, "record graph 1",
		GuestInput{Change: large}, fmt.Sprintf("plan 2 for graph 1 within %d", all),
		iteration(2, 0, 9), "report of 1 by 1, reserve 0",
		external.Applied{Plan: 2}, fmt.Sprintf("applied 2 in %d", large.Arena),
		lossy, "report of 2 by 2, reserve 0, loss 1.5",
		GuestInput{Change: small}, fmt.Sprintf("plan 3 for graph 1 within %d", some),
		iteration(4, 2, all+50), "report of 3 by 2, reserve 50",
		external.Applied{Plan: 3}, "",
		iteration(5, 0, all), "report of 4 by 2, reserve 50",
		iteration(6, 3, some), fmt.Sprintf("applied 3 in %d; report of 5 by 3, reserve 50", small.Arena),
		GuestInput{Park: 4}, "external.Park {Number:1}",
		GuestInput{Park: 4}, "",
		external.Parked{Number: 1}, "home; parked 4",
		GuestInput{Resume: true}, "external.Resume {Number:2}",
		external.Applied{Plan: 3}, fmt.Sprintf("applied 3 in %d", small.Arena),
		external.Passive{Why: "compiled", Always: true},
		"refused: no plan is followed any more: compiled; record graph 0",
		GuestInput{Change: without}, fmt.Sprintf("applied 4 in %d; refused: no plan is followed any more: compiled",
			without.Arena),
		GuestInput{Stop: true}, "external.Stop {}",
		GuestInput{Stop: true}, "",
		external.End{Iteration: 6, Stopped: true}, "",
		GuestInput{Exited: &Exit{}}, "ended after 6: <nil>",
		GuestInput{Remove: true}, "removed",
	})
}

// TestGuestLeaves has a script leave that has a plan. It claims from then on what it had without one, which is in force
// as soon as it is ordered, since the script cannot be told anything; a program for less, or of the graph that it had,
// is not. Its end is that of its process.
func TestGuestLeaves(t *testing.T) {
	r := recorded(1, 1)
	first, planned := programOf(t, external.Claim(640), 1, 0), programOf(t, r.Graph, 2, 0)
	plain := (max(planned.Arena, external.Need(r.Graph)) + 100 + 63) / 64 * 64 // with what is held
	less, without := programOf(t, external.Claim(plain-64), 3, 0), programOf(t, external.Claim(plain), 4, 0)
	late := programOf(t, r.Graph, 5, planned.Arena-64)
	const why = "refused: no plan is followed any more: it has left"
	g := new(Guest)
	walk(t, g, []any{
		GuestInput{Open: &Open{Job: "a", Program: first}}, "start; applied 1 in 640",
		hello, "plan 1 for graph 0 within 640",
		external.Iteration{Iteration: 1, Touched: 9, Reserved: 9}, "report of 0 by 1, reserve 0",
		r, "record graph 1",
		GuestInput{Change: planned}, fmt.Sprintf("plan 2 for graph 1 within %d", planned.Arena+100),
		external.Applied{Plan: 2}, fmt.Sprintf("applied 2 in %d", planned.Arena),
		external.Passive{Why: "it has left", Always: true}, why + "; record graph 0",
		external.End{Iteration: 1}, "",
		GuestInput{Change: less}, "",
		GuestInput{Change: without}, fmt.Sprintf("applied 4 in %d; ", plain) + why,
		GuestInput{Change: late}, "",
		GuestInput{Stop: true}, "",
		GuestInput{Exited: &Exit{}}, "ended after 1: <nil>",
	})
	if g.bytes != plain {
		t.Errorf("it has %s acknowledged, and %s without a plan", g.bytes, plain)
	}
}

// TestGuestLeased has a script ask the lease for its memory before it starts, and before it takes another plan, for
// which it gives back in Home what it had.
func TestGuestLeased(t *testing.T) {
	r := recorded(1, 1)
	first, next := programOf(t, external.Claim(6400), 1, 0), programOf(t, r.Graph, 2, 0)
	pages := (next.Arena + 100 + 999) / 1000
	g := new(Guest)
	walk(t, g, []any{
		GuestInput{Page: 1000}, "",
		GuestInput{Open: &Open{Job: "a", Program: first}}, "join with 7 pages",
		GuestInput{Lease: &lease.Output{Kind: lease.Grant, Job: "a", Ask: 1}}, "start; applied 1 in 6400",
		hello, "plan 1 for graph 0 within 6400",
		r, "record graph 1",
		GuestInput{Change: next}, "external.Park {Number:1}",
		external.Parked{Number: 1}, fmt.Sprintf("leave; home; join with %d pages", pages),
		GuestInput{Lease: &lease.Output{Kind: lease.Grant, Job: "a", Ask: 1}}, "",
		GuestInput{Lease: &lease.Output{Kind: lease.Grant, Job: "a", Ask: 2}},
		fmt.Sprintf("plan 2 for graph 1 within %d; external.Resume {Number:2}", next.Arena+100),
		external.Applied{Plan: 2}, fmt.Sprintf("applied 2 in %d", next.Arena),
		GuestInput{Lease: &lease.Output{Kind: lease.Drain, Job: "a"}}, "external.Park {Number:3}",
		external.Parked{Number: 3}, fmt.Sprintf("leave; home; join with %d pages", pages),
		GuestInput{Exited: &Exit{Err: errors.New("signal: killed")}},
		"leave; ended after 0: the script has ended: signal: killed",
	})
	walk(t, new(Guest), []any{ // it trains already, and has yet to rest
		hello, "", GuestInput{Open: &Open{Job: "a", Program: first}}, "",
		external.Iteration{Iteration: 1, Wall: 5, Touched: 7}, "report of 0 by 0, reserve 0",
	})
}

// TestGuestRefuses shows what a script cannot say, and that a job that is stopped before its script has started has
// none.
func TestGuestRefuses(t *testing.T) {
	first := programOf(t, external.Claim(64), 1, 0)
	open := GuestInput{Open: &Open{Job: "a", Program: first}}
	for want, m := range map[string]external.Message{
		"fail: it is parked by number 3, and was not told to": external.Parked{Number: 3},
		"fail: it has applied plan 2 of 1":                    external.Applied{Plan: 2},
		"fail: hello comes first, and once":                   hello,
	} {
		g := new(Guest)
		walk(t, g, []any{open, "start; applied 1 in 64", hello, "plan 1 for graph 0 within 64", m, want,
			external.End{}, "", GuestInput{Exited: &Exit{}}, "ended after 0: <nil>"})
	}
	walk(t, new(Guest), []any{GuestInput{Page: 64}, "", open, "join with 1 pages", GuestInput{Stop: true},
		"leave; ended after 0: <nil>", GuestInput{Remove: true}, "removed", open, "refused: a sidecar has one script"})
}

// TestGuestUnderFire tells a guest anything in any order. Whatever that is, no more is in force than was acknowledged,
// a job that is said to rest was told to, and the script starts and ends once.
func TestGuestUnderFire(t *testing.T) {
	r := recorded(1, 1)
	programs := []*program.Program{programOf(t, external.Claim(640), 1, 0), programOf(t, r.Graph, 2, 0)}
	for e := int64(3); e < 9; e++ {
		p := *programs[1]
		another := *p.Plan
		another.Epoch, p.Plan, p.Arena = e, &another, p.Arena+64*graph.Bytes(e%3)
		programs = append(programs, &p)
	}
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		g, next, applied := new(Guest), 1, int64(0)
		starts, ends, parks := 0, 0, int64(0)
		begin := []GuestInput{{Page: 100}, {Open: &Open{Job: "a", Program: programs[0]}}}[rng.IntN(2):]
		for range 60 {
			in := GuestInput{}
			switch roll := rng.IntN(14); {
			case len(begin) > 0:
				in, begin = begin[0], begin[1:]
			case roll < 2 && next < len(programs):
				in.Change = programs[next]
				next++
			case roll == 2:
				parks++
				in.Park = parks
			case roll == 3:
				in.Resume = true
			case roll == 4 && rng.IntN(10) == 0:
				in = []GuestInput{{Stop: true}, {Remove: true}, {Closed: true}, {Exited: &Exit{}}}[rng.IntN(4)]
			case roll < 7:
				in.Lease = &lease.Output{Kind: lease.Kind(rng.IntN(2)), Job: "a", Ask: g.ask}
			case starts > 0: // there is somebody to say something
				in.Message = anything(rng, g, r)
			}
			for _, o := range g.Step(in) {
				if o.Start {
					starts++
				}
				if o.Event == nil {
					continue
				}
				switch e := o.Event; {
				case e.Applied != nil && (e.Applied.Epoch < applied || starts == 0 || g.page > 0 && !g.granted):
					t.Fatalf("seed %d: program %d is in force after %d, started %d times", seed, e.Applied.Epoch,
						applied, starts)
				case e.Applied != nil:
					applied = e.Applied.Epoch
				case e.Parked != 0 && (e.Parked > parks || g.bytes > 0 && starts > 0):
					t.Fatalf("seed %d: it rests as it was told by order %d of %d, with %d bytes", seed, e.Parked, parks,
						g.bytes)
				case e.Ended != nil:
					ends++
				}
			}
		}
		if starts > 1 || ends > 1 || ends == 1 && g.joined > 0 {
			t.Fatalf("seed %d: %d starts, %d ends, %d pages", seed, starts, ends, g.joined)
		}
	}
}

// anything is what a script might say.
func anything(rng *rand.Rand, g *Guest, r external.Recorded) external.Message {
	switch {
	case !g.Joined():
		return hello
	case len(g.graphs) == 0 && rng.IntN(2) == 0:
		return r
	}
	plan := int64(rng.IntN(1 + len(g.sent)))
	switch rng.IntN(4) {
	case 0:
		return external.Parked{Number: max(1, g.counter-int64(rng.IntN(20)/19))}
	case 1:
		i := external.Iteration{Iteration: 1 + g.summary.Iterations, Reserved: graph.Bytes(rng.IntN(9000))}
		if plan > 0 && g.sent[plan-1].applied {
			i.Plan, i.Graph = plan, g.sent[plan-1].graph
		}
		return i
	case 2:
		if g.place == training || rng.IntN(20) == 0 {
			return external.Applied{Plan: max(1, int64(len(g.sent)))}
		}
	}
	return external.Iteration{Iteration: 1 + g.summary.Iterations}
}

// A script for which there is no plan is told so once, keeps its limit, and follows a plan that is made later.
func TestGuestUnplanned(t *testing.T) {
	r := recorded(1, 1)
	first, next := programOf(t, external.Claim(6400), 1, 0), programOf(t, r.Graph, 2, 0)
	why, none := "the budget is too small", ""
	if next.Arena+100 < first.Arena {
		t.Fatal("the plan takes less than the claim: it would be in force an iteration later")
	}
	g := new(Guest)
	walk(t, g, []any{
		GuestInput{Open: &Open{Job: "a", Program: first}}, "start; applied 1 in 6400",
		GuestInput{Reason: &why}, "", // it cannot be told yet
		hello, "plan 1 for graph 0 within 6400: " + why,
		GuestInput{Reason: &none}, "",
		r, "record graph 1",
		GuestInput{Reason: &why}, "plan 2 for graph 0 within 6400: " + why,
		external.Applied{Plan: 2}, "",
		external.Iteration{Iteration: 1, Graph: 1, Touched: 9000, Reserved: 9000}, "report of 0 by 1, reserve 0",
		GuestInput{Reason: &none}, "",
		GuestInput{Change: next}, fmt.Sprintf("plan 3 for graph 1 within %d", next.Arena+100),
		external.Applied{Plan: 3}, fmt.Sprintf("applied 2 in %d", next.Arena),
	})
}
