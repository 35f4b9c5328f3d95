package trace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// blocksOf tells blocks apart, the slow way: per event the index of its block's malloc.
func blocksOf(t Trace) []int {
	of := make([]int, len(t))
	for i, e := range t {
		for of[i] = i; t[of[i]].Kind != Malloc || t[of[i]].Block != e.Block; of[i]-- {
		}
	}
	return of
}

// repeats says, from the definition, whether iterations of some events from an event on are equal.
func repeats(t Trace, of []int, from, events, times int) bool {
	for slot := range events {
		fixed, moving := true, true
		first := from + slot
		for k := 1; k < times; k++ {
			i := first + k*events
			if t[i].Kind != t[first].Kind || t[of[i]].Bytes != t[of[first]].Bytes {
				return false
			}
			fixed = fixed && t[i].Kind != Malloc && of[i] == of[first] && of[i] < from
			moving = moving && of[i] == of[first]+k*events
		}
		if !fixed && !moving {
			return false
		}
	}
	return true
}

// slowLongest returns the period and the number of events that longestRun should cover.
func slowLongest(t Trace) (period, covers int) {
	of := blocksOf(t)
	longest := make(map[int]int)
	best := 0
	for events := 1; 2*events <= len(t); events++ {
		for from := 0; from+2*events <= len(t); from++ {
			times := 2
			for ; from+times*events <= len(t) && repeats(t, of, from, events, times); times++ {
			}
			if times--; times >= 2 && steady(t, of, from, events) {
				longest[events] = max(longest[events], times*events)
			}
		}
		best = max(best, longest[events])
	}
	for events := 1; 2*events <= len(t); events++ {
		if longest[events] > 0 && enough(longest[events], best) {
			return events, longest[events]
		}
	}
	return 0, 0
}

// steady reports whether there are as many blocks and bytes after some events as before.
func steady(t Trace, of []int, from, events int) bool {
	blocks, bytes := 0, int64(0)
	for i := from; i < from+events; i++ {
		switch t[i].Kind {
		case Malloc:
			blocks, bytes = blocks+1, bytes+t[i].Bytes
		case Free:
			blocks, bytes = blocks-1, bytes-t[of[i]].Bytes
		}
	}
	return blocks == 0 && bytes == 0
}

func checkLongest(tb testing.TB, what string, tr Trace) {
	h, err := newHistory(tr)
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
	period, covers := slowLongest(tr)
	got, _ := longestRun(tr, h, 0)
	if got.period != period || period > 0 && got.covers() != covers {
		tb.Fatalf("%s: %v\n%v, want period %d covering %d", what, tr, got, period, covers)
	}
	it, err := Find(tr, 0)
	switch {
	case err != nil && !errors.Is(err, errNoIteration):
		tb.Fatalf("%s: Find: %v", what, err)
	case err != nil:
		return
	case period == 0:
		tb.Fatalf("%s: Find: %+v, want ErrNoIteration", what, it)
	}
	of := blocksOf(tr)
	if it.Events%period != 0 || it.Repeats < 2 || !repeats(tr, of, it.From, it.Events, it.Repeats) ||
		!steady(tr, of, it.From, it.Events) {
		tb.Fatalf("%s: %v\n%+v is not repeated", what, tr, it)
	}
}

func TestFindAgainstTheDefinition(t *testing.T) {
	found := 0
	for seed := range uint64(3000) {
		tr := randomTrace(rand.New(rand.NewPCG(seed, 2)))
		checkLongest(t, fmt.Sprintf("seed %d", seed), tr)
		if _, err := Find(tr, 0); err == nil {
			found++
		}
	}
	if found < 800 {
		t.Errorf("only %d traces of 3000 have an iteration", found)
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte{0, 3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1})
	f.Add([]byte{0, 64, 2, 10, 66, 1, 64, 2, 10, 66, 1, 64, 2, 10})
	f.Fuzz(func(t *testing.T, script []byte) {
		checkLongest(t, fmt.Sprintf("script %v", script), traceOf(script[:min(len(script), 60)]))
	})
}

// Start, iterations with inner loops of equal layers, one-off events between some of them, an end.
func TestFindTraining(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		g := &training{rng: rng, noReads: rng.IntN(2) == 0}
		wraps := rng.IntN(2) == 0
		weights := g.start(3 + rng.IntN(10))
		late := ""
		one := func() (events int) {
			events = -len(g.t)
			late = g.iteration(weights, late, wraps)
			return events + len(g.t)
		}
		for range rng.IntN(3) {
			one()
		}
		g.drop(g.malloc(999)) // the longest run comes after this
		begin := len(g.t)
		events := one() // perhaps without a block from the one before
		for range 3 + rng.IntN(4) {
			events = one()
		}
		end := len(g.t)
		if rng.IntN(2) == 0 {
			g.drop(g.malloc(998))
			one()
		}
		it, err := Find(g.t, 0)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		last := it.From + it.Events*it.Repeats
		if it.Events != events || it.From > begin+2*events || last < end-events || it.Repeats < 2 {
			t.Fatalf("seed %d: %+v, want iterations of %d events in [%d, %d)", seed, it, events, begin, end)
		}
		if !repeats(g.t, blocksOf(g.t), it.From, it.Events, it.Repeats) {
			t.Fatalf("seed %d: %+v is not repeated", seed, it)
		}
	}
}

// Two iterations are enough, also where the first one reads what the start wrote.
func TestFindTwoIterations(t *testing.T) {
	g := &training{rng: rand.New(rand.NewPCG(1, 1))}
	weights := g.start(5)
	begin := len(g.t)
	g.iteration(weights, "", false)
	events := len(g.t) - begin
	g.iteration(weights, "", false)
	got, err := Find(g.t, 0)
	if want := (Iteration{begin, events, 2}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// An iteration begins where the fewest bytes go on over the boundary.
func TestFindQuietest(t *testing.T) {
	for seed := range uint64(1500) {
		tr := randomTrace(rand.New(rand.NewPCG(seed, 4)))
		h, err := newHistory(tr)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := longestRun(tr, h, 0)
		if r.period == 0 {
			continue
		}
		r.period = h.lengthen(tr, r)
		over := func(from int) (bytes int64) { // by the definition: what is malloced before and freed after
			for m := from; m < from+r.period; m++ {
				if f := h.freed[m]; tr[m].Kind == Malloc && f >= from+r.period && f < m+r.period {
					bytes += tr[m].Bytes
				}
			}
			return bytes
		}
		got := h.quietest(tr, r)
		for i := 0; i < r.period && r.from+i+2*r.period <= r.to; i++ {
			if a, b := over(r.from+i), over(r.from+got); a < b || a == b && i < got {
				t.Fatalf("seed %d: %v\n%v begins after %d with %d bytes, but after %d with %d", seed, tr, r, got, b, i,
					a)
			}
		}
	}
}

// A block that lives for longer than what repeats makes several of them one iteration, if there are enough.
func TestFindLengthens(t *testing.T) {
	for _, c := range []struct{ times, events int }{{3, 0}, {4, 0}, {5, 4}, {6, 4}, {9, 4}} {
		tr := Trace{{Malloc, "0", 8}}
		for i := range c.times { // malloc, then free what was malloced before
			tr = append(tr, Event{Malloc, fmt.Sprint(i + 1), 8}, Event{Kind: Free, Block: fmt.Sprint(i)})
		}
		it, err := Find(tr, 0)
		if part, ok := errors.AsType[*PartError](err); it.Events != c.events || (c.events == 0) != ok {
			t.Errorf("%d times: %+v, %v, want %d events", c.times, it, err, c.events)
		} else if ok {
			if _, err := LifetimesOf(tr, part.Iteration, LifetimeOptions{}); err == nil {
				t.Errorf("%d times: no error for a block that outlives the iteration", c.times)
			}
		}
	}
}

func TestFindNothing(t *testing.T) {
	for _, tr := range []Trace{nil, {{Malloc, "a", 1}}, {{Malloc, "a", 1}, {Write, "a", 0}, {Free, "a", 0},
		{Malloc, "a", 2}}} {
		if it, err := Find(tr, 0); !errors.Is(err, errNoIteration) {
			t.Errorf("%v: %+v, %v, want ErrNoIteration", tr, it, err)
		}
	}
	if _, err := Find(Trace{{Malloc, "a", 1}, {Malloc, "a", 1}}, 0); err == nil || errors.Is(err, errNoIteration) {
		t.Errorf("a trace that mallocs a block twice: %v", err)
	}
}

// Traces made to be hard are still done in a bounded number of steps.
func TestFindHard(t *testing.T) {
	const n = 40_000
	rng := rand.New(rand.NewPCG(1, 1))
	var same, scattered Trace
	for _, id := range []string{"a", "b", "c", "d"} {
		same = append(same, Event{Malloc, id, 8})
	}
	for i := range n {
		same = append(same, Event{Kind: Read, Block: string("abcd"[rng.IntN(4)])}) // labels say nothing
		scattered = append(scattered, Event{Malloc, fmt.Sprint(i), 8})             // nothing is ever freed
	}
	for _, tr := range []Trace{same, scattered} {
		if _, err := Find(tr, 0); err != nil && !errors.Is(err, errNoIteration) {
			t.Error(err)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	for _, layers := range []int{12, 200} {
		g := &training{rng: rand.New(rand.NewPCG(1, 1))}
		weights := g.start(layers)
		for len(g.t) < 200_000 {
			g.iteration(weights, "", false)
		}
		b.Run(fmt.Sprintf("layers=%d/n=%d", layers, len(g.t)), func(b *testing.B) {
			for b.Loop() {
				if it, err := Find(g.t, 0); err != nil || it.From != len(weights)*2+2 {
					b.Fatal(it, err)
				}
			}
		})
	}
}

// Of the runs that cover about as much as any, that of the shortest period is taken, of these the longest, the first.
func TestShortest(t *testing.T) {
	long, longer, first, few := run{0, 60, 20}, run{60, 103, 10}, run{200, 243, 10}, run{300, 340, 5}
	for _, c := range []struct {
		runs    []run
		largest int
		want    run
	}{
		{[]run{long, {0, 41, 10}, longer, first}, 40, longer},
		{[]run{longer, {0, 41, 10}, first, long}, 40, longer},
		{[]run{first, longer}, 40, first},
		{[]run{few, long, longer}, 60, long},
		{[]run{few, long, longer}, 44, few},
		{nil, 0, run{}},
	} {
		if got := shortest(c.runs, c.largest); got != c.want {
			t.Errorf("of %v, %d covered: %v, want %v", c.runs, c.largest, got, c.want)
		}
	}
}
