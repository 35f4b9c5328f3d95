package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/graph/invariants"
	"tensile/models"
	"tensile/models/task"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/policies"
	"tensile/wire"
)

const align = 512

// layoutOf plans lenet within a share of what it needs, as job a, epoch 3. Every step asks for a little scratch.
func layoutOf(t *testing.T) (*graph.Graph, wire.Layout) {
	t.Helper()
	g, err := models.Build("lenet", models.Config{Image: 12, Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := cost.Device("v100")
	if err != nil {
		t.Fatal(err)
	}
	j := scheduler.Job{Name: "a", Epoch: 3, Graph: g}
	for op := range g.Ops {
		j.Latency = append(j.Latency, facts.Roofline(g.Cost(graph.OpID(op))))
		j.Variants = append(j.Variants, []scheduler.Variant{{Scratch: 64}})
	}
	r := scheduler.Request{Policy: "none-live", Jobs: []scheduler.Job{j}, Out: facts.Out, In: facts.In,
		Align: sim.New(facts, sim.Options{}).Align()}
	live, err := policies.Schedule(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Policy, r.Budget = "tensile", live.Jobs[0].Layout.Arena*7/10
	tight, err := policies.Schedule(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := tight.Jobs[0]
	return g, wire.Layout{Plan: s.Plan, Offsets: s.Layout.Offsets, Scratch: s.Layout.Scratch, Arena: s.Layout.Arena}
}

// A layout that came over the bus is the program that its planner compiled.
func TestProve(t *testing.T) {
	g, l := layoutOf(t)
	decoded, err := wire.DecodeAs[wire.Layout](wire.Encode(l))
	if err != nil {
		t.Fatal(err)
	}
	proven, err := Prove(g, "a", 3, &decoded, align, compile.Options{Poison: invariants.Enabled})
	if err != nil {
		t.Fatal(err)
	}
	want := compile.Compile(g, l.Plan, &program.Placement{Stays: plan.StaysOf(g, l.Plan), Offsets: l.Offsets,
		Scratch: l.Scratch, Arena: l.Arena, Align: align},
		compile.Options{Poison: invariants.Enabled})
	if diff := cmp.Diff(want, proven.Program()); diff != "" {
		t.Errorf("program (-want +got):\n%s", diff)
	}
}

// The program of a job that takes checkpoints has a snapshot section, for the rates of the device.
func TestProveWithCheckpoints(t *testing.T) {
	g, l := layoutOf(t)
	facts, err := cost.Device("v100")
	if err != nil {
		t.Fatal(err)
	}
	for _, checkpoints := range []bool{false, true} {
		f := &Fetch{Job: "a", Epoch: 3, Task: task.Task{Graph: g}, Checkpoints: checkpoints}
		answer := f.Prove(&l, sim.New(facts, sim.Options{}))
		if answer.Err != nil {
			t.Fatal(answer.Err)
		}
		if has := len(answer.Proven.Program().Snapshot.Commands) > 0; has != checkpoints {
			t.Errorf("of a job that takes checkpoints (%t) the program has a snapshot section: %t", checkpoints, has)
		}
	}
}

// Whatever is wrong with a layout, it is refused with a reason, and never harms.
func TestProveRefuses(t *testing.T) {
	g, good := layoutOf(t)
	last := len(good.Offsets) - 1
	large := 0
	for i, r := range plan.StaysOf(g, good.Plan).Residencies {
		if g.Storages[r.Storage].Bytes > 2*align {
			large = i
		}
	}
	scratched := slices.IndexFunc(good.Plan.Steps, func(s plan.Step) bool { return s.Scratch > 0 })
	swapped := slices.IndexFunc(good.Plan.Moves, func(m plan.Move) bool { return m.Kind == plan.In && m.After >= 0 })
	if scratched < 0 || swapped < 0 {
		t.Fatal("the plan has no scratch, or copies nothing in")
	}
	for _, test := range []struct {
		name  string
		spoil func(l *wire.Layout)
		want  string
	}{
		{"no plan", func(l *wire.Layout) { l.Plan = nil }, "the layout has no plan"},
		{"another job", func(l *wire.Layout) { l.Plan.Job = "b" }, "the layout is that of job b, epoch 3"},
		{"another epoch", func(l *wire.Layout) { l.Plan.Epoch = 4 }, "the layout is that of job a, epoch 4"},
		{"another graph", func(l *wire.Layout) { l.Plan.Graph = "abc" }, "made for graph abc"},
		{"a move is missing", func(l *wire.Layout) { l.Plan.Moves = slices.Delete(l.Plan.Moves, swapped, swapped+1) },
			"plan of job \"a\" is not valid"},
		{"no such op", func(l *wire.Layout) { l.Plan.Steps[0].Op = 1 << 30 }, "there is no op"},
		{"an offset is missing", func(l *wire.Layout) { l.Offsets = l.Offsets[:last] }, "offsets for"},
		{"scratch is missing", func(l *wire.Layout) { l.Scratch = l.Scratch[1:] }, "of scratch for"},
		{"scratch is left out", func(l *wire.Layout) { l.Scratch = nil }, "share bytes"},
		{"below the arena", func(l *wire.Layout) { l.Offsets[last] = -align }, "at byte -512 of an arena of"},
		{"above the arena", func(l *wire.Layout) { l.Offsets[last] = l.Arena }, "of an arena of"},
		{"so high that it wraps", func(l *wire.Layout) { l.Offsets[large] = 1<<63 - align }, "of an arena of"},
		{"not aligned", func(l *wire.Layout) { l.Offsets[last] += 4 }, "want a multiple of 512"},
		{"scratch below the arena", func(l *wire.Layout) { l.Scratch[scratched] = -align }, "has the scratch of"},
		{"scratch above the arena", func(l *wire.Layout) { l.Scratch[scratched] = l.Arena }, "has the scratch of"},
		{"a smaller arena", func(l *wire.Layout) { l.Arena = align }, "of an arena of"},
		{"an odd arena", func(l *wire.Layout) { l.Arena++ }, "want a multiple of 512"},
		{"a negative arena", func(l *wire.Layout) { l.Arena = -align }, "want a multiple of 512"},
		{"all in one place", func(l *wire.Layout) { clear(l.Offsets) }, "bytes"},
	} {
		l := copyOf(t, good)
		test.spoil(&l)
		proven, err := Prove(g, "a", 3, &l, align, compile.Options{})
		if proven != (proof.Proven{}) || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want it to contain %q", test.name, err, test.want)
		}
	}
}

func copyOf(t *testing.T, l wire.Layout) (c wire.Layout) {
	t.Helper()
	text, err := json.Marshal(l)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}
