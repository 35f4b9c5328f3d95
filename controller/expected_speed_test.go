package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tensile/controller/memory"
	"tensile/controller/plans"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/models/nettest"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// What jobs claim together, by their programs alone, is what their plans were to need, and within the budget.
func TestPlansShareMemory(t *testing.T) {
	var shared, refused, less int
	for seed := range long.Rounds(20, 60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		link := cost.Link{Rate: 100e6, Latency: 1000}
		c := Config{Device: "model", Align: 64, Out: link, In: link, Policy: "tensile",
			Page: 64 << rng.IntN(5), MemorySharing: [...]wire.Sharing{wire.Gates, wire.Slices}[seed%2]}
		on := c.SharedDevice(planner.Device{Align: c.Align, Out: link, In: link, Profile: profile, Page: c.Page})
		p := plans.Worker{Settings: c.PlanSettings(), Device: on}
		q := &plans.Request{Ticket: 1}
		for i := range 2 + rng.IntN(2) {
			g := graphtest.New(rng, graphtest.Options{})
			spec := wire.Spec{Name: string(rune('a' + i)), Graph: g.Digest()}
			q.Jobs = append(q.Jobs, plans.Candidate{Spec: spec, Epoch: 1,
				Graph: g, Remaining: 10, Unchecked: true})
		}
		free := p.Plan(t.Context(), q)
		least, _ := claimed(free.Jobs)
		q.Budget = least * graph.Bytes(80+rng.IntN(21)) / 100
		q.Admitted = len(q.Jobs)
		for i := range q.Jobs {
			profile := free.NewProfiles[i]
			q.Jobs[i].Profile, q.Jobs[i].Latency = &profile, profile.Latency
		}
		planned := p.Plan(t.Context(), q)
		if planned.NoPlan != nil {
			refused++
			continue
		}
		shared++
		needs, sum := claimed(planned.Jobs)
		if needs > q.Budget {
			t.Errorf("seed %d, %s: jobs claim %s of %s", seed, c.MemorySharing, needs, q.Budget)
		}
		if sum > q.Budget {
			less++
		}
	}
	t.Logf("%d planned for, %d refused, %d whose arenas alone would not fit", shared, refused, less)
	if min(shared, less) < long.Or(5, 20) {
		t.Errorf("only %d planned for, %d whose arenas alone would not fit", shared, less)
	}
}

// A replica has an arena for itself under each memory sharing, in whole pages, and so have the jobs that are planned
// for with it: beside others of them none waits within an iteration. Jobs that are planned for without it share.
func TestReplicasHaveArenas(t *testing.T) {
	ordinary, err := nettest.Build("mlp")
	if err != nil {
		t.Fatal(err)
	}
	replica, err := autodiff.Replicate(ordinary, 2)
	if err != nil {
		t.Fatal(err)
	}
	link := cost.Link{Rate: 100e6}
	for _, way := range []wire.Sharing{wire.Gates, wire.Zico, wire.Waterwave, wire.Slices} {
		c := Config{Device: "model", Align: 64, Out: link, In: link, Policy: "tensile", Page: 4096, MemorySharing: way}
		on := c.SharedDevice(planner.Device{Align: c.Align, Out: link, In: link, Profile: profile, Page: c.Page})
		p := plans.Worker{Settings: c.PlanSettings(), Device: on}
		q := &plans.Request{Ticket: 1}
		for i, g := range []*graph.Graph{ordinary, ordinary, replica, replica} {
			spec := wire.Spec{Name: string(rune('a' + i)), Graph: g.Digest()}
			q.Jobs = append(q.Jobs, plans.Candidate{Spec: spec, Epoch: 1,
				Graph: g, Remaining: 10})
		}
		_, arenas := claimed(p.Plan(t.Context(), q).Jobs)
		q.Budget = arenas * 8 / 10
		all := p.Plan(t.Context(), q)
		if len(all.Jobs) < len(q.Jobs) {
			t.Fatalf("%s: %d of %d jobs fit %s: %v", way, len(all.Jobs), len(q.Jobs), q.Budget, all.NoPlan)
		}
		if together, arenas := claimed(all.Jobs); together > q.Budget || arenas > q.Budget {
			t.Errorf("%s: claims of %s, arenas of %s in a budget of %s", way, together, arenas, q.Budget)
		}
		for i, j := range all.Jobs[2:] {
			if claim := j.Layout.ClaimOrArena(); claim.Base != claim.Arena || claim.Arena%c.Page != 0 ||
				claim.Arena < j.Layout.Wire.Arena {
				t.Errorf("%s: replica %d claims %s, of them %s all the time, with an arena of %s", way, i, claim.Arena,
					claim.Base, j.Layout.Wire.Arena)
			}
		}
		q.Budget = arenas / 4 // the others do not fit any more
		some := p.Plan(t.Context(), q)
		if _, arenas := claimed(some.Jobs); len(some.Jobs) != 2 || arenas <= q.Budget {
			t.Errorf("%s: %d jobs fit %s, with arenas of %s", way, len(some.Jobs), q.Budget, arenas)
		}
	}
}

// claimed is what jobs claim together, and the sum of their arenas.
func claimed(jobs []plans.PlannedJob) (together, arenas graph.Bytes) {
	var sum memory.Sum
	for _, j := range jobs {
		sum = sum.Add(j.Layout.ClaimOrArena())
		arenas += j.Layout.Wire.Arena
	}
	return sum.Bytes(), arenas
}

// Jobs that share memory by gates are told, with the first plans of all, how fast they are expected to be beside the
// others; one that is alone is told nothing, and jobs with an arena each are not.
func TestExpectedSpeeds(t *testing.T) {
	for _, c := range []struct {
		sharing wire.Sharing
		say     bool
	}{{wire.Gates, true}, {wire.NoSharing, false}} {
		w := sharing(t, 7, 0)
		w.config.MemorySharing = c.sharing
		w.machine = NewMachine(w.config)
		said := func() (lines []string) {
			for _, e := range w.events {
				if e.Kind == Shared {
					lines = append(lines, e.String())
				}
			}
			return lines
		}
		w.submit("a", endless)
		w.run(5)
		if len(said()) > 0 {
			t.Errorf("%s: of a job alone is said %q", c.sharing, said())
		}
		w.submit("b", endless)
		why, job := w.recordOf("b").Reason, w.machine.findJob("b")
		w.machine.applyJobStatus(job, wire.JobStatus{State: wire.Waiting}, true)
		there := w.machine.ownDomain.describeStart(job)
		w.run(5)
		a, b := w.recordOf("a").Speed, w.recordOf("b").Speed
		if !c.say {
			if a+b > 0 || len(said()) > 0 {
				t.Errorf("%s: speeds of %v and %v are expected, and %q said", c.sharing, a, b, said())
			}
			continue
		}
		want := fmt.Sprintf("2 jobs train %s; of their speeds alone are expected: job a %.2f, job b %.2f",
			sharingWord(a+b), a,
			b)
		if a <= 0 || b <= 0 || a > 1.01 || b > 1.01 || !slices.Equal(said(), []string{want}) {
			t.Errorf("%s: speeds of %v and %v are expected, and %q said, want %q", c.sharing, a, b, said(), want)
		}
		want = fmt.Sprintf("its executor starts; it is expected to train %s with another job, at %.2f of its speed "+
			"alone", sharingWord(a+b), b)
		if why != want {
			t.Errorf("%s: job b waits since %q, want %q", c.sharing, why, want)
		}
		want = "its executor gets it ready, or waits until others have given back memory; "
		if !strings.HasPrefix(there, want) {
			t.Errorf("%s: at its executor job b waits since %q, want %q", c.sharing, there, want)
		}
	}
}
