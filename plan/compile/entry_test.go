package compile_test

import (
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/models/graphtest"
	"tensile/plan/plantest"
	"tensile/plan/program"
)

// firstUse returns the first step that touches a storage or that a move of it follows.
func (s subject) firstUse(storage graph.StorageID) int {
	slot := 0
	for slot < len(s.p.Steps) && !slices.Contains(s.g.Touches(s.p.Steps[slot].Op), storage) {
		slot++
	}
	for _, m := range s.p.Moves {
		if m.Storage == storage {
			slot = min(slot, m.After)
		}
	}
	return slot
}

// TestPrologueByNeed shows that the prologue copies first what the body uses first, and that a command of the first
// body waits for no later copy of it than the last whose bytes it or a command before it uses.
func TestPrologueByNeed(t *testing.T) {
	all := subjects(t)
	for seed := range uint64(300) {
		all = append(all, random(t, seed, graphtest.Options{}))
	}
	waits := 0
	for _, s := range all {
		copies := s.c.Prologue.Commands
		for nth := 1; nth < len(copies); nth++ {
			if a, b := copies[nth-1].Storage, copies[nth].Storage; s.firstUse(a) > s.firstUse(b) {
				t.Fatalf("%s: %s, used by step %d, is copied after %s of step %d", s.name, s.g.Storages[b].Name,
					s.firstUse(b),
					s.g.Storages[a].Name, s.firstUse(a))
			}
		}
		needed := 0 // copies up to the last that a command so far uses
		for i := range s.c.Body.Commands {
			cmd := &s.c.Body.Commands[i]
			for nth := range copies {
				if plantest.Conflict(plantest.Spans(s.g, s.c, &copies[nth]), plantest.Spans(s.g, s.c, cmd)) {
					needed = max(needed, nth+1)
				}
			}
			for _, w := range cmd.Waits {
				if w.Stream != onEntry {
					continue
				}
				if waits++; len(copies)+w.Count > needed {
					t.Fatalf("%s: command %d waits for %d copies of the prologue, %d are used by then\n%s", s.name, i,
						len(copies)+w.Count, needed, s.c.Text())
				}
			}
		}
	}
	if waits == 0 {
		t.Error("no command waits for the prologue")
	}
}

// The first kernels run while the prologue goes on: a lenet whose first layer has arrived begins.
func TestBodyBeginsInPrologue(t *testing.T) {
	s := network(t, "lenet", 100)
	entry := func(copies int) *program.Lanes {
		lanes := program.NewLanes(s.c.Streams)
		lanes.Issue(&s.c.Prologue, 0, len(s.c.Prologue.Commands), 0, true)
		lanes.Issue(&s.c.Body, 0, len(s.c.Body.Commands), 0, false)
		for range copies {
			lanes.End(onEntry)
		}
		for lanes.Ready(onHost) {
			lanes.End(onHost)
		}
		for lanes.Ready(onCopyIn) {
			lanes.End(onCopyIn)
		}
		return lanes
	}
	if entry(1).Ready(onCompute) {
		t.Error("the first kernel begins without its bias")
	}
	if lanes := entry(2); !lanes.Ready(onCompute) {
		w, ended := lanes.Blocker(onCompute)
		t.Errorf("the first kernel waits for %v, with %d ended, though its weight and bias are there", w, ended)
	}
}

// A program's way through Home costs less than its copies alone where the first iteration hides some of them.
func TestPrologueHides(t *testing.T) {
	s := network(t, "lenet", 100)
	d := program.Durations{Steps: slices.Repeat([]time.Duration{time.Second}, len(s.p.Steps))}
	d.In.Rate = 1e6
	var copies time.Duration
	for _, cmd := range s.c.Prologue.Commands {
		copies += d.In.Time(cmd.Bytes)
	}
	if got := program.TimeHome(s.c, d); got >= copies {
		t.Errorf("the way through Home costs %v, the copies of the prologue alone take %v", got, copies)
	}
}
