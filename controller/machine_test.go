package controller

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/wire"
)

var seeds = flag.Uint64("seeds", 100, "seeds of TestMachineUnderFire")

// Jobs come, run, crash and are stopped, executors and the controller die, and messages are lost, doubled and late. No
// budget is ever exceeded, and in the end every job is over.
func TestMachineUnderFire(t *testing.T) {
	phases := make(map[wire.JobState]int)
	var replans, refused, queued int
	for seed := range *seeds {
		w := newWorld(t, seed, graph.Bytes(1500+100*(seed%60)))
		w.profile = signedProfile
		if seed%10 == 0 {
			w.record(Stored{})
			w.restart()
		}
		names := 0
		for range 300 {
			w.chaos(&names)
		}
		w.calm = true
		w.settle(seed)
		w.replay()
		for _, r := range w.machine.Records() {
			phases[r.State]++
			replans += r.PlansMade
		}
		for _, a := range w.answers {
			if a.Error != "" {
				refused++
			} else if a.Jobs[0].State == wire.Queued {
				queued++
			}
		}
	}
	t.Logf("%v, %d plans, %d refused, %d queued", phases, replans, refused, queued)
	for _, p := range []wire.JobState{wire.Done, wire.Halted, wire.Broken} {
		if phases[p] < int(*seeds)/4 {
			t.Errorf("only %d jobs %s", phases[p], p)
		}
	}
	if queued < int(*seeds)/4 || refused == 0 {
		t.Errorf("%d queued, %d refused", queued, refused)
	}
}

// chaos lets something happen.
func (w *world) chaos(names *int) {
	executors := slices.Sorted(maps.Keys(w.executors))
	switch pick := w.rng.IntN(100); {
	case pick < 3 && *names < 6:
		*names++
		w.submit(fmt.Sprintf("job%d", *names), 1+w.rng.IntN(12))
	case pick < 4 && *names > 0:
		w.step(Input{Stop: fmt.Sprintf("job%d", 1+w.rng.IntN(*names))})
	case pick < 5 && len(executors) > 0 && w.rng.IntN(2) == 0:
		w.end(w.executors[executors[w.rng.IntN(len(executors))]], "killed")
	case pick < 6:
		w.slow = 0.5 + 2*w.rng.Float64()
	case pick < 7:
		w.restart()
	case pick < 40 && len(executors) > 0:
		w.work(w.executors[executors[w.rng.IntN(len(executors))]])
	case len(w.mail) > 0:
		w.deliver()
	}
}

// settle goes on without mishaps until every job is over and every executor has left.
func (w *world) settle(seed uint64) {
	w.t.Helper()
	for range 20_000 {
		for len(w.mail) > 0 {
			w.deliver()
		}
		executors := slices.Sorted(maps.Keys(w.executors))
		if len(executors) == 0 {
			break
		}
		w.work(w.executors[executors[w.rng.IntN(len(executors))]])
	}
	for _, r := range w.machine.Records() {
		if !r.State.Over() || r.Claim > 0 {
			w.t.Fatalf("seed %d: job %s is %s (%s), with %s: it was lost", seed, r.Spec.Name, r.State, r.Why, r.Claim)
		}
	}
	if len(w.executors) > 0 {
		w.t.Fatalf("seed %d: %d executors have not left", seed, len(w.executors))
	}
}
