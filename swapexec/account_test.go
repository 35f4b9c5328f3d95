package swapexec

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/device"
	_ "tensile/internal/long" // the flag -long
	"tensile/plan/program"
)

// timeline writes events from start and end times in list order.
func timeline(s *program.Section, times ...time.Duration) []device.Event {
	events := make([]device.Event, len(s.Commands))
	for i := range events {
		events[i] = device.Event{Section: s, Index: i, Ready: times[2*i], Start: times[2*i], End: times[2*i+1]}
	}
	return events
}

// A copy that the compute lane waits for is passive and gets the stall; one that came in time gets none.
func TestPassiveAndPrefetched(t *testing.T) {
	s := section("kernel", "in", "in", "kernel", "out", "kernel", "poison")
	s.Commands[3].Waits = []program.Point{{Stream: program.Stream(program.CopyIn), Count: 1}}
	s.Commands[5].Waits = []program.Point{{Stream: program.Stream(program.CopyIn), Count: 2}}
	s.Commands[6].Waits = []program.Point{{Stream: program.Stream(program.CopyOut), Count: 1}}
	events := timeline(s, 0, 10, 2, 9, 9, 25, 10, 20, 20, 40, 25, 30, 40, 41)
	events[1].Ready = 1 // held until 2
	want := []Copy{
		{Kind: program.In, Storage: 1, Slot: 1, Bytes: 2, Ready: 1, Start: 2, End: 9},
		{Kind: program.In, Storage: 2, Slot: 2, Bytes: 4, Ready: 9, Start: 9, End: 25, Stall: 5},
		{Kind: program.Out, Storage: 4, Slot: 4, Bytes: 16, Ready: 20, Start: 20, End: 40, Stall: 10},
	}
	if diff := cmp.Diff(want, Account(s, events, nil, nil)); diff != "" {
		t.Errorf("copies (-want +got):\n%s", diff)
	}
}

// Of several copies the last one has the stall, whichever lane it is on; the loader has it for no copy.
func TestBlame(t *testing.T) {
	s := section("load", "in", "out", "kernel")
	for in, want := range map[time.Duration][]time.Duration{40: {35, 0}, 20: {0, 25}} {
		s.Commands[3].Waits = []program.Point{{Stream: program.Stream(program.CopyOut), Count: 1},
			{Stream: program.Stream(program.CopyIn), Count: 1}, {Stream: program.Stream(program.Host), Count: 1}}
		before := timeline(s, 0, 0, 0, 0, 0, 0, 0, 5)
		start := max(in, 30)
		copies := Account(s, timeline(s, 5, 10, 10, in, 10, 30, start, start+1), before, nil)
		if got := []time.Duration{copies[0].Stall, copies[1].Stall}; !cmp.Equal(got, want) {
			t.Errorf("in ends at %d: stalls %v, want %v", in, got, want)
		}
		late := Account(s, timeline(s, 5, 50, 10, in, 10, 30, 50, 51), before, nil)
		if late[0].Stall+late[1].Stall != 0 {
			t.Errorf("in ends at %d, load at 50: stalls %v and %v of the copies", in, late[0].Stall, late[1].Stall)
		}
	}
}

// What the compute lane stands still for at first is known only if there was a body before. The stall lasts until the
// command starts, which may be a moment after the copy has ended.
func TestFirstCommand(t *testing.T) {
	s := section("in", "kernel")
	s.Commands[1].Waits = []program.Point{{Stream: program.Stream(program.CopyIn), Count: 1}}
	before, events := timeline(s, 0, 5, 5, 10), timeline(s, 5, 14, 16, 20)
	if got := Account(s, events, before, nil)[0].Stall; got != 6 {
		t.Errorf("after another body: stall %v, want 6ns", got)
	}
	if got := Account(s, events, before, []time.Duration{0, 2})[0].Stall; got != 4 {
		t.Errorf("after another body, 2ns of it with nothing issued: stall %v, want 4ns", got)
	}
	if got := Account(s, events, nil, nil)[0].Stall; got != 0 {
		t.Errorf("after a drain: stall %v, want none", got)
	}
}

// TestAccountAgainstSlow replays three bodies of random sections, waits on the body before among them. Whoever ended
// when a compute command started, after the one before it, was the reason: with long random durations there is one.
func TestAccountAgainstSlow(t *testing.T) {
	var blamed, elsewhere int
	for seed := range uint64(8000) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := randomSection(r)
		w := &replay{}
		var before []device.Event
		for range 3 {
			events := w.body(r, s)
			want := make([]time.Duration, len(s.Commands))
			var stood time.Duration
			free := time.Duration(-1)
			if before != nil {
				free = w.previous
			}
			for i, c := range s.Commands {
				if c.Kind.Unit() != program.Compute {
					continue
				}
				if free >= 0 && events[i].Start > free {
					stood += events[i].Start - free
					for j, other := range s.Commands {
						if isCopy(&other) && events[j].End == events[i].Start {
							want[j] += events[i].Start - free
						}
					}
				}
				free = events[i].End
			}
			w.previous = free
			copies := Account(s, events, before, nil)
			for i, c := range s.Commands {
				if !isCopy(&c) {
					continue
				}
				got := copies[0]
				copies = copies[1:]
				if got.Stall != want[i] || got.Storage != c.Storage || got.Bytes != c.Bytes ||
					got.End != events[i].End {
					t.Fatalf("seed %d: command %d is accounted as %+v, want a stall of %v", seed, i, got, want[i])
				}
				stood -= want[i]
				if want[i] > 0 {
					blamed++
				}
			}
			if stood > 0 {
				elsewhere++
			}
			before = events
		}
	}
	if blamed < 1000 || elsewhere < 1000 {
		t.Errorf("%d stalls of copies, %d for other reasons: too few to show much", blamed, elsewhere)
	}
}

// randomSection has up to 12 commands that wait for earlier ones, of this or the previous run. The first is a kernel.
func randomSection(r *rand.Rand) *program.Section {
	words := []string{"kernel"}
	for range r.IntN(12) {
		words = append(words, []string{"kernel", "in", "out", "load", "poison"}[r.IntN(5)])
	}
	s := section(words...)
	var so [program.Units]int
	for i := range s.Commands {
		for l := range program.Stream(program.Units) {
			if l != s.Commands[i].Stream && r.IntN(3) == 0 {
				count := so[l] - r.IntN(s.Counts[l]+1)
				s.Commands[i].Waits = append(s.Commands[i].Waits, program.Point{Stream: l, Count: count})
			}
		}
		so[s.Commands[i].Stream]++
	}
	return s
}

// replay carries out commands in list order: each starts when its lane is free and its waits have ended.
type replay struct {
	ends     [program.Units][]time.Duration
	previous time.Duration // end of the last compute command of the body before
}

func (w *replay) body(r *rand.Rand, s *program.Section) []device.Event {
	events := make([]device.Event, len(s.Commands))
	var origin [program.Units]int
	for l := range origin {
		origin[l] = len(w.ends[l])
	}
	for i, c := range s.Commands {
		var start time.Duration
		if n := len(w.ends[c.Stream]); n > 0 {
			start = w.ends[c.Stream][n-1]
		}
		for _, p := range c.Waits {
			if at := origin[p.Stream] + p.Count; at > 0 {
				start = max(start, w.ends[p.Stream][at-1])
			}
		}
		end := start + 1 + time.Duration(r.Int64N(1e12))
		events[i] = device.Event{Section: s, Index: i, Ready: start, Start: start, End: end}
		w.ends[c.Stream] = append(w.ends[c.Stream], end)
	}
	return events
}
