package timeline

import (
	"math/rand/v2"
	"testing"
	"time"

	"tensile/device"
	"tensile/executor"
	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
	"tensile/plan/program"
)

// Of a stream's commands those of the newest section are known, and the last one of all; nothing else is kept.
func TestTrim(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 51))
		var e ended
		var all []Cause
		for section := range 12 {
			n := rng.IntN(5)
			if seed%3 == 0 && section > 0 {
				n = 0 // as of what a prologue alone has
			}
			before := len(all)
			for span := range n {
				all = append(all, Cause{section, span})
				e.add(all[len(all)-1], time.Duration(len(all)))
				for count := before; count <= len(all); count++ {
					known(t, seed, &e, all, count)
				}
			}
			e.trim(n)
			for count := range len(all) + 2 {
				kept := count > len(all)-max(n, 1) && count <= len(all) && count > 0
				if _, _, ok := e.commandAt(count); ok != kept {
					t.Fatalf("seed %d: after %d of %d commands in a section, %d is known: %v", seed, n, len(all),
						count, ok)
				}
				if kept {
					known(t, seed, &e, all, count)
				}
			}
		}
	}
}

// known wants the command with which a stream came to a count, unless it came to none.
func known(t *testing.T, seed uint64, e *ended, all []Cause, count int) {
	t.Helper()
	if count == 0 {
		return
	}
	if by, end, ok := e.commandAt(count); !ok || by != all[count-1] || end != time.Duration(count) {
		t.Fatalf("seed %d: command %d of %d is %v, ended at %v, known: %v; want %v", seed, count, len(all), by, end, ok,
			all[count-1])
	}
}

// A kernel that waits for the copy of the section before stalls until that has ended, also where the section between
// had none.
func TestStallsForEarlier(t *testing.T) {
	const compute, out = program.Stream(program.Compute), program.Stream(program.CopyOut)
	g := &graph.Graph{Ops: []graph.Op{{Name: "op"}}, Storages: []graph.Storage{{Name: "storage"}}}
	kernel := program.Command{Kind: program.Kernel, Stream: compute, Waits: []program.Point{{Stream: out}}}
	copies := program.Section{Counts: []int{1, 1},
		Commands: []program.Command{kernel, {Kind: program.Out, Stream: out}}}
	computes := program.Section{Commands: []program.Command{kernel}, Counts: []int{1, 0}}
	h := &history{streams: make([]ended, 2)}
	for n, c := range []struct {
		section *program.Section
		stall   time.Duration
		after   *Cause
		copied  time.Duration // when its copy ends
	}{
		{&copies, 1, nil, 101}, // what was before is not known
		{&copies, 2, &Cause{0, 1}, 350},
		{&computes, 3, &Cause{1, 1}, 0},
		{&computes, 4, &Cause{1, 1}, 0},
		{&computes, 5, nil, 0}, // it had ended
	} {
		begin := 100 * time.Duration(n)
		did := &executor.Trace{Program: &program.Program{Graph: g}, Section: c.section, Begin: begin,
			Gates: make([]time.Duration, 2)}
		did.Events = []device.Event{{Start: begin + c.stall, End: begin + 50}, {Start: begin + 50, End: c.copied}}
		did.Events = did.Events[:len(c.section.Commands)]
		got := h.spans(did, 0)[0]
		h.sections++
		if got.Stall != c.stall || (got.After == nil) != (c.after == nil) || c.after != nil && *got.After != *c.after {
			t.Errorf("section %d: a stall of %v after %v, want %v after %v", n, got.Stall, got.After, c.stall, c.after)
		}
	}
	for i := range h.streams {
		if n := len(h.streams[i].newest); n != 1 {
			t.Errorf("of stream %d %d commands are kept, want the last one", i, n)
		}
	}
}
