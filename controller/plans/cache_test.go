package plans

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// kept is a planner with a store of plans of two jobs, and how often it was asked for plans that the store has not.
func kept(t *testing.T, commands int) (*Worker, func(names []string, of []*graph.Graph) *Result, *int) {
	d := &wire.Device{Name: "d0"}
	p, made := newTestWorker(Settings{Policy: "tensile", MemorySharing: wire.Gates, Page: 64}), 0
	p.Cache = NewCache(commands)
	p.Known = func(scheduler.Request) *planner.Planned { made++; return nil }
	return p, func(names []string, of []*graph.Graph) *Result {
		q := &Request{Device: d, WantSlowdowns: true, Admitted: len(of), Budget: 100_000}
		for i, g := range of {
			q.Jobs = append(q.Jobs, Candidate{Spec: wire.Spec{Name: names[i], Graph: g.Digest()}, Graph: g,
				Remaining: 100,
				Epoch:     int64(3 * made)})
		}
		return p.Plan(t.Context(), q)
	}, &made
}

// Plans for equal jobs are made once, whatever their names, epochs and order, and each job gets its own.
func TestPlansAreMadeOnce(t *testing.T) {
	_, plan, made := kept(t, 100_000)
	graphs := someGraphs()
	a, b := graphs[0], graphs[1]
	first := plan([]string{"x", "y", "z"}, []*graph.Graph{a, b, a})
	before := *made
	again := plan([]string{"one", "two", "three"}, []*graph.Graph{b, a, a})
	if before == 0 || *made != before {
		t.Fatalf("plans were made %d times, then %d times", before, *made-before)
	}
	for i, from := range []int{1, 0, 2} {
		got, want := again.Jobs[i], first.Jobs[from]
		g := []*graph.Graph{b, a, a}[i]
		if p := got.Layout.Wire.Plan; p.Job != []string{"one", "two", "three"}[i] || p.Graph != g.Digest() ||
			p.Epoch != int64(3*before) {
			t.Errorf("job %d has the plan of %s for %s in epoch %d", i, p.Job, p.Graph, p.Epoch)
		}
		p, q := *got.Layout.Wire, *want.Layout.Wire
		renamed := *p.Plan
		renamed.Job = q.Plan.Job
		p.Plan = &renamed
		if !sameLayout(&p, &q) || got.Slowdown != want.Slowdown || got.Alone != want.Alone ||
			!reflect.DeepEqual(got.Layout.Claim, want.Layout.Claim) || got.Layout.Peak != want.Layout.Peak {
			t.Errorf("job %d has another plan than before", i)
		}
		if got.Layout.program.Plan != got.Layout.Wire.Plan {
			t.Errorf("job %d: the program is of another plan", i)
		}
	}
	if plan([]string{"x", "y"}, []*graph.Graph{a, b}); *made == before {
		t.Error("plans for other jobs were not made")
	}
}

// What was not asked for for longest is dropped first, and a refusal is kept, too.
func TestPlansAreDropped(t *testing.T) {
	p, plan, made := kept(t, 400)
	graphs := someGraphs()
	for i := range 6 {
		plan([]string{"x", "y"}, []*graph.Graph{graphs[i%3], graphs[i/2]})
		if p.Cache.size > 400 || len(p.Cache.entries) != p.Cache.recent.Len() {
			t.Fatalf("%d commands of %d plans are kept, %d in order", p.Cache.size, len(p.Cache.entries),
				p.Cache.recent.Len())
		}
	}
	if len(p.Cache.entries) == 6 {
		t.Error("nothing was dropped")
	}
	p.Cache = NewCache(1000)
	var needs []graph.Bytes
	before := *made
	for i := range 3 {
		w := planJob{Worker: p, ctx: t.Context(), result: &Result{},
			profiles: map[graph.Digest]*planner.Profile{},
			message: &Request{Device: &wire.Device{Name: "d0"}, Budget: 64,
				Jobs: []Candidate{{Graph: graphs[0],
					Spec: wire.Spec{Name: fmt.Sprint("job", i), Graph: graphs[0].Digest()}}}}}
		w.profileCandidates()
		_, err := w.schedule(1)
		if err == nil {
			t.Fatal("64 bytes are enough")
		}
		needs = append(needs, w.explainNoPlan(err).Need)
	}
	if *made != before+1 || needs[0] == 0 || len(slices.Compact(needs)) != 1 {
		t.Errorf("a refusal was made %d times, of needs %v", *made-before, needs)
	}
}
