package simtest

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/agent"
	"tensile/device"
	"tensile/device/cpu"
	"tensile/graph"
	"tensile/internal/needs"
	"tensile/wire"
)

// Jobs that train real numbers, are planned for again and again within a tight budget, and whose controller dies, come
// to the losses and weights of jobs that nobody disturbs, to the bit.
func TestBits(t *testing.T) {
	for _, engine := range []string{"gonum", "openblas"} {
		t.Run("engine="+engine, func(t *testing.T) {
			open := func() device.Device {
				d, err := cpu.New(cpu.Options{Threads: 1, NoOpenBLAS: engine == "gonum"})
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			if engine == "openblas" {
				d := open()
				defer d.Close()
				needs.OpenBLAS(t, d.Name())
			}
			sameBits(t, open)
		})
	}
}

func sameBits(t *testing.T, open func() device.Device) {
	var compared, plans, weights int
	for seed := range uint64(8) {
		alone, _ := outcome(t, seed, 0, open)
		var need graph.Bytes
		for _, r := range alone {
			need += r.Arena
		}
		disturbed, replans := outcome(t, seed, need*8/10, open)
		for name, r := range disturbed {
			if r.State != wire.Done {
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
	if t.Logf("%d jobs with %d weights compared, %d plans", compared, weights, plans); compared < 8 || weights < 20 {
		t.Errorf("only %d jobs compared", compared)
	}
}

// outcome runs three jobs to their end, undisturbed without a budget.
func outcome(t *testing.T, seed uint64, budget graph.Bytes, open func() device.Device) (map[string]wire.Record, int) {
	w := newWorld(t, seed, false, open)
	graphs := w.graphsOf(3)
	w.calm = true
	w.config.Budget = budget
	w.restart()
	w.every = 2
	for i, g := range graphs {
		w.submitGraph(g, 12)
		for range 40 * (i + 1) {
			w.wander(budget > 0)
		}
	}
	w.settle()
	records := make(map[string]wire.Record)
	plans := 0
	for _, r := range w.controller.Records() {
		if r.Result != nil && r.Result.Stored != "" {
			whole := w.results[r.Result.Stored]
			r.Result = &whole
		}
		records[r.Spec.Name] = r
		plans += r.PlansMade
	}
	return records, plans
}

// wander lets something happen, and with mishaps messages be lost and the controller die.
func (w *world) wander(mishaps bool) {
	w.calm = !mishaps
	names := slices.Sorted(maps.Keys(w.processes))
	switch pick := w.rng.IntN(100); {
	case pick < 1 && mishaps:
		w.restart()
	case pick < 2 && mishaps && len(names) > 0:
		w.processes[names[w.rng.IntN(len(names))]].end("killed")
	case pick < 3 && mishaps:
		w.tear()
	case pick < 10 && len(names) > 0:
		w.processes[names[w.rng.IntN(len(names))]].step(agent.Input{Tick: true})
	case pick < 50 && len(names) > 0:
		w.processes[names[w.rng.IntN(len(names))]].work()
	case len(w.mail) > 0:
		w.deliver()
	}
}
