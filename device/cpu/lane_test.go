package cpu

import (
	"strings"
	"testing"
	"time"

	"tensile/plan/program"
)

// after is the point that is reached when the first n commands on a unit have ended.
func after(u program.Unit, n int) program.Point {
	return program.Point{Stream: program.Stream(u), Count: n}
}

// A copy that nothing waits for is held for as long as it says.
func TestHold(t *testing.T) {
	d := open(t)
	b := lay(t, d, nil)
	defer b.close()
	b.reserve(4 * elements)
	const hold = 3 * time.Millisecond
	b.issue(section(b.in(parameter, 4, hold)), 0, true)
	next(t, d, 1, b)
	if e := b.events[0]; e.Start-e.Ready < hold || e.End < e.Start {
		t.Errorf("held from %v to %v, want %v at least", e.Ready, e.Start, hold)
	}
}

// A hold of a day ends when a command of another lane waits for the copy, for one behind it, or for one that waits.
func TestHoldIsCutShort(t *testing.T) {
	const day = 24 * time.Hour
	tests := map[string]func(b *bed) []program.Command{
		"for the copy": func(b *bed) []program.Command {
			return []program.Command{b.in(parameter, 4, day), load(after(program.CopyIn, 1))}
		},
		"for a copy behind it": func(b *bed) []program.Command {
			return []program.Command{b.in(parameter, 4, day), b.in(parameter, 4, day), load(after(program.CopyIn, 2))}
		},
		"for a copy that waits for it": func(b *bed) []program.Command {
			return []program.Command{b.in(parameter, 4, day), b.out(parameter, 4, 0, after(program.CopyIn, 1)),
				load(after(program.CopyOut, 1))}
		},
		"for copies of both lanes": func(b *bed) []program.Command {
			return []program.Command{b.in(parameter, 4, day), b.out(parameter, 4, day), load(after(program.CopyOut, 1),
				after(program.CopyIn, 1))}
		},
	}
	for name, commands := range tests {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			b := lay(t, d, nil)
			defer b.close()
			b.reserve(4 * elements)
			s := section(commands(b)...)
			b.issue(s, 0, true)
			next(t, d, len(s.Commands), b)
		})
	}
	t.Run("by a drain", func(t *testing.T) {
		d := open(t)
		b := lay(t, d, nil)
		defer b.close()
		b.reserve(4 * elements)
		b.issue(section(b.in(parameter, 4, day)), 0, true)
		b.issue(section(load()), 0, true)
		next(t, d, 2, b)
	})
}

// The compute lane waits for a copy out that cannot start yet, and for a copy in that is held: that one goes at once,
// not when the copy out has ended.
func TestHoldsAreCutShortTogether(t *testing.T) {
	d := open(t)
	copied := make(chan struct{})
	b := lay(t, d, map[int]func(){1: func() { <-copied }})
	defer b.close()
	b.reserve(4 * elements)
	last := program.Command{Kind: program.Poison, Bytes: 4,
		Waits: []program.Point{after(program.CopyOut, 1), after(program.CopyIn, 1)}}
	b.issue(section(load(), b.out(parameter, 4, 0, after(program.Host, 1)), b.in(parameter, 4, 24*time.Hour), last), 0,
		true)
	next(t, d, 1, b)
	if first := b.events[0].Index; first != 2 {
		t.Errorf("command %d ended first, want the copy in", first)
	}
	close(copied)
	next(t, d, 3, b)
}

// Waits count from the issue of their section, and reach into the run before.
func TestWaits(t *testing.T) {
	d := open(t)
	var loaded []int
	b := lay(t, d, map[int]func(){1: func() { loaded = append(loaded, 1) }, 2: func() { loaded = append(loaded, 2) }})
	defer b.close()
	b.reserve(4 * elements)
	s := section(load(after(program.CopyIn, 0)), b.in(parameter, 4, 0, after(program.Host, 1)))
	const runs = 50
	for i := range runs {
		b.issue(s, i, i == 0)
	}
	next(t, d, 2*runs, b)
	for i, e := range b.events {
		if e.Index != i%2 || e.Iteration != i/2 {
			t.Fatalf("event %d is of command %d in iteration %d", i, e.Index, e.Iteration)
		}
		if i > 0 && e.Ready < b.events[i-1].End {
			t.Fatalf("command %d was ready at %v, the one before it ended at %v", i, e.Ready, b.events[i-1].End)
		}
	}
	if len(loaded) != 2 || loaded[0] != 1 {
		t.Errorf("loads %v, want 1 and 2", loaded)
	}
}

// Events come in the order in which commands ended, those of two jobs too.
func TestOrderOfEvents(t *testing.T) {
	d := open(t)
	a, b := lay(t, d, nil), lay(t, d, nil)
	defer a.close()
	defer b.close()
	const runs = 500
	var commands []program.Command
	for range 4 {
		commands = append(commands, load(), a.in(parameter, 4, 0), a.out(parameter, 4, 0))
	}
	for _, x := range []*bed{a, b} {
		x.reserve(4 * elements)
		for i := range runs {
			x.issue(section(commands...), i, false)
		}
	}
	var last time.Duration
	for left := 2 * runs * len(commands); left > 0; {
		events, err := d.Next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.End < last {
				t.Fatalf("an event of %v came after one of %v", e.End, last)
			}
			last = e.End
		}
		left -= len(events)
	}
}

// With commands in flight, memory may not be touched from outside.
func TestInFlight(t *testing.T) {
	d := open(t)
	release := make(chan struct{})
	b := lay(t, d, map[int]func(){1: func() { <-release }})
	defer b.close()
	b.issue(section(load()), 0, true)
	for what, f := range map[string]func(){
		"Host":    func() { b.Host(parameter) },
		"Reserve": func() { _ = b.Reserve(0) },
	} {
		func() {
			defer func() {
				text, _ := recover().(string)
				if !strings.HasPrefix(text, "cpu: "+what+` of job "bed"`) {
					t.Errorf("%s with a command in flight: panic %q", what, text)
				}
			}()
			f()
		}()
	}
	close(release)
	next(t, d, 1, b)
	if n := len(b.Host(parameter)); n != elements {
		t.Errorf("Host returns %d elements, want %d", n, elements)
	}
}
