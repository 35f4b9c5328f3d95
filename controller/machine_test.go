package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// Jobs come, run, crash, are stopped, parked and resumed, executors and the controller die, are interrupted and cut
// off, messages are lost, doubled and late. No budget is ever exceeded, and in the end every job is over.
func TestMachineUnderFire(t *testing.T) {
	phases, happened := make(map[wire.JobState]int), make(map[EventKind]int)
	var replans, refused, queued, forHost int
	seeds := long.Rounds(8, 100)
	for seed := range seeds {
		w := newWorld(t, seed, graph.Bytes(1500+100*(seed%60)))
		w.config.Watched, w.config.Preempt = seed%3 > 0, seed%4 > 1
		w.shared = seed%2 == 1
		w.config.GiveUp, w.config.Turn = time.Minute, 2*time.Second
		if seed%3 == 1 {
			w.config.HostMemory = graph.Bytes(60+10*(seed%20)) * 4096
		}
		w.machine = NewMachine(w.config)
		w.profile = signedProfile
		if seed%10 == 0 {
			w.record(Stored{})
			w.restart()
		}
		names := 0
		for range 400 {
			w.chaos(&names)
		}
		w.calm = true
		w.settle(seed)
		w.replay()
		for _, e := range w.events {
			happened[e.Kind]++
			if e.Kind == Queued && strings.Contains(e.Reason, "of host memory") {
				forHost++
			}
		}
		for _, r := range w.machine.Records() {
			phases[r.State]++
			replans += r.PlansMade
		}
		for _, a := range w.answers {
			if a.Error != "" {
				refused++
			} else if len(a.Jobs) > 0 && a.Jobs[0].State == wire.JobQueued {
				queued++
			}
		}
	}
	t.Logf("%v, %v, %d plans, %d refused, %d queued, %d for host memory", phases, happened, replans, refused,
		queued, forHost)
	if forHost < int(seeds)/50 {
		t.Errorf("jobs waited %d times for host memory", forHost)
	}
	for _, kind := range []EventKind{Restarted, Rested, Preempted, OutOfReach, ExecutorReturned, MemoryFreed} {
		if n := happened[kind]; n < int(seeds)/20 {
			t.Errorf("%s only %d times", kind, n)
		}
	}
	for _, p := range []wire.JobState{wire.JobFinished, wire.JobStopped, wire.JobFailed} {
		if phases[p] < int(seeds)/4 {
			t.Errorf("only %d jobs %s", phases[p], p)
		}
	}
	if queued < int(seeds)/4 || refused == 0 {
		t.Errorf("%d queued, %d refused", queued, refused)
	}
}

// chaos lets something happen.
func (w *world) chaos(names *int) {
	executors := slices.Sorted(maps.Keys(w.executors))
	switch pick := w.rng.IntN(100); {
	case pick < 3 && *names < 10:
		*names++
		w.submit(fmt.Sprintf("job%d", *names), 1+w.rng.IntN(12))
	case pick < 4 && *names > 0:
		w.step(Input{Request: &wire.Request{Verb: wire.Stop, Job: fmt.Sprintf("job%d", 1+w.rng.IntN(*names))}})
	case pick < 5 && len(executors) > 0 && w.rng.IntN(2) == 0:
		w.kill(w.executors[executors[w.rng.IntN(len(executors))]])
	case pick < 7 && *names > 0:
		w.ask(*names)
	case pick < 9:
		w.network()
	case pick < 10:
		w.slow = 0.5 + 2*w.rng.Float64()
	case pick < 11:
		w.restart()
	case pick < 15:
		for range w.rng.IntN(10) {
			w.clock += time.Duration(1+w.rng.IntN(4)) * time.Second
			w.step(Input{Tick: &Tick{}})
		}
	case pick < 40 && len(executors) > 0:
		w.work(w.executors[executors[w.rng.IntN(len(executors))]])
	case len(w.mail) > 0:
		w.deliver()
	}
}

// kill ends a process. Mostly that is known at once.
func (w *world) kill(x *fakeExecutor) {
	if !w.config.Watched && w.rng.IntN(3) == 0 {
		delete(w.executors, x.name)
		w.lost[x.name] = true
		return
	}
	w.end(x, "killed")
}

// ask asks for something.
func (w *world) ask(names int) {
	q := &wire.Request{Job: fmt.Sprintf("job%d", 1+w.rng.IntN(names))}
	if w.shared && w.rng.IntN(6) == 0 {
		w.step(Input{Request: &wire.Request{Verb: wire.SetShare, Tenant: fmt.Sprint("tenant", w.rng.IntN(3)),
			Share: w.rng.IntN(4)}})
		return
	}
	switch w.rng.IntN(6) {
	case 0:
		q.Verb, q.Place = wire.Park, wire.InMemory
	case 1:
		q.Verb, q.Place = wire.Park, wire.OnDisk
	case 2, 3:
		q.Verb = wire.Resume
	case 4:
		q.Verb, q.Priority = wire.SetWeight, 1+w.rng.IntN(5)
	case 5:
		q.Verb, q.Budget = wire.SetBudget, w.budget/2+graph.Bytes(w.rng.Int64N(int64(w.budget)))
		w.config.Budget = q.Budget
	}
	w.step(Input{Request: q})
}

// network cuts an executor off, or interrupts one.
func (w *world) network() {
	names := slices.Sorted(maps.Keys(w.executors))
	if len(names) == 0 {
		return
	}
	x := w.executors[names[w.rng.IntN(len(names))]]
	if w.rng.IntN(3) == 0 {
		x.drain = true
		return
	}
	for _, name := range names {
		if cut := w.executors[name]; cut.cut {
			w.heal(cut)
			return
		}
	}
	x.cut = !w.config.Watched
}

// heal has messages reach an executor again.
func (w *world) heal(x *fakeExecutor) {
	x.cut = false
	w.tell(x)
	if o, ok := w.orders[x.name]; ok {
		w.send(func() { w.hear(o) })
	}
}

// settle goes on without mishaps until every job is over and every executor has left. What was parked goes on, and who
// has died without anybody's knowing is told of.
func (w *world) settle(seed uint64) {
	w.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(w.executors)) {
		w.heal(w.executors[name])
	}
	w.config.Budget = 2 * w.budget
	w.step(Input{Request: &wire.Request{Verb: wire.SetBudget, Budget: w.config.Budget}})
	for i := range 20_000 {
		for len(w.mail) > 0 {
			w.deliver()
		}
		executors := slices.Sorted(maps.Keys(w.executors))
		over := func(r wire.Record) bool { return r.State.Over() }
		records := w.machine.Records()
		if len(executors) == 0 && !slices.ContainsFunc(records, func(r wire.Record) bool { return !over(r) }) {
			break
		}
		if i%10 == 0 {
			w.clock += time.Second
			w.step(Input{Tick: &Tick{}})
		}
		if i%1000 == 0 {
			for _, r := range records {
				if r.State == wire.JobParked || r.State == wire.JobParking {
					w.step(Input{Request: &wire.Request{Verb: wire.Resume, Job: r.Spec.Name}})
				}
			}
			for name := range w.lost {
				w.step(Input{Request: &wire.Request{Verb: wire.Forget, Executor: name}})
			}
		}
		if len(executors) > 0 {
			w.work(w.executors[executors[w.rng.IntN(len(executors))]])
		}
	}
	for _, r := range w.machine.Records() {
		if !r.State.Over() || r.Claim > 0 {
			w.t.Fatalf("seed %d: job %s is %s (%s), with %s: it was lost", seed, r.Spec.Name, r.State, r.Reason,
				r.Claim)
		}
	}
	if len(w.executors) > 0 {
		w.t.Fatalf("seed %d: %d executors have not left", seed, len(w.executors))
	}
}
