package compile_test

import (
	"errors"
	"slices"
	"testing"

	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan/plantest"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// TestWaitsNameEarlierCommands shows the form of waits: at most one per lane, none on the own lane, and every one on a
// command that stands earlier in the list: of this body, of the one before, or of the prologue.
func TestWaitsNameEarlierCommands(t *testing.T) {
	all := subjects(t)
	for seed := range uint64(500) {
		all = append(all, random(t, seed, graphtest.Options{}))
	}
	for _, s := range all {
		for _, section := range []*program.Section{&s.c.Prologue, &s.c.Epilogue} {
			for _, cmd := range section.Commands {
				if len(cmd.Waits) > 0 {
					t.Fatalf("%s: a command of prologue or epilogue waits: %+v", s.name, cmd)
				}
			}
		}
		before := slices.Clone(s.c.Body.Counts)
		before[onEntry] = s.c.Prologue.Counts[onEntry]
		var so [streams]int
		for i, cmd := range s.c.Body.Commands {
			var waits [streams]bool
			for _, w := range cmd.Waits {
				if w.Stream == cmd.Stream || waits[w.Stream] || w.Count > so[w.Stream] ||
					w.Count <= -before[w.Stream] {
					t.Fatalf("%s: command %d waits for %v with %v issued", s.name, i, cmd.Waits, so)
				}
				waits[w.Stream] = true
			}
			so[cmd.Stream]++
		}
		if !slices.Equal(so[:len(s.c.Streams)], s.c.Body.Counts) {
			t.Fatalf("%s: counts %v, want %v", s.name, s.c.Body.Counts, so)
		}
	}
}

// TestNoWaitIsNeedless removes every wait of programs, one at a time. Check rejects what is left, or the wait is one
// that the plan asks for: a move waits for the step that it follows, the step after a Sync copy waits for the copy, and
// the step after one with Join for the copies of moves before that.
func TestNoWaitIsNeedless(t *testing.T) {
	all := subjects(t)
	seeds := long.Rounds(20, 200)
	for seed := range seeds {
		all = append(all, random(t, 100+seed, graphtest.Options{Ops: 16}))
	}
	var races, triggers, syncs, joins int
	for _, s := range all {
		for i, cmd := range s.c.Body.Commands {
			for k, w := range cmd.Waits {
				bad := s
				bad.c = plantest.Clone(s.c)
				left := &bad.c.Body.Commands[i]
				left.Waits = slices.Delete(left.Waits, k, k+1)
				switch err := check(bad); {
				case errors.Is(err, proof.ErrRace):
					races++
				case err != nil:
					t.Fatalf("%s: without a wait: %v", s.name, err)
				case isTrigger(s, i, w):
					triggers++
				case isSync(s, i, w):
					syncs++
				case isJoin(s, i, w):
					joins++
				default:
					t.Fatalf("%s: command %d (%v %v) does not need to wait for %v\n%s", s.name, i, cmd.Stream, cmd.Kind,
						w, s.c.Text())
				}
			}
		}
	}
	t.Logf("waits: %d against races, %d triggers, %d for Sync, %d for Join", races, triggers, syncs, joins)
	if races == 0 || triggers == 0 || syncs == 0 || joins == 0 {
		t.Errorf("waits: %d against races, %d triggers, %d for Sync, %d for Join; want some of each", races, triggers,
			syncs, joins)
	}
}

// isTrigger reports whether a move waits for the last compute command up to the step that it follows.
func isTrigger(s subject, i int, w program.Point) bool {
	cmd := s.c.Body.Commands[i]
	count := 0
	for _, c := range s.c.Body.Commands[:i] {
		if c.Stream == onCompute {
			count++
		}
	}
	return (cmd.Kind == program.Out || cmd.Kind == program.In) && w.Stream == onCompute && w.Count == count
}

// isSync reports whether a kernel waits for a copy that its plan calls synchronous and that follows the step before.
func isSync(s subject, i int, w program.Point) bool {
	cmd := s.c.Body.Commands[i]
	slot := cmd.Slot - 1
	if w.Count <= 0 { // in the body before
		w.Count += s.c.Body.Counts[w.Stream]
		slot += len(s.p.Steps)
	}
	n := s.nth(w.Stream, w.Count)
	if !cmd.Kind.Executes() || n < 0 {
		return false
	}
	copied := s.c.Body.Commands[n]
	for _, m := range s.p.Moves {
		if m.Sync && m.Storage == copied.Storage && copied.Slot == slot {
			return true
		}
	}
	return false
}

// isJoin reports whether a kernel waits for the last copy of a stream that stands before the step before it, and that
// step joins.
func isJoin(s subject, i int, w program.Point) bool {
	cmd := s.c.Body.Commands[i]
	before := (cmd.Slot + len(s.p.Steps) - 1) % len(s.p.Steps)
	if !cmd.Kind.Executes() || !s.p.Steps[before].Join {
		return false
	}
	count := 0
	for _, c := range s.c.Body.Commands {
		if c.Kind.Executes() && c.Slot == before {
			break
		}
		if c.Stream == w.Stream {
			count++
		}
	}
	if cmd.Slot == 0 { // in the body before
		count -= s.c.Body.Counts[w.Stream]
	}
	return w.Count == count
}
