package program

import (
	"testing"
	"time"

	"tensile/graph/cost"
	"tensile/plan"
)

// arriving is a prologue of copies that are due after some seconds, at a byte a second, and whose iteration has steps
// of ten seconds.
func arriving(a *Arrivals, due ...time.Duration) *Arrival {
	p := &Program{Plan: &plan.Plan{Made: []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second}}}
	for _, d := range due {
		p.Prologue.Commands = append(p.Prologue.Commands, Command{Kind: In, Bytes: 1, Due: d * time.Second})
	}
	x := NewArrival(p, cost.Link{Rate: 1})
	a.Issue(x, &p.Body)
	a.Issue(x, &p.Prologue)
	return x
}

func (x *Arrival) copied(a *Arrivals) {
	s := &x.program.Prologue
	a.Begin(x, s, &s.Commands[x.ended])
	a.End(x, s, &s.Commands[x.ended])
}

func TestArrivals(t *testing.T) {
	var a Arrivals
	far, near := arriving(&a, 5, 40), arriving(&a, 0, 15, 40)
	says := func(what string, x *Arrival, want bool) {
		t.Helper()
		if got := a.Yields(x, false); got != want {
			t.Errorf("%s: yields is %t", what, got)
		}
	}
	says("needed in 5 s, beside what is needed at once", far, true)
	says("needed at once", near, false)
	if a.Yields(far, true) {
		t.Error("a copy that its job stands still for waits")
	}
	near.copied(&a)
	says("needed in 5 s, beside what is needed in 15 s", far, false)
	says("needed in 15 s, beside what is needed in 5 s", near, true)
	far.copied(&a)
	says("needed in 15 s, beside what is needed in 40 s", near, false)

	// Three steps have ended, so that it is needed in 10 s, before what is needed in 15 s.
	body := &Section{}
	for slot := range 3 {
		a.End(far, body, &Command{Kind: Kernel, Slot: slot})
	}
	says("beside a job that has come far", near, true)
	says("of a job that has come far", far, false)
	near.copied(&a)

	// Both are needed in 40 s. One that takes a second begins after 39 at the latest; until then it leaves the link to
	// the copies of bodies.
	swap := &Command{Kind: In, Bytes: 1}
	a.Begin(far, body, swap)
	says("beside a copy of a body, with time left", far, true)
	a.End(far, body, &Command{Kind: Kernel, Slot: 0})
	says("beside a copy of a body, without", far, false)
	a.End(far, body, swap)
	far.copied(&a)
	says("alone", near, false)
	if near.copied(&a); len(a.all) > 0 {
		t.Errorf("%d prologues are under way after their last copies", len(a.all))
	}
}

// Of equal jobs that whose prologue was issued first goes first, and then they take turns.
func TestArrivalsEqual(t *testing.T) {
	var a Arrivals
	first, second := arriving(&a, 0, 7), arriving(&a, 0, 7)
	for range 2 {
		if a.Yields(first, false) || !a.Yields(second, false) {
			t.Fatal("the second goes first")
		}
		first.copied(&a)
		if a.Yields(second, false) {
			t.Fatal("the second waits for what is needed later, or for what has ended")
		}
		second.copied(&a)
	}
}

// A job that is closed holds nobody up.
func TestArrivalsClose(t *testing.T) {
	var a Arrivals
	gone, left := arriving(&a, 0, 1), arriving(&a, 20)
	a.Begin(gone, &Section{}, &Command{Kind: In})
	a.Close(gone)
	if a.Yields(left, false) {
		t.Error("it waits for a job that is closed")
	}
	a.Close(nil)
}

// A copy goes in time for those after it: 3 seconds of copies that are due after 10 begin after 7.
func TestArrivalLatest(t *testing.T) {
	var a Arrivals
	x := arriving(&a, 9, 10, 10)
	for i, want := range []time.Duration{7, 8, 9} {
		if x.latest[i] != want*time.Second {
			t.Errorf("copy %d begins after %v at the latest, want %d s", i, x.latest[i], want)
		}
	}
}

func TestAwaited(t *testing.T) {
	s := &Section{Counts: []int{1, 1, 1}, Commands: []Command{{Kind: In, Stream: 1},
		{Kind: Out, Stream: 2, Waits: []Point{{1, 1}}}, {Kind: Kernel, Stream: 0, Waits: []Point{{1, 1}}}}}
	l := NewLanes([]Unit{Compute, CopyIn, CopyOut})
	if l.Awaited(1) {
		t.Error("idle lanes wait")
	}
	l.Issue(s, 0, len(s.Commands), 0, false)
	if !l.Awaited(1) || l.Awaited(2) {
		t.Errorf("the kernel waits for the copy in: %t, out: %t", l.Awaited(1), l.Awaited(2))
	}
	if l.End(1); l.Awaited(1) {
		t.Error("the kernel waits for what has ended")
	}
}
