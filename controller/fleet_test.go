package controller

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/wire"
)

// Devices come, vanish, are drained and come back, while jobs come, run, are stopped, parked and resumed, executors and
// the controller die, and messages are lost, doubled and late. What the jobs of a device claim, and what they have, is
// never above its budget, and in the end every job is over and no memory is promised to anybody.
func TestDevicesComeAndGo(t *testing.T) {
	happened, on, moved := make(map[EventKind]int), make(map[string]int), 0
	seeds := long.Rounds(12, 100)
	for seed := range seeds {
		w := newFleet(t, seed)
		names, was := 0, make(map[string]string)
		for range 400 {
			w.fleetChaos(&names)
			for _, r := range w.records {
				if before := was[r.Spec.Name]; r.State == wire.JobRunning && before != "" && before != r.On {
					moved++
				}
				if r.State == wire.JobRunning {
					was[r.Spec.Name] = r.On
				}
			}
		}
		w.calm = true
		w.settleFleet(seed)
		w.replay()
		for _, e := range w.events {
			happened[e.Kind]++
		}
		for _, device := range was {
			on[device]++
		}
	}
	t.Logf("%v, on devices %v, %d moved", happened, on, moved)
	for _, kind := range []EventKind{Opened, Closed, Restarted, Rested, OutOfReach, MemoryFreed, Queued} {
		if n := happened[kind]; n < int(seeds)/20 {
			t.Errorf("%s only %d times", kind, n)
		}
	}
	for _, device := range []string{"", "d0", "d1", "d2"} {
		if on[device] < int(seeds)/20 {
			t.Errorf("only %d jobs have trained on device %q", on[device], device)
		}
	}
	if moved < int(seeds)/40 { // ten seeds one after the other may have none
		t.Errorf("only %d jobs went from one device to another", moved)
	}
}

// newFleet is a world of several devices, one of which may be the controller's own.
func newFleet(t *testing.T, seed uint64) *world {
	w := newWorld(t, seed, graph.Bytes(1500+100*(seed%60)))
	w.config.Watched, w.config.NoDevice, w.config.Name = false, seed%2 == 0, "own"
	w.config.Preempt, w.config.GiveUp, w.config.Turn = seed%4 > 1, time.Minute, 2*time.Second
	w.had = make(map[string]graph.Bytes)
	w.profile = signedProfile
	w.record(Stored{})
	w.restart()
	return w
}

// bring starts an executor by hand, with one of three devices.
func (w *world) bring(device int) {
	w.lives++
	link := cost.Link{Rate: 100e6, Latency: time.Microsecond}
	name := fmt.Sprint("hand", w.lives)
	x := &fakeExecutor{name: name, life: fmt.Sprint("life", w.lives), host: fmt.Sprint("host", device),
		brings: &wire.Device{Name: fmt.Sprint("d", device), Model: "model", Identity: "model", Align: 64,
			Budget: w.budget * graph.Bytes(1+device) / 2, Facts: cost.Facts{Compute: 1e9, Bandwidth: 1e9,
				ComputeShare: 1, BandwidthShare: 1, Out: link, In: link}}}
	w.executors[name] = x
	w.tell(x)
}

// fleetChaos lets something happen.
func (w *world) fleetChaos(names *int) {
	executors := slices.Sorted(maps.Keys(w.executors))
	switch pick := w.rng.IntN(100); {
	case pick < 4 && *names < 10:
		*names++
		w.submit(fmt.Sprintf("job%d", *names), 1+w.rng.IntN(12))
	case pick < 5 && *names > 0:
		w.step(Input{Request: &wire.Request{Verb: wire.Stop, Job: fmt.Sprintf("job%d", 1+w.rng.IntN(*names))}})
	case pick < 7 && len(executors) < 5:
		w.bring(w.rng.IntN(3))
	case pick < 8 && len(executors) > 0:
		w.kill(w.executors[executors[w.rng.IntN(len(executors))]])
	case pick < 9 && len(executors) > 0:
		w.network()
	case pick < 10 && *names > 0:
		q := &wire.Request{Verb: wire.Resume, Job: fmt.Sprintf("job%d", 1+w.rng.IntN(*names))}
		if w.rng.IntN(2) == 0 {
			q.Verb, q.Place = wire.Park, []wire.Place{wire.InMemory, wire.OnDisk}[w.rng.IntN(2)]
		}
		w.step(Input{Request: q})
	case pick < 12:
		w.step(Input{Request: &wire.Request{Verb: wire.Drain, Device: fmt.Sprint("d", w.rng.IntN(3)),
			Undo: w.rng.IntN(2) == 0}})
	case pick < 13:
		w.restart()
	case pick < 17:
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

// settleFleet goes on without mishaps, with an executor for each device, until every job is over.
func (w *world) settleFleet(seed uint64) {
	w.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(w.executors)) {
		w.heal(w.executors[name])
	}
	for device := range 3 {
		w.bring(device)
	}
	live := func(r wire.Record) bool { return !r.State.Over() || len(r.Held) > 0 }
	for i := range 20_000 {
		for len(w.mail) > 0 {
			w.deliver()
		}
		records := w.machine.Records()
		if !slices.ContainsFunc(records, live) {
			break
		}
		if i%10 == 0 {
			w.clock += time.Second
			w.step(Input{Tick: &Tick{}})
		}
		if i%500 == 0 {
			for device := range 3 {
				w.step(Input{Request: &wire.Request{Verb: wire.Drain, Device: fmt.Sprint("d", device), Undo: true}})
				there := func(x *fakeExecutor) bool {
					return x.brings != nil && x.host == fmt.Sprint("host", device) && !x.drain
				}
				if !slices.ContainsFunc(slices.Collect(maps.Values(w.executors)), there) {
					w.bring(device)
				}
			}
			for _, r := range records {
				if r.State == wire.JobParked || r.State == wire.JobParking {
					w.step(Input{Request: &wire.Request{Verb: wire.Resume, Job: r.Spec.Name}})
				}
			}
			ended := slices.Sorted(maps.Keys(w.machine.executors)) // perhaps before they were known
			for _, r := range records {
				for _, h := range r.Held {
					ended = append(ended, h.Executor)
				}
			}
			for _, name := range ended {
				if w.executors[name] == nil {
					w.step(Input{Request: &wire.Request{Verb: wire.Forget, Executor: name}})
				}
			}
		}
		if executors := slices.Sorted(maps.Keys(w.executors)); len(executors) > 0 {
			w.work(w.executors[executors[w.rng.IntN(len(executors))]])
		}
	}
	for _, r := range w.machine.Records() {
		if live(r) || r.Claim > 0 {
			for _, e := range w.events[max(0, len(w.events)-25):] {
				w.t.Log(e)
			}
			w.t.Fatalf("seed %d: job %s is %s (%s) on %q at %q, with %s and %v held: it was lost", seed, r.Spec.Name,
				r.State, r.Reason, r.On, r.Executor, r.Claim, r.Held)
		}
	}
	for _, d := range w.machine.domains {
		if used := d.totalClaims().Bytes(); used > 0 {
			w.t.Fatalf("seed %d: %s of device %q are promised to nobody", seed, used, d.recordName())
		}
	}
}

// checkDevices holds for each device that jobs neither claim nor have more than its budget.
func (w *world) checkDevices() {
	w.t.Helper()
	arenas := make(map[string]graph.Bytes)
	for _, x := range w.executors {
		for _, j := range x.jobs {
			on := ""
			if x.brings != nil {
				on = x.brings.Name
			}
			arenas[on] += j.status.Arena
		}
	}
	had := make(map[string]graph.Bytes)
	for _, d := range w.machine.domains {
		on, budget := d.recordName(), d.config.Budget
		claims := d.totalClaims().Bytes()
		if had[on] = claims; arenas[on] > max(budget, claims) || claims > max(budget, w.had[on]) {
			for _, e := range w.events[max(0, len(w.events)-12):] {
				w.t.Log(e)
			}
			w.t.Fatalf("on device %q are arenas of %s, claims of %s and %s a moment ago, its budget is %s", on,
				arenas[on], claims, w.had[on], budget)
		}
		delete(arenas, on)
	}
	for on, bytes := range arenas {
		if bytes > 0 {
			w.t.Fatalf("executors have %s of device %q, which is not known", bytes, on)
		}
	}
	w.had = had
}
