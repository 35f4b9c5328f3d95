package autoswap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/pool"
	"tensile/plan/pool/trace"
)

// traceOf repeats the events of an iteration after mallocs of what stays. An event is a letter and a block: m, r, w or
// f, with the size behind an m.
func traceOf(t testing.TB, stays, iteration string, repeats int) (trace.Trace, *trace.Lifetimes) {
	t.Helper()
	var all trace.Trace
	add := func(text string) {
		for _, word := range strings.Fields(text) {
			kind, rest := word[0], word[1:]
			block, size, _ := strings.Cut(rest, ":")
			e := trace.Event{Block: block, Kind: map[byte]trace.Kind{'m': trace.Malloc, 'r': trace.Read,
				'w': trace.Write, 'f': trace.Free}[kind]}
			if kind == 'm' {
				if _, err := fmt.Sscan(size, &e.Bytes); err != nil {
					t.Fatal(err)
				}
			}
			all = append(all, e)
		}
	}
	add(stays)
	for range repeats {
		add(iteration)
	}
	it := trace.Iteration{From: len(strings.Fields(stays)), Events: len(strings.Fields(iteration)), Repeats: repeats}
	l, err := trace.LifetimesOf(all, it, trace.LifetimeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return all, l
}

// TestOfTrace draws a small trace:
//
//	slot   0     1   2     3   4   5     6   7   8   9   10  11
//	event  mA:40 wA  mB:60 rA  wB  mC:90 rW  wC  fC  rA  fA  fB      W:10 is there all the time
//	load   50    50  110   110 110 200   200 200 110 110 70  10
//	time   0     40  0     40  60  0     10  90  0   40  0   0       280 ms in all
//
// Over the peak, slot 5, A pauses from 3 to 9, W from 6 to 18, B not at all.
func TestOfTrace(t *testing.T) {
	all, l := traceOf(t, "mW:10", "mA:40 wA mB:60 rA wB mC:90 rW wC fC rA fA fB", 3)
	link := cost.Link{Rate: 1000} // 1 ms a byte
	it, err := OfTrace(all, l, 280*time.Millisecond, link, link)
	if err != nil {
		t.Fatal(err)
	}
	const ms = time.Millisecond
	if diff := cmp.Diff([]time.Duration{0, 40 * ms, 0, 40 * ms, 60 * ms, 0, 10 * ms, 90 * ms, 0, 40 * ms, 0, 0},
		it.Took); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]graph.Bytes{50, 50, 110, 110, 110, 200, 200, 200, 110, 110, 70, 10}, it.Load); diff != "" {
		t.Errorf("load (-want +got):\n%s", diff)
	}
	want := []Pause{{10, 6, 18, 10 * ms, 10 * ms}, {40, 1, 3, 40 * ms, 40 * ms}, {40, 3, 9, 40 * ms, 40 * ms}}
	if diff := cmp.Diff(want, it.Pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}

	// DOA is 250 ms for W and 80 for A: W leaves 190 at the peak, both leave 150. A goes out from 80 to 120 ms, gone
	// after slot 4, W from 150 to 160, gone after slot 7. W comes in for 420 ms, at 410, after slot 15; A for 240 ms,
	// at 200, after slot 6. But then slot 7 would have 200: A waits for its end, at 240 ms, and slot 9 for A until 280.
	c, ok := it.Within(160, Options{Score: DOA, Smallest: -1}, func(int) {})
	if !ok {
		t.Fatal("nothing within 160")
	}
	if diff := cmp.Diff(&Choice{Swaps: []Swap{{2, 4, 7}, {0, 7, 15}}, Load: 160, Time: 320 * ms,
		Weights: []float64{0, 1, 0, 0}}, c); diff != "" {
		t.Errorf("choice (-want +got):\n%s", diff)
	}
	stays := it.Stays(c)
	var buffers []pool.Buffer
	for _, s := range stays {
		buffers = append(buffers, s.Buffer)
	}
	if got := pool.Load(buffers); got != int64(c.Load) {
		t.Errorf("the stays have a load of %d, the choice says %d: %+v", got, c.Load, stays)
	}
	layout, err := pool.Pack(buffers, pool.Options{Method: "smartpool"})
	if err != nil || pool.Validate(buffers, layout) != nil {
		t.Errorf("%v, %v", err, pool.Validate(buffers, layout))
	}

	all, l = traceOf(t, "", "mA:40 fA", 2)
	if _, err := OfTrace(all, l, ms, link, link); err == nil || !strings.Contains(err.Error(), "no reads and writes") {
		t.Errorf("a trace without accesses: %v", err)
	}
}

// TestRandomTraces swaps in random traces: the stays have the load that the choice says, and between two stays of a
// block lies no access.
func TestRandomTraces(t *testing.T) {
	swapped := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 186))
		var stays, events []string
		for i := range rng.IntN(4) {
			stays = append(stays, fmt.Sprintf("mS%d:%d", i, 1+rng.IntN(100)))
		}
		var live []string
		for i := range 5 + rng.IntN(30) {
			name := fmt.Sprintf("b%d", i)
			events = append(events, fmt.Sprintf("m%s:%d", name, 1+rng.IntN(100)), "w"+name)
			live = append(live, name)
			for range rng.IntN(4) {
				if len(stays) > 0 && rng.IntN(3) == 0 {
					events = append(events, "r"+strings.Split(stays[rng.IntN(len(stays))], ":")[0][1:])
				}
				events = append(events, "r"+live[rng.IntN(len(live))])
			}
			if len(live) > 3 && rng.IntN(2) == 0 {
				k := rng.IntN(len(live))
				events = append(events, "f"+live[k])
				live = slices.Delete(live, k, k+1)
			}
		}
		for _, name := range live {
			events = append(events, "r"+name, "f"+name)
		}
		all, l := traceOf(t, strings.Join(stays, " "), strings.Join(events, " "), 2)
		accesses, err := l.Accesses(all)
		if err != nil {
			t.Fatal(err)
		}
		link := cost.Link{Rate: cost.BytesPerSecond(1 + rng.IntN(1e6))}
		it, err := OfTrace(all, l, time.Second, link, link)
		if err != nil {
			t.Fatal(err)
		}
		_, high := it.Peak()
		if int64(high) != l.Load {
			t.Fatalf("seed %d: a peak of %d, the lifetimes have %d", seed, high, l.Load)
		}
		_, least := it.Least(Options{Smallest: -1})
		limit := least + graph.Bytes(rng.Int64N(int64(high-least)+1))
		c, ok := it.Within(limit, Options{Score: SWDOA, Smallest: -1}, func(int) {})
		if !ok {
			t.Fatalf("seed %d: nothing within %d", seed, limit)
		}
		var buffers []pool.Buffer
		for _, s := range it.Stays(c) {
			buffers = append(buffers, s.Buffer)
		}
		if got := pool.Load(buffers); got != int64(c.Load) || c.Load > limit {
			t.Fatalf("seed %d: the stays have a load of %d, the choice says %d; limit %d", seed, got, c.Load, limit)
		}
		for _, x := range c.Swaps {
			for slot := x.Drop + 1; slot <= x.In; slot++ {
				for _, at := range accesses[it.Buffers[x.Pause]] {
					if at%l.Events == slot%l.Events {
						t.Fatalf("seed %d: an access in slot %d, in which the block is away", seed, at)
					}
				}
			}
			swapped++
		}
	}
	if t.Logf("%d swaps", swapped); swapped < 500 {
		t.Errorf("%d swaps", swapped)
	}
}
