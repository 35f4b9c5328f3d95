package program

import (
	"math/rand/v2"
	"testing"
	"time"
)

// issuedCommand is a command as the slow oracle of Lanes knows it.
type issuedCommand struct {
	cmd     *Command
	section int   // which of those issued
	after   []int // issued commands that must have ended
	last    bool  // of its section in its stream
	ended   bool
}

// history is everything that was ever issued.
type history struct {
	commands []*issuedCommand
	starts   [][]int // per section and stream: how many of the stream were issued before
	drained  []int   // per section: how many commands were issued when the latest drain came
}

// issue adds a part of a section. The oracle names every command that one waits for; that is all that it knows of
// counts.
func (h *history) issue(s *Section, from, to, streams int, drain bool) {
	of := make([][]int, streams) // issued commands per stream
	for i, c := range h.commands {
		of[c.cmd.Stream] = append(of[c.cmd.Stream], i)
	}
	floor := 0
	if n := len(h.drained); n > 0 {
		floor = h.drained[n-1]
	}
	if from == 0 {
		if drain {
			floor = len(h.commands)
		}
		h.drained = append(h.drained, floor)
		starts := make([]int, streams)
		for i := range of {
			starts[i] = len(of[i])
		}
		h.starts = append(h.starts, starts)
	}
	starts := h.starts[len(h.starts)-1]
	left := make([]int, streams)
	for _, c := range s.Commands[from:to] {
		left[c.Stream]++
	}
	for i := from; i < to; i++ {
		c := &issuedCommand{cmd: &s.Commands[i], section: len(h.starts) - 1}
		for k := range floor {
			c.after = append(c.after, k)
		}
		c.after = append(c.after, of[c.cmd.Stream]...)
		for _, w := range c.cmd.Waits {
			for k := range min(starts[w.Stream]+w.Count, len(of[w.Stream])) {
				c.after = append(c.after, of[w.Stream][k])
			}
		}
		left[c.cmd.Stream]--
		c.last = left[c.cmd.Stream] == 0
		of[c.cmd.Stream] = append(of[c.cmd.Stream], len(h.commands))
		h.commands = append(h.commands, c)
	}
}

// ready returns the first command of a stream that has not ended if it may start.
func (h *history) ready(s Stream) *issuedCommand {
	for _, c := range h.commands {
		if c.cmd.Stream != s || c.ended {
			continue
		}
		for _, k := range c.after {
			if !h.commands[k].ended {
				return nil
			}
		}
		return c
	}
	return nil
}

// randomSectionOf makes a section whose waits name earlier commands, or ones of the previous run.
func randomSectionOf(r *rand.Rand, streams int) *Section {
	s := &Section{Counts: make([]int, streams)}
	for range r.IntN(9) {
		c := Command{Stream: Stream(r.IntN(streams))}
		for other := range streams {
			if r.IntN(3) == 0 {
				c.Waits = append(c.Waits, Point{Stream(other), r.IntN(s.Counts[other]+4) - 3})
			}
		}
		for i := range c.Waits { // r.IntN may have named one that is yet to come
			c.Waits[i].Count = min(c.Waits[i].Count, s.Counts[c.Waits[i].Stream])
		}
		s.Commands = append(s.Commands, c)
		s.Counts[c.Stream]++
	}
	return s
}

// Random sections are issued in random parts, with drains and without, while commands end in a random order. Which
// commands may start is what the slow oracle says, and everything ends.
func TestLanes(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 15))
		streams := 1 + r.IntN(5)
		l := NewLanes(make([]Unit, streams))
		h := &history{}
		sections := []*Section{randomSectionOf(r, streams), randomSectionOf(r, streams)}
		var s *Section
		var from int
		var drain bool
		for issued := 0; issued < 12 || !l.Idle(); {
			if issued < 12 && r.IntN(4) == 0 {
				if from == 0 {
					s, drain = sections[r.IntN(2)], r.IntN(3) == 0
				}
				to := len(s.Commands)
				if r.IntN(2) == 0 && from < to {
					to = from + 1 + r.IntN(to-from)
				}
				l.Issue(s, from, to, issued, drain)
				h.issue(s, from, to, streams, drain)
				if from = to; from == len(s.Commands) {
					from = 0
					issued++
				}
			}
			var choices []Stream
			for s := range Stream(streams) {
				want := h.ready(s)
				if l.Ready(s) != (want != nil) {
					t.Fatalf("seed %d: the head of stream %d is ready: %t", seed, s, l.Ready(s))
				}
				if want == nil {
					continue
				}
				run, index := l.Head(s)
				if &run.Section.Commands[index] != want.cmd || run.Iteration != want.section || l.Last(s) != want.last {
					t.Fatalf("seed %d: the head of stream %d is command %d of issue %d, last %t; want %+v", seed, s,
						index, run.Iteration, l.Last(s), want)
				}
				choices = append(choices, s)
			}
			if len(choices) == 0 {
				if !l.Idle() {
					t.Fatalf("seed %d: nothing is ready", seed)
				}
				continue
			}
			ends := choices[r.IntN(len(choices))]
			h.ready(ends).ended = true
			l.End(ends)
		}
	}
}

// A blocked head names a point that it waits for, counted in its own section; a drain names what came before.
func TestLanesBlocker(t *testing.T) {
	l := NewLanes([]Unit{Compute, CopyIn})
	first := &Section{Commands: []Command{{Kind: Kernel}, {Kind: In, Stream: 1, Waits: []Point{{0, 1}}}},
		Counts: []int{1, 1}}
	l.Issue(first, 0, len(first.Commands), 0, false)
	l.Issue(first, 0, len(first.Commands), 1, true)
	for _, want := range []struct {
		stream Stream
		at     Point
		ended  int
	}{{1, Point{0, 1}, 0}, {0, Point{1, 0}, -1}, {1, Point{0, 1}, 0}} {
		if at, ended := l.Blocker(want.stream); l.Ready(want.stream) || at != want.at || ended != want.ended {
			t.Errorf("stream %d is ready: %t; it waits for %v with %d ended, want %v with %d", want.stream,
				l.Ready(want.stream), at, ended, want.at, want.ended)
		}
		if want.stream == 1 {
			l.End(0)
		} else {
			l.End(1)
		}
	}
	if !l.Ready(1) || l.Ready(0) {
		t.Errorf("in the end stream 1 is ready: %t, stream 0: %t", l.Ready(1), l.Ready(0))
	}
}

// A copy is hurried when a head waits for it, with those before it, and not before it has been triggered.
func TestLanesHurry(t *testing.T) {
	const hold = time.Hour
	l := NewLanes([]Unit{Compute, CopyOut, Host})
	l.Issue(&Section{Commands: []Command{{Kind: Kernel}, {Kind: Out, Stream: 1, Hold: hold},
		{Kind: Out, Stream: 1, Hold: hold, Waits: []Point{{0, 1}}},
		{Kind: Read, Stream: 2, Waits: []Point{{1, 2}}}}, Counts: []int{1, 2, 1}}, 0, 4, 0, true)
	if l.Hurry(2) || l.Hurried(1) {
		t.Error("the reader hurries a copy that waits for a kernel")
	}
	l.End(0)
	if !l.Hurry(2) || !l.Hurried(1) {
		t.Error("the reader does not hurry the copies that it waits for")
	}
	if l.Hurry(2) {
		t.Error("the same pauses end twice")
	}
	l.End(1)
	if !l.Hurried(1) {
		t.Error("the second copy is not hurried")
	}
	l.End(1)
	if l.Hurried(1) || l.Hurry(2) {
		t.Error("there is nothing left to hurry")
	}
}

// A part that does not follow what was issued is a mistake of the caller.
func TestLanesParts(t *testing.T) {
	one := &Section{Commands: make([]Command, 3), Counts: []int{3}}
	other := &Section{Commands: make([]Command, 3), Counts: []int{3}}
	type part struct {
		s        *Section
		from, to int
	}
	for name, parts := range map[string][]part{
		"it leaves commands out":         {{one, 0, 1}, {one, 2, 3}},
		"it comes twice":                 {{one, 0, 1}, {one, 0, 2}},
		"its section did not begin":      {{one, 1, 3}},
		"it is of another section":       {{one, 0, 1}, {other, 1, 2}},
		"another section begins":         {{one, 0, 2}, {other, 0, 3}},
		"its section was issued whole":   {{one, 0, 3}, {one, 3, 3}},
		"it is empty":                    {{one, 0, 1}, {one, 1, 1}},
		"it ends after the last command": {{one, 0, 4}},
	} {
		func() {
			l := NewLanes([]Unit{Compute})
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it is taken", name)
				}
			}()
			for _, p := range parts {
				l.Issue(p.s, p.from, p.to, 0, false)
			}
		}()
	}
}
