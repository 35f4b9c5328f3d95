package simtest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"tensile/device"
	"tensile/device/sim"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// loaded is a world without mishaps, with a device whose kernels take load times as long as alone, and one job.
func loaded(t *testing.T, seed uint64, budget graph.Bytes, load *float64) *world {
	facts := openSim(seed)().Facts()
	w := newWorld(t, seed, false, func() device.Device {
		return sim.New(facts, sim.Options{Noise: 0.05, Seed: seed, Pace: func(time.Duration) float64 { return *load }})
	})
	w.calm = true
	w.config.Budget = budget
	w.restart()
	w.submitGraphs(w.graphsOf(1), 1<<20)
	for len(w.mail) > 0 {
		w.deliver()
	}
	return w
}

// train goes on until the job has had so many more reports.
func (w *world) train(iterations int) {
	for want := len(w.reports) + iterations; len(w.reports) < want; {
		for len(w.mail) > 0 {
			w.deliver()
		}
		for _, name := range slices.Sorted(maps.Keys(w.processes)) {
			p := w.processes[name]
			p.step(agent.Input{Tick: true})
			p.work()
		}
	}
}

// stall is the mean stall of reports.
func stall(reports []wire.Report) time.Duration {
	var sum time.Duration
	for _, r := range reports {
		sum += r.Stall
	}
	return sum / time.Duration(len(reports))
}

// The device gets faster in the middle, so that copies are late: the job is planned for again, the new plan is applied
// between two iterations, and it stalls less. Under noise alone nothing is planned again.
func TestLoadChanges(t *testing.T) {
	const iterations = 40
	var changed, better, jobs int
	for seed := range long.Rounds(6, 40) {
		load := 1.0
		w := loaded(t, seed, 0, &load)
		need := w.controller.Records()[0].Claim
		w = loaded(t, seed, need*3/4, &load)
		if len(w.controller.Records()) == 0 {
			continue // it does not fit
		}
		jobs++
		w.train(iterations)
		settled := w.controller.Records()[0].Epoch
		w.train(iterations)
		if epoch := w.controller.Records()[0].Epoch; epoch > settled {
			t.Errorf("seed %d: planned again under noise alone, epochs %d and %d", seed, settled, epoch)
		}
		load = 0.1
		from := len(w.reports)
		w.train(3 * iterations)
		if w.controller.Records()[0].Epoch == settled {
			continue
		}
		changed++
		reports := w.reports[from:]
		old := slices.IndexFunc(reports, func(r wire.Report) bool { return r.Epoch > settled })
		if old < 3 || old > iterations {
			t.Errorf("seed %d: the new plan is in force after %d iterations", seed, old)
			continue
		}
		if before, after := stall(reports[1:old]), stall(reports[old+1:]); after < before {
			better++
		}
		epoch := w.controller.Records()[0].Epoch
		w.train(iterations)
		if again := w.controller.Records()[0].Epoch; again > epoch {
			t.Errorf("seed %d: planned again under noise alone, epochs %d and %d", seed, epoch, again)
		}
	}
	t.Logf("%d jobs, %d changed their plan, %d stall less since", jobs, changed, better)
	if changed < long.Or(1, 5) || better < changed*3/4 {
		t.Errorf("of %d jobs %d changed their plan, and %d stall less since", jobs, changed, better)
	}
}
