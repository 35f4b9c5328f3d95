package trace

import (
	"errors"
	"math/rand/v2"
	"testing"

	"tensile/plan/pool"
)

// arena replays events and checks that no two blocks that are there share a byte.
type arena struct {
	t       *testing.T
	what    any
	replay  *replay
	offsets map[string]int64
	sizes   map[string]int64
}

func newArena(t *testing.T, what any, l *Lifetimes) *arena {
	t.Helper()
	r, err := newReplay(l, pack(t, l), 0)
	if err != nil {
		t.Fatal(err)
	}
	return &arena{t, what, r, make(map[string]int64), make(map[string]int64)}
}

func (a *arena) do(events Trace) {
	a.t.Helper()
	for i, e := range events {
		switch e.Kind {
		case Malloc:
			at, err := a.replay.Malloc(e.Bytes)
			if err != nil {
				a.t.Fatal(err)
			}
			for id, other := range a.offsets {
				if at < other+a.sizes[id] && other < at+e.Bytes {
					a.t.Fatalf("%v: event %d: %s of %d bytes at %d meets %s of %d at %d", a.what, i, e.Block, e.Bytes,
						at,
						id, a.sizes[id], other)
				}
			}
			a.offsets[e.Block], a.sizes[e.Block] = at, e.Bytes
		case Free:
			a.replay.Free(a.offsets[e.Block])
			delete(a.offsets, e.Block)
		}
	}
}

func lifetimesOf(t *testing.T, tr Trace, o LifetimeOptions) *Lifetimes {
	t.Helper()
	it, err := Find(tr, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := LifetimesOf(tr, it, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// In a training job all mallocs but those of the start, and those of one-off events, are answered by the layout.
func TestReplayTraining(t *testing.T) {
	for _, wraps := range []bool{false, true} {
		g := &training{rng: rand.New(rand.NewPCG(1, 8))}
		weights, late := g.start(6), ""
		for range 4 {
			late = g.iteration(weights, late, wraps)
		}
		l := lifetimesOf(t, g.t, LifetimeOptions{Transient: true})
		a := newArena(t, wraps, l)
		if a.replay.Height != l.Load-l.Fixed {
			t.Errorf("height %d, load %d of which %d are fixed", a.replay.Height, l.Load, l.Fixed)
		}
		a.do(g.t)
		started := a.replay.Misses
		for i := range 20 {
			g.t = nil
			if late = g.iteration(weights, late, wraps); i%5 == 4 {
				g.drop(g.malloc(7)) // a one-off
			}
			a.do(g.t)
		}
		if late := a.replay.Misses - started; started > 6+1+22 || late != 4 || a.replay.Hits < 20*20 {
			t.Errorf("wraps %v: %d mallocs went online at first and %d later, %d did not", wraps, started, late,
				a.replay.Hits)
		}
	}
}

// Whatever is requested, no two blocks meet; and after a departure the iteration is found again.
func TestReplayDepartures(t *testing.T) {
	hits := 0
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 9))
		tr := randomTrace(rng)
		it, err := Find(tr, 0)
		if err != nil || rng.IntN(8) == 0 {
			it = whole(tr, 0)
		}
		l, err := LifetimesOf(tr, it, LifetimeOptions{Transient: rng.IntN(2) == 0})
		if err != nil {
			t.Fatal(err)
		}
		a := newArena(t, seed, l)
		a.do(tr)
		for id := range a.offsets {
			a.do(Trace{{Kind: Free, Block: id}})
		}
		other := randomTrace(rng)
		a.do(other)
		hits += a.replay.Hits
	}
	if hits < 3000 {
		t.Errorf("only %d mallocs were answered by a layout", hits)
	}
	g := &training{rng: rand.New(rand.NewPCG(1, 10))}
	weights := g.start(3)
	for range 3 {
		g.iteration(weights, "", false)
	}
	a := newArena(t, "training", lifetimesOf(t, g.t, LifetimeOptions{Transient: true}))
	for _, layers := range []int{3, 2, 3, 1, 3, 3} {
		g.t = nil
		g.iteration(weights[:layers], "", false)
		before := *a.replay
		a.do(g.t)
		if missed := a.replay.Misses - before.Misses; layers == 3 && missed > 0 {
			t.Errorf("%d mallocs of an iteration as recorded went online", missed)
		}
	}
}

func TestReplayRefuses(t *testing.T) {
	tr := Trace{{Malloc, "w", 1}}
	for range 3 {
		tr = append(tr, Event{Malloc, "a", 8}, Event{Kind: Write, Block: "a"}, Event{Kind: Free, Block: "a"})
	}
	tight := lifetimesOf(t, tr, LifetimeOptions{Tighten: true})
	if _, err := newReplay(tight, pack(t, tight), 0); err == nil {
		t.Error("tightened lifetimes: no error")
	}
	l := lifetimesOf(t, tr, LifetimeOptions{})
	if _, err := newReplay(l, pack(t, l), 9); err == nil {
		t.Error("an arena of the layout's bytes: no error")
	}
	r, err := newReplay(l, pack(t, l), 9+16)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Malloc(17)
	if full, ok := errors.AsType[*pool.FullError](err); !ok || full.Capacity != 16 {
		t.Errorf("more than is left: %v", err)
	}
	for _, size := range []int64{8, 0, 15} {
		if _, err := r.Malloc(size); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// The table has, for each malloc, what Replay answers.
func TestOffsets(t *testing.T) {
	g := &training{rng: rand.New(rand.NewPCG(1, 11))}
	weights := g.start(4)
	for range 3 {
		g.iteration(weights, "", false)
	}
	l := lifetimesOf(t, g.t, LifetimeOptions{})
	layout := pack(t, l)
	r, err := newReplay(l, layout, 0)
	if err != nil {
		t.Fatal(err)
	}
	present := make(map[string]int64)
	for slot, want := range l.Offsets(layout) {
		switch e := g.t[l.From+slot]; e.Kind {
		case Malloc:
			got, err := r.Malloc(e.Bytes)
			if err != nil || got != want {
				t.Errorf("slot %d: Malloc(%d) = %d, %v, want %d", slot, e.Bytes, got, err, want)
			}
			present[e.Block] = got
		case Free:
			r.Free(present[e.Block])
			fallthrough
		default:
			if want != -1 {
				t.Errorf("slot %d, %v: offset %d", slot, e.Kind, want)
			}
		}
	}
}
