package simtest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// Jobs that train real numbers, are planned for again and again within a tight budget, parked and resumed, and whose
// executors, devices and controller die, come to the losses and weights of jobs that nobody disturbs, to the bit.
func TestBits(t *testing.T) {
	for _, threads := range long.Or([]int{1}, []int{1, 2}) {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			sameBits(t, opener(t, threads), wire.NoSharing, 80)
		})
	}
}

// The same with jobs that share memory by gates, and by gates that the methods of Zico and Waterwave delay.
func TestBitsByGates(t *testing.T) {
	for _, sharing := range long.Or([]wire.Sharing{wire.Gates}, []wire.Sharing{wire.Gates, wire.Zico, wire.Waterwave}) {
		t.Run(string(sharing), func(t *testing.T) { bitsByGates(t, sharing) })
	}
}

func bitsByGates(t *testing.T, sharing wire.Sharing) {
	sameBits(t, opener(t, 1), sharing, 75)
}

// opener opens cpu devices with a number of threads and small pages.
func opener(t *testing.T, threads int) func() device.Device {
	return func() device.Device {
		d, err := cpu.New(cpu.Options{Threads: threads, Page: 4 * graph.KiB})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// sameBits compares jobs alone with such that are disturbed, within a share of what they had.
func sameBits(t *testing.T, open func() device.Device, sharing wire.Sharing, percent int) {
	var compared, plans, weights, resumed, moved int
	for seed := range long.Rounds(4, 12) {
		alone, _, _ := outcome(t, seed, 0, open, wire.NoSharing)
		var need graph.Bytes
		for _, r := range alone {
			need += r.Arena
		}
		disturbed, replans, w := outcome(t, seed, need*graph.Bytes(percent)/100, open, sharing)
		resumed, moved = resumed+w.resumed, moved+w.moved
		for name, r := range disturbed {
			if r.State != wire.JobFinished {
				continue // it did not fit, or was hit
			}
			compared++
			plans += replans
			if diff := cmp.Diff(alone[name].Result.Losses, r.Result.Losses); diff != "" {
				t.Errorf("seed %d: losses of %s (-alone +disturbed):\n%s", seed, name, diff)
			}
			if diff := cmp.Diff(alone[name].Result.Weights, r.Result.Weights); diff != "" {
				t.Errorf("seed %d: digests of the weights of %s (-alone +disturbed):\n%s", seed, name, diff)
			}
			weights += len(r.Result.Weights)
		}
	}
	t.Logf("%d jobs with %d weights compared, %d plans, %d began with a checkpoint, %d went to another device",
		compared, weights, plans, resumed, moved)
	// How many begin anew depends on how long training really takes: by gates it is 2 to 7, and 6 to 11 without.
	if compared < long.Or(2, 8) || weights < long.Or(5, 20) || long.On() && resumed == 0 && sharing == wire.NoSharing {
		t.Errorf("only %d jobs compared, %d began with a checkpoint", compared, resumed)
	}
}

// outcome runs three jobs to their end, undisturbed without a budget.
func outcome(t *testing.T, seed uint64, budget graph.Bytes, open func() device.Device, sharing wire.Sharing) (
	byName map[string]wire.Record, plans int, w *world) {
	w = newWorld(t, seed, false, open)
	graphs := w.graphsOf(3)
	w.calm = true
	w.config.Budget = budget
	if budget > 0 && seed%6 == 1 {
		w.addSites(1, true, budget, func(int) func() device.Device { return open })
	}
	w.share(sharing)
	w.restart()
	for i, g := range graphs {
		w.submitGraphs([]*graph.Graph{g}, 12)
		for range 40 * (i + 1) {
			w.wander(budget > 0)
		}
	}
	w.settle()
	records := make(map[string]wire.Record)
	for _, r := range w.controller.Records() {
		if r.Result != nil && r.Result.Stored != "" {
			whole := w.results[r.Result.Stored]
			r.Result = &whole
		}
		records[r.Spec.Name] = r
		plans += r.PlansMade
	}
	return records, plans, w
}

// wander lets something happen, and with mishaps messages be lost, processes die and jobs be parked.
func (w *world) wander(mishaps bool) {
	w.calm = !mishaps
	names := slices.Sorted(maps.Keys(w.processes))
	switch pick := w.rng.IntN(100); {
	case pick < 1 && mishaps:
		w.restart()
	case pick < 4 && mishaps && len(names) > 0:
		p := w.processes[names[w.rng.IntN(len(names))]]
		if w.rng.IntN(2) == 0 {
			p.end("killed")
		} else {
			p.step(agent.Input{Drain: errInterrupted})
		}
	case pick < 5 && mishaps && w.names > 0:
		w.ask()
	case pick < 6 && mishaps:
		w.pass(2)
	case pick < 8 && mishaps && len(w.sites) > 1:
		w.devicesChange()
	case pick < 10 && len(names) > 0:
		w.processes[names[w.rng.IntN(len(names))]].step(agent.Input{Tick: true})
	case pick < 50 && len(names) > 0:
		w.processes[names[w.rng.IntN(len(names))]].work()
	case len(w.mail) > 0:
		w.deliver()
	}
}
