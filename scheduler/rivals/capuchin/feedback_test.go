package capuchin

import (
	"maps"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	_ "tensile/internal/long" // the flag -long
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// chain is a job whose first op makes a, which its last one reads. The ops in between make what the next one reads.
func chain(a graph.Bytes, between ...graph.Bytes) scheduler.Job {
	g := &graph.Graph{Name: "chain"}
	tensor := func(bytes graph.Bytes) graph.TensorID {
		id := graph.TensorID(len(g.Tensors))
		g.Storages = append(g.Storages, graph.Storage{ID: graph.StorageID(id), Role: graph.Activation, Bytes: bytes})
		g.Tensors = append(g.Tensors, graph.Tensor{ID: id, Storage: graph.StorageID(id),
			Shape: graph.Shape{int(bytes / graph.ElementBytes)}})
		return id
	}
	op := func(reads []graph.TensorID, makes graph.TensorID) {
		g.Ops = append(g.Ops, graph.Op{ID: graph.OpID(len(g.Ops)), Kind: graph.ReLU, Forward: graph.NoOp,
			Phase: graph.Forward, Inputs: reads, Outputs: []graph.TensorID{makes}})
	}
	first := tensor(a)
	op(nil, first)
	var last []graph.TensorID
	for _, bytes := range between {
		next := tensor(bytes)
		op(last, next)
		last = []graph.TensorID{next}
	}
	op(append(last, first), tensor(between[len(between)-1]))
	j := scheduler.Job{Name: "chain", Graph: g}
	for range g.Ops {
		j.Latency = append(j.Latency, 4*time.Millisecond)
	}
	return j
}

// TestFeedback follows a job from passive mode to its last in-trigger. Its ops take 4ms each, and op2 makes c (64 MiB)
// of b (16 MiB) beside a (64 MiB), within 112 MiB; the swap time of a is 4ms.
//
//  1. Passive mode: c does not fit after op1, so a leaves then; it comes in on demand after op5, for op6.
//  2. Guided: a leaves after op0. It has to begin to come in at 20ms, which is when op4 ends: its in-trigger.
//  3. The report says that op6 waited 1ms for a. 5 % of the swap time ahead, at 19.8ms, the latest access is the end of
//     op3. In op4 there is room: d, e and a take 96 MiB, as in op5.
//  4. It was late again. The access before is the end of op2, but c and d leave no room for a in op3: nothing changes,
//     and the policy asks for no more.
func TestFeedback(t *testing.T) {
	const mib = graph.Bytes(1 << 20)
	link := cost.Link{Rate: cost.BytesPerSecond(16 * 1000 * mib)}
	r := scheduler.Request{Policy: "capuchin", Align: 512, Out: link, In: link, Budget: 112 * mib, Reports: true,
		Jobs: []scheduler.Job{chain(64*mib, 16*mib, 64*mib, 16*mib, 16*mib, 16*mib)}}
	for call, want := range []struct {
		out, in int // the steps that a leaves and comes in after
		again   bool
	}{{1, 5, true}, {0, 4, true}, {0, 3, true}, {0, 3, false}} {
		result, err := draft.Open(r, scheduler.Watch{}, Plan)
		if err != nil {
			t.Fatal(err)
		}
		mustHold(t, "chain", r, result)
		p := result.Jobs[0].Plan
		at := func(kind plan.MoveKind) int {
			return slices.IndexFunc(p.Moves, func(m plan.Move) bool { return m.Kind == kind && m.Storage == 0 })
		}
		out, in := at(plan.Out), at(plan.In)
		if out < 0 || in < 0 || p.Moves[out].After != want.out || p.Moves[in].After != want.in ||
			result.Again != want.again {
			t.Fatalf("call %d: want %+v, again %v\n%s", call+1, want, result.Again, p.Text(r.Jobs[0].Graph))
		}
		r.Jobs[0].Last = &scheduler.Report{Plan: p, Steps: p.Made, Copies: []scheduler.Copy{
			{Kind: plan.Out, After: p.Moves[out].After},
			{Kind: plan.In, After: p.Moves[in].After, Stall: time.Millisecond}}}
	}
	// Without reports the plan is the guided one at once.
	r.Reports, r.Jobs[0].Last = false, nil
	result, err := draft.Open(r, scheduler.Watch{}, Plan)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(result.Jobs[0].Plan.Moves, plan.Move{Kind: plan.In, After: 4}) || !result.Again {
		t.Errorf("again %v\n%s", result.Again, result.Jobs[0].Plan.Text(r.Jobs[0].Graph))
	}
}

// TestQueue has a copy in come late that follows another one at once: the other one's in-trigger is to be earlier. One
// that began later has its own to blame, and one on demand has none.
func TestQueue(t *testing.T) {
	const mib = graph.Bytes(1 << 20)
	g := chain(64*mib, 16*mib, 64*mib, 16*mib, 16*mib, 16*mib).Graph
	p := &plan.Plan{}
	for op := range g.Ops {
		p.Steps = append(p.Steps, plan.Step{Op: graph.OpID(op)})
	}
	takes := func(b graph.Bytes) time.Duration { return time.Duration(b/mib) * time.Millisecond }
	head := plan.Move{Kind: plan.In, Storage: 0, After: 1}
	for name, c := range map[string]struct {
		late scheduler.Copy
		want map[plan.Move]time.Duration
	}{
		"queued": {scheduler.Copy{Storage: 1, After: 3, Start: 64 * time.Millisecond},
			map[plan.Move]time.Duration{head: 16 * time.Millisecond / 20}},
		"not queued": {scheduler.Copy{Storage: 1, After: 3, Start: 65 * time.Millisecond},
			map[plan.Move]time.Duration{{Kind: plan.In, Storage: 1, After: 3}: 16 * time.Millisecond / 20}},
		"on demand": {scheduler.Copy{Storage: 1, After: 1, Start: 64 * time.Millisecond}, nil},
	} {
		c.late.Kind, c.late.End, c.late.Stall = plan.In, c.late.Start+16*time.Millisecond, time.Millisecond
		o := &observation{&scheduler.Report{Plan: p, Copies: []scheduler.Copy{
			{Kind: plan.In, After: 1, End: 64 * time.Millisecond}, c.late}}}
		if got := o.delays(g, takes); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
