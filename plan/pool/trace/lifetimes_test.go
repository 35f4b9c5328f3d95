package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/plan/pool"
)

func pack(tb testing.TB, l *Lifetimes) pool.Layout {
	tb.Helper()
	layout, err := pool.Pack(l.Buffers, pool.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	if err := pool.Validate(l.Buffers, layout); err != nil {
		tb.Fatal(err)
	}
	return layout
}

// The drawing in doc.go, C being freed in the iteration or in the next one.
func TestLifetimesOfTheDrawing(t *testing.T) {
	const w, a, b, c = "W", "A", "B", "C"
	at := func(kind Kind, id string) Event { return Event{Kind: kind, Block: id} }
	inner := []Event{{Malloc, a, 10}, {Malloc, b, 20}, at(Write, b), at(Free, a), {Malloc, c, 30}, at(Read, b),
		at(Free, b)}
	plain := Trace{{Malloc, w, 100}, at(Write, w)}
	for range 3 {
		plain = append(append(plain, inner...), at(Free, c))
	}
	wrapped := Trace{{Malloc, w, 100}, at(Write, w), {Malloc, "C0", 30}}
	for i := range 3 {
		wrapped = append(wrapped, Event{Malloc, a, 10}, at(Free, fmt.Sprint(c, i)), at(Write, w),
			Event{Malloc, fmt.Sprint(c, i+1), 30}, at(Free, a))
	}
	span := func(from, to int) pool.Span { return pool.Span{From: from, To: to} }
	for _, c := range []struct {
		name string
		t    Trace
		it   Iteration
		o    LifetimeOptions
		want []pool.Buffer
		who  []Resident
		load int64
	}{
		{"plain", plain, Iteration{2, 8, 3}, LifetimeOptions{Align: 4}, []pool.Buffer{
			{Size: 100, Spans: []pool.Span{span(0, 8)}, Align: 4}, {Size: 10, Spans: []pool.Span{span(0, 3)}, Align: 4},
			{Size: 20, Spans: []pool.Span{span(1, 6)}, Align: 4}, {Size: 30, Spans: []pool.Span{span(4, 7)}, Align: 4},
		}, []Resident{{"W", -1}, {"A", 0}, {"B", 1}, {"C", 4}}, 150},
		{"tightened", plain, Iteration{2, 8, 3}, LifetimeOptions{Tighten: true}, []pool.Buffer{
			{Size: 100, Spans: []pool.Span{span(0, 8)}}, {Size: 10, Spans: []pool.Span{span(0, 3)}},
			{Size: 20, Spans: []pool.Span{span(2, 6)}}, {Size: 30, Spans: []pool.Span{span(4, 7)}},
		}, []Resident{{"W", -1}, {"A", 0}, {"B", 1}, {"C", 4}}, 150},
		{"wrapped", wrapped, Iteration{3, 5, 3}, LifetimeOptions{}, []pool.Buffer{
			{Size: 100, Spans: []pool.Span{span(0, 5)}}, {Size: 10, Spans: []pool.Span{span(0, 4)}},
			{Size: 30, Spans: []pool.Span{span(0, 1), span(3, 5)}},
		}, []Resident{{"W", -1}, {"A", 0}, {"C1", 3}}, 140},
		{"whole", plain[:9], whole(plain[:9], 0), LifetimeOptions{}, []pool.Buffer{
			{Size: 100, Spans: []pool.Span{span(0, 9)}}, {Size: 10, Spans: []pool.Span{span(2, 5)}},
			{Size: 20, Spans: []pool.Span{span(3, 8)}}, {Size: 30, Spans: []pool.Span{span(6, 9)}},
		}, []Resident{{"W", 0}, {"A", 2}, {"B", 3}, {"C", 6}}, 150},
	} {
		l, err := LifetimesOf(c.t, c.it, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, l.Buffers); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if diff := cmp.Diff(c.who, l.Residents); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if l.Load != c.load {
			t.Errorf("%s: load %d, want %d", c.name, l.Load, c.load)
		}
	}
}

// residentBytes says by the trace alone, in the second iteration or the only one, which bytes every slot needs.
func residentBytes(tr Trace, it Iteration) []int64 {
	shift := it.From
	if it.Repeats > 1 {
		shift += it.Events
	}
	needs := make([]int64, it.Events)
	present := make(map[string]int64)
	var now int64
	for i, e := range tr[:shift+it.Events] {
		if e.Kind == Malloc {
			present[e.Block] = e.Bytes
			now += e.Bytes
		} else if e.Kind == Free {
			now -= present[e.Block]
		}
		if i >= shift {
			needs[i-shift] = now
		}
	}
	return needs
}

// Slot by slot, the buffers hold what the framework held; the load is its peak, and what pool makes of the buffers.
func TestLifetimesHoldWhatTheTraceHolds(t *testing.T) {
	iterations := 0
	for seed := range uint64(2000) {
		tr := randomTrace(rand.New(rand.NewPCG(seed, 5)))
		it, err := Find(tr, 0)
		if err != nil || seed%8 == 0 {
			it = whole(tr, 0)
		}
		l, err := LifetimesOf(tr, it, LifetimeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if it.Repeats > 1 {
			iterations++
		}
		held := make([]int64, it.Events)
		for _, b := range l.Buffers {
			for _, s := range b.Spans {
				for slot := s.From; slot < s.To; slot++ {
					held[slot] += b.Size
				}
			}
		}
		want := residentBytes(tr, it)
		if diff := cmp.Diff(want, held); diff != "" {
			t.Fatalf("seed %d: %v\n%+v: %s", seed, tr, it, diff)
		}
		if peak := slices.Max(append(want, 0)); peak != l.Load {
			t.Fatalf("seed %d: %v\n%+v: load %d, want %d", seed, tr, it, l.Load, peak)
		}
		pack(t, l)
	}
	if iterations < 200 {
		t.Errorf("only %d iterations", iterations)
	}
}

// Tightened lifetimes are parts of the others, and hold every access.
func TestTightenedLifetimes(t *testing.T) {
	shorter := 0
	for seed := range uint64(2000) {
		tr := randomTrace(rand.New(rand.NewPCG(seed, 6)))
		it, err := Find(tr, 0)
		if err != nil {
			it = whole(tr, 0)
		}
		of := func(o LifetimeOptions) *Lifetimes {
			l, err := LifetimesOf(tr, it, o)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		wide, tight := of(LifetimeOptions{}), of(LifetimeOptions{Tighten: true})
		if diff := cmp.Diff(wide.Residents, tight.Residents); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		blocks := blocksOf(tr)
		for i, r := range tight.Residents {
			if a, b := slots(wide.Buffers[i], it.Events), slots(tight.Buffers[i], it.Events); a != b {
				shorter++
				for slot := range it.Events {
					if b[slot] == '1' && a[slot] != '1' {
						t.Fatalf("seed %d: %v\n%+v: %v tightened from %s to %s", seed, tr, it, r, a, b)
					}
				}
			}
			for k := range tr {
				use := tr[k].Kind == Read || tr[k].Kind == Write
				if use && r.Slot >= 0 && blocks[k] == it.From+r.Slot && k < it.From+it.Repeats*it.Events &&
					slots(tight.Buffers[i], it.Events)[(k-it.From)%it.Events] != '1' {
					t.Fatalf("seed %d: %v\n%+v: %v is accessed by event %d", seed, tr, it, r, k)
				}
			}
		}
	}
	if shorter < 500 {
		t.Errorf("only %d lifetimes became shorter", shorter)
	}
}

// slots draws a buffer's spans, a digit per slot.
func slots(b pool.Buffer, n int) string {
	drawn := []byte(fmt.Sprintf("%0*d", n, 0))
	for _, s := range b.Spans {
		for slot := s.From; slot < s.To; slot++ {
			drawn[slot] = '1'
		}
	}
	return string(drawn)
}

// A training job's lifetimes pack into its peak load, whichever ids it used.
func TestLifetimesOfTraining(t *testing.T) {
	for _, wraps := range []bool{false, true} {
		var loads []int64
		for seed := range uint64(4) {
			g := &training{rng: rand.New(rand.NewPCG(seed, 7))}
			weights, late := g.start(12), ""
			for range 4 {
				late = g.iteration(weights, late, wraps)
			}
			it, err := Find(g.t, 0)
			if err != nil {
				t.Fatal(err)
			}
			l, err := LifetimesOf(g.t, it, LifetimeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if l.Fixed != 12*64 || l.Load != pool.Load(l.Buffers) {
				t.Errorf("fixed %d, load %d of which the buffers have %d", l.Fixed, l.Load, pool.Load(l.Buffers))
			}
			twoSpans := slices.ContainsFunc(l.Buffers, func(b pool.Buffer) bool { return len(b.Spans) == 2 })
			if twoSpans != wraps {
				t.Errorf("wraps %v: a buffer with two spans: %v", wraps, twoSpans)
			}
			layout := pack(t, l)
			if layout.Height != l.Load {
				t.Errorf("packed in %d, the load is %d", layout.Height, l.Load)
			}
			loads = append(loads, l.Load)
		}
		if slices.Min(loads) != slices.Max(loads) {
			t.Errorf("loads differ by the ids: %v", loads)
		}
	}
}

func TestLifetimesRefuse(t *testing.T) {
	tr := Trace{{Malloc, "a", 1}}
	for _, it := range []Iteration{{0, 1, 0}, {-1, 1, 1}, {0, 2, 1}, {0, 1, 2}, {1, 1, 1}, {0, -1, 1}, {2, 0, 1}} {
		if _, err := LifetimesOf(tr, it, LifetimeOptions{}); err == nil {
			t.Errorf("%+v of a trace of one event: no error", it)
		}
	}
	if l, err := LifetimesOf(nil, whole(nil, 0), LifetimeOptions{}); err != nil || len(l.Buffers) > 0 {
		t.Errorf("an empty trace: %+v, %v", l, err)
	}
}
