package controller

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// lie has an executor tell of an epoch that nobody ordered.
func (w *world) lie(x *fakeExecutor) {
	if len(x.jobs) == 0 {
		return
	}
	w.tell(x)
	x.number++
	j := x.jobs[w.rng.IntN(len(x.jobs))].status
	j.Epoch += 1 + w.rng.Int64N(1<<40)
	w.send(func() {
		w.step(Input{Status: &wire.Status{Executor: x.name, Number: x.number, Life: x.life, Device: "model",
			Orders: x.orders.Number, Jobs: []wire.JobStatus{j}}})
	})
}

// A status that names an epoch that was never granted does not take a job's claim away: it has its arena all the same.
func TestInventedEpoch(t *testing.T) {
	w := calmWorld(t, 3, 0)
	w.submit("a", endless)
	w.run(5)
	j := w.machine.findJob("a")
	claim, applied := j.claim().Arena, j.record.Applied
	if j.record.State != wire.JobRunning || claim == 0 {
		t.Fatalf("job a is %s with %s", j.record.State, claim)
	}
	w.lie(w.executors[j.record.Executor])
	w.run(1)
	if got := j.claim().Arena; got != claim || j.record.Applied != applied {
		t.Errorf("after an invented epoch the job claims %s in epoch %d, before %s in epoch %d", got, j.record.Applied,
			claim, applied)
	}
}

// With executors that invent epochs no budget is exceeded, whatever else happens.
func TestInventedEpochsUnderFire(t *testing.T) {
	lies, seeds := 0, long.Rounds(5, 40)
	for seed := range seeds {
		w := newWorld(t, seed, graph.Bytes(1500+100*(seed%60)))
		names := 0
		for range 300 {
			if executors := slices.Sorted(maps.Keys(w.executors)); len(executors) > 0 && w.rng.IntN(10) == 0 {
				w.lie(w.executors[executors[w.rng.IntN(len(executors))]])
				lies++
			}
			w.chaos(&names)
		}
		w.calm = true
		w.settle(seed)
	}
	if lies < 10*int(seeds) {
		t.Errorf("%d lies", lies)
	}
}

// A stored layout that is damaged is an error that names it, never a panic.
func TestRestoreDamaged(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(l *wire.Layout)
		want  string
	}{
		{"an offset is missing", func(l *wire.Layout) { l.Offsets = l.Offsets[1:] }, "offsets for"},
		{"all offsets are missing", func(l *wire.Layout) { l.Offsets = nil }, "offsets for"},
		{"scratch for one step", func(l *wire.Layout) { l.Scratch = l.Scratch[:1] }, "of scratch for"},
		{"an arena and an offset without end", func(l *wire.Layout) {
			l.Arena = math.MaxInt64 / 64 * 64
			l.Offsets[0] = l.Arena
		}, "has an arena of"},
		{"an offset above the arena", func(l *wire.Layout) { l.Offsets[0] = l.Arena }, "of an arena of"},
		{"an odd offset", func(l *wire.Layout) { l.Offsets[0]++ }, "want a multiple of 64"},
		{"a step is missing", func(l *wire.Layout) { l.Plan.Steps = l.Plan.Steps[1:] }, "is not valid"},
	} {
		w := calmWorld(t, 3, 0)
		w.submit("a", endless)
		w.run(5)
		s := w.stored()
		s.Records, s.Layouts = []wire.Record{w.records["a"]}, map[string][]*wire.Layout{}
		for _, l := range w.layouts["a"] {
			c, err := wire.DecodeAs[wire.Layout](wire.Encode(*l))
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Scratch) == 0 {
				c.Scratch = make([]graph.Bytes, len(c.Plan.Steps))
			}
			test.spoil(&c)
			s.Layouts["a"] = append(s.Layouts["a"], &c)
		}
		m := Restore(w.config, s)
		m.Resume(w.clock)
		if why := m.Records()[0].Reason; !strings.HasPrefix(why, "is held: layout") ||
			!strings.Contains(why, test.want) {
			t.Errorf("%s: %q, want it to contain %q", test.name, why, test.want)
		}
	}
}
