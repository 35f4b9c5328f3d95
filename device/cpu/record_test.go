package cpu

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"tensile/device"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/models"
	"tensile/plan/compile"
	"tensile/plan/pool"
	"tensile/plan/pool/trace"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/policies"

	_ "tensile/scheduler/rivals"
)

// recorded trains a model under a policy for some iterations and returns what was planned and the trace of it.
func recorded(t *testing.T, model, policy string, share graph.Bytes, iterations int) (*graph.Graph, scheduler.Scheduled,
	trace.Trace) {
	t.Helper()
	g, err := models.Build(model, models.Config{Image: 32, Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	var events trace.Trace
	d, err := New(Options{Trace: func(e trace.Event) { events = append(events, e) }})
	if err != nil {
		t.Fatal(err)
	}
	r := scheduler.Request{Policy: policy, Align: d.Align(), Out: d.Facts().Out, In: d.Facts().In}
	job := scheduler.Job{Name: "a job", Epoch: 1, Graph: g}
	for op := range g.Ops {
		job.Latency = append(job.Latency, d.Facts().Roofline(g.Cost(graph.OpID(op))))
		job.Variants = append(job.Variants, []scheduler.Variant{{Scratch: d.Variants(g, graph.OpID(op))[0].Scratch}})
	}
	r.Jobs = []scheduler.Job{job}
	if share > 0 {
		r.Policy = "none-live"
		live, err := policies.Schedule(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Policy, r.Budget = policy, live.SlotPeak*share/100/align*align
	}
	result, err := policies.Schedule(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	scheduled := result.Jobs[0]
	proven, err := compile.Prove(g, scheduled.Plan, scheduled.Layout, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	train(t, d, g, proven, iterations)
	return g, scheduled, events
}

// train takes a job from Home through some iterations to Home.
func train(t *testing.T, d *Device, g *graph.Graph, proven proof.Proven, iterations int) {
	t.Helper()
	p := proven.Program()
	place, err := d.Open(g, device.JobOptions{Name: "a job", Input: func(int, graph.StorageID, device.Memory) {},
		Output: func(int, graph.StorageID, []float32) {}})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, job: place.(*job)}
	if err := b.Load(proven); err != nil {
		t.Fatal(err)
	}
	b.reserve(p.Arena)
	b.Issue(&p.Prologue, 0, len(p.Prologue.Commands), 0, true)
	for i := range iterations {
		b.Issue(&p.Body, 0, len(p.Body.Commands), i, i == 0)
	}
	b.Issue(&p.Epilogue, 0, len(p.Epilogue.Commands), iterations, true)
	next(t, d, len(p.Prologue.Commands)+iterations*len(p.Body.Commands)+len(p.Epilogue.Commands), b)
	b.reserve(0)
	b.close()
}

// The trace of a vanilla run, without the graph, leads to the residencies of the plan: as many, of the same storages,
// of which the same pairs are there at the same time; and to the plan's peak.
func TestTraceOfVanilla(t *testing.T) {
	for _, model := range []string{"mlp", "lenet"} {
		g, s, events := recorded(t, model, "none-live", 0, 4)
		it, err := trace.Find(events, 0)
		if err != nil {
			t.Fatal(err)
		}
		if it.Repeats < 3 {
			t.Errorf("%s: %+v, of 4", model, it)
		}
		l, err := trace.LifetimesOf(events, it, trace.LifetimeOptions{Align: int64(align)})
		if err != nil {
			t.Fatal(err)
		}
		if l.Load != int64(s.Footprint.Peak) {
			t.Errorf("%s: load %d, want %d", model, l.Load, s.Footprint.Peak)
		}
		got, want := byName(l), planned(g, s)
		if len(got) != len(want) {
			t.Fatalf("%s: %d lifetimes, want %d", model, len(got), len(want))
		}
		for i := range want {
			if got[i].name != want[i].name || got[i].Size != want[i].Size {
				t.Fatalf("%s: %s of %d bytes, want %s of %d", model, got[i].name, got[i].Size, want[i].name,
					want[i].Size)
			}
			for j := range i {
				if is, should := meet(got[i], got[j]), meet(want[i], want[j]); is != should {
					t.Errorf("%s: %s and %s are there at the same time: %v, want %v", model, want[i].name, want[j].name,
						is, should)
				}
			}
		}
		layout, err := pool.Pack(l.Buffers, pool.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if arena := s.Layout.Arena; layout.Height > int64(arena) {
			t.Errorf("%s: packed in %d, the plan in %d", model, layout.Height, arena)
		}
	}
}

// named is a buffer and what it holds.
type named struct {
	pool.Buffer
	name string
}

// byName sorts lifetimes by name, then by slot.
func byName(l *trace.Lifetimes) []named {
	var all []named
	for i, b := range l.Buffers {
		all = append(all, named{b, l.Residents[i].Block})
	}
	return ordered(all)
}

// planned are the residencies of a plan and the scratch of its steps, as the trace names them.
func planned(g *graph.Graph, s scheduler.Scheduled) []named {
	names := newRecorder("a job", g, nil)
	var all []named
	for _, r := range s.Layout.Stays.Residencies {
		all = append(all, named{pool.Buffer{Size: int64(g.Storages[r.Storage].Bytes), Spans: r.Spans},
			names.names[r.Storage]})
	}
	for slot, step := range s.Plan.Steps {
		if step.Scratch > 0 {
			all = append(all, named{pool.Buffer{Size: int64(step.Scratch),
				Spans: []pool.Span{{From: slot, To: slot + 1}}}, names.scratch})
		}
	}
	return ordered(all)
}

// ordered sorts buffers of which those of one name are there one after the other.
func ordered(all []named) []named {
	slices.SortFunc(all, func(a, b named) int {
		return cmp.Or(strings.Compare(a.name, b.name), a.Spans[0].From-b.Spans[0].From)
	})
	return all
}

// meet reports whether two buffers are there at the same time.
func meet(a, b named) bool {
	return slices.ContainsFunc(a.Spans, func(s pool.Span) bool { return slices.ContainsFunc(b.Spans, s.Overlaps) })
}

// A plan that swaps leads to a trace in which parameters come and go. Its load is some 86 % of the plan's peak: at the
// peak, what was updated just before stays until its copy out should have ended, over the end of the iteration; in the
// trace it ends with the command for that copy, its last use.
func TestTraceOfAPlan(t *testing.T) {
	g, s, events := recorded(t, "mlp", "tensile", 60, 4)
	it, err := trace.Find(events, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := trace.LifetimesOf(events, it, trace.LifetimeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Load > int64(s.Footprint.Peak) || l.Load < int64(s.Footprint.Peak)*8/10 {
		t.Errorf("load %d, the plan's peak is %d", l.Load, s.Footprint.Peak)
	}
	names := newRecorder("a job", g, nil).names
	away := 0
	for _, r := range l.Residents {
		if s := slices.Index(names, r.Block); s >= 0 && g.Storages[s].Role.Persistent() && r.Slot >= 0 {
			away++
		}
	}
	if away == 0 {
		t.Error("every parameter is there throughout")
	}
}

// From Home to Home everything that is malloced is freed, and nothing is recorded that was not asked for.
func TestTraceOfARun(t *testing.T) {
	for _, policy := range long.Or([]string{"none-live", "tensile", "capuchin"}, policies.Names()) {
		_, _, events := recorded(t, "mlp", policy, 0, 3)
		there := make(map[string]bool)
		for i, e := range events {
			if (e.Kind == trace.Malloc) == there[e.Block] {
				t.Fatalf("%s: event %d: %v", policy, i, e)
			}
			there[e.Block] = e.Kind != trace.Free
		}
		for id, is := range there {
			if is {
				t.Errorf("%s: %s is still there", policy, id)
			}
		}
		if _, err := trace.Find(events, 0); err != nil {
			t.Errorf("%s: %v", policy, err)
		}
	}
}
