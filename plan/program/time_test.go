package program_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan/plantest"
	"tensile/plan/program"
)

// TestTime compares the steady state with a slow oracle, the longest path through many bodies, and shows that time adds
// up: kernels and stalls make the iteration.
func TestTime(t *testing.T) {
	seeds := long.Rounds(100, 800)
	stalled := 0
	for seed := range seeds {
		s := random(t, seed, graphtest.Options{})
		d := plantest.Durations(len(s.p.Steps), rand.New(rand.NewPCG(seed, 6)))
		got := program.Time(s.c, d)
		var kernels, stalls time.Duration
		for _, took := range d.Steps {
			kernels += took
		}
		for _, stall := range got.Stalls(s.c) {
			stalls += stall
		}
		if got.Iteration != kernels+got.Stall || stalls > got.Stall {
			t.Fatalf("%s: iteration %v, kernels %v, stall %v, by step %v", s.name, got.Iteration, kernels, got.Stall,
				stalls)
		}
		if got.Stall > 0 {
			stalled++
		}
		const bodies = 12
		ends := longest(s, d, bodies)
		if want := (ends[bodies-1] - ends[3]) / (bodies - 4); got.Iteration != want {
			t.Errorf("%s: iteration %v, over %d bodies %v", s.name, got.Iteration, bodies, want)
		}
	}
	if stalled < int(seeds)/2 {
		t.Errorf("%d of %d programs stall", stalled, seeds)
	}
}

// TestTimeSnapshot compares the cost of a snapshot with a slow oracle: the longest path through many bodies, with a
// snapshot in the place of one of them and without.
func TestTimeSnapshot(t *testing.T) {
	seeds := long.Rounds(50, 200)
	costly, free := 0, 0
	for seed := range seeds {
		s := random(t, seed, graphtest.Options{})
		if len(s.c.Snapshot.Commands) == 0 {
			continue
		}
		d := plantest.Durations(len(s.p.Steps), rand.New(rand.NewPCG(seed, 9)))
		d.Out.Rate /= 50
		got := program.TimeSnapshot(s.c, d)
		run := slices.Repeat([]*program.Section{&s.c.Body}, 24)
		without := longestOf(s, d, run)
		run[12] = &s.c.Snapshot
		with := longestOf(s, d, run)
		if want := with[23] - without[23]; got != want {
			t.Errorf("%s: a snapshot costs %v, over %d iterations %v", s.name, got, len(run), want)
		}
		if got > 0 {
			costly++
		} else {
			free++
		}
	}
	if t.Logf("%d snapshots cost time, %d do not", costly, free); costly < int(seeds)/40 || free < int(seeds)/40 {
		t.Errorf("%d snapshots cost time, %d do not", costly, free)
	}
}

// TimeHome is the epilogue, the copy on the host, what is waited for of the prologue, and the gap in what iterations
// overlap.
func TestTimeHome(t *testing.T) {
	for seed := range uint64(100) {
		s := random(t, seed, graphtest.Options{})
		d := plantest.Durations(len(s.p.Steps), rand.New(rand.NewPCG(seed, 12)))
		_, size := program.SnapshotSlots(s.g)
		least := d.Host.Time(size)
		for _, c := range s.c.Epilogue.Commands {
			least += d.Out.Time(c.Bytes)
		}
		most := least
		for _, c := range s.c.Prologue.Commands {
			most += d.In.Time(c.Bytes)
		}
		for i := range s.c.Body.Commands {
			switch c := &s.c.Body.Commands[i]; c.Kind {
			case program.Kernel, program.Reduce:
				most += d.Steps[c.Slot]
			case program.Out:
				most += d.Out.Time(c.Bytes)
			case program.In:
				most += d.In.Time(c.Bytes)
			}
		}
		if got := program.TimeHome(s.c, d); got < least || got > most {
			t.Errorf("%s: the way through Home costs %v, want %v to %v", s.name, got, least, most)
		}
	}
}

// longest returns the end of the last kernel of each body: the longest path to it.
func longest(s subject, d program.Durations, bodies int) []time.Duration {
	return longestOf(s, d, slices.Repeat([]*program.Section{&s.c.Body}, bodies))
}

// longestOf returns the end of the last kernel of each of some iterations.
func longestOf(s subject, d program.Durations, iterations []*program.Section) []time.Duration {
	p := *s.c
	p.Prologue, p.Epilogue = program.Section{}, program.Section{}
	nodes := plantest.Unroll(s.g, &p, iterations)
	ends := make([]time.Duration, len(nodes))
	var last []time.Duration
	iteration, left := -1, 0
	for i, n := range nodes {
		for left == 0 {
			iteration++
			left = len(iterations[iteration].Commands)
		}
		left--
		for _, j := range n.Before {
			ends[i] = max(ends[i], ends[j])
		}
		switch n.Cmd.Kind {
		case program.Kernel, program.Reduce:
			ends[i] += d.Steps[n.Cmd.Slot]
		case program.Keep:
			ends[i] += d.Host.Time(n.Cmd.Bytes)
		case program.Out, program.Save:
			ends[i] += d.Out.Time(n.Cmd.Bytes)
		case program.In:
			ends[i] += d.In.Time(n.Cmd.Bytes)
		}
		if n.Cmd.Stream == program.Stream(program.Compute) {
			last = append(last[:iteration], ends[i])
		}
	}
	return last
}
