package pool

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// hard are buffers for which a search uses all of its work.
func hard(seed uint64) []Buffer { return scattered(240, 100+seed) }

// used is the work of a search in steps, and its layout.
func used(t *testing.T, name string, buffers []Buffer, o Options) (steps int, l Layout) {
	t.Helper()
	s := newSearch(newProblem(buffers), o)
	before := s.steps
	s.run(methods["search"])
	steps, l = before-s.steps, s.layout(buffers)
	if err := Validate(buffers, l); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return steps, l
}

// A search that is told to stop at some question ends soon, with a layout that is right.
func TestPackStops(t *testing.T) {
	for seed, buffers := range [][]Buffer{hard(0), hard(1), scattered(700, 3)} {
		asked := 0
		all, lowest := used(t, "never", buffers, Options{Stop: func() bool { asked++; return false }})
		if asked < 20 {
			t.Errorf("case %d: asked %d times", seed, asked)
		}
		last := 0
		for _, at := range []int{1, 2, 5, asked / 4, asked / 2} {
			name := fmt.Sprintf("case %d, stopped at question %d of %d", seed, at, asked)
			n := 0
			steps, l := used(t, name, buffers, Options{Stop: func() bool { n++; return n >= at }})
			if n > at+100 || steps >= all || steps < last || l.Height < lowest.Height {
				t.Errorf("%s: asked %d times; used %d steps of %d, height %d, lowest %d", name, n, steps, all, l.Height,
					lowest.Height)
			}
			last = steps
		}
	}
}

// Every method returns a layout even if it is to stop at once.
func TestMethodsStop(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 42))
		buffers := pinned(rng, randomBuffers(rng))
		for _, method := range Methods() {
			if method != "online" {
				packedBy(t, fmt.Sprintf("seed %d: %s", seed, method), buffers,
					Options{Method: method, Stop: func() bool { return true }})
			}
		}
	}
}

// A search for a capacity ends as soon as a layout is within it, also where it aims elsewhere. A capacity that no
// layout can keep does no harm.
func TestPackEndsAtTheCapacity(t *testing.T) {
	early := 0
	for seed := range uint64(4) {
		buffers := hard(seed)
		name := fmt.Sprintf("seed %d", seed)
		all, lowest := used(t, name, buffers, Options{})
		_, first := used(t, name, buffers, Options{Stop: func() bool { return true }})
		if first.Height == lowest.Height {
			t.Fatalf("%s: the first layout is the lowest: the test wants a harder problem", name)
		}
		if steps, l := used(t, name, buffers, Options{Capacity: first.Height}); l.Height > first.Height ||
			steps > all/20 {
			t.Errorf("%s: %d steps of %d for height %d, the capacity is %d", name, steps, all, l.Height, first.Height)
		}
		between := (first.Height + lowest.Height) / 2
		steps, l := used(t, name, buffers, Options{Capacity: between})
		if l.Height > between {
			t.Errorf("%s: %d steps for height %d, the capacity is %d", name, steps, l.Height, between)
		}
		if steps, l = used(t, name, buffers, Options{Enough: between}); l.Height > between || steps > all {
			t.Errorf("%s: %d steps of %d for height %d, enough is %d", name, steps, all, l.Height, between)
		}
		if steps < all/2 && l.Height > lowest.Height {
			early++
		}
		if l := packedBy(t, name, buffers, Options{Capacity: 1}); l.Height > first.Height {
			t.Errorf("%s: height %d at capacity 1, the first layout has %d", name, l.Height, first.Height)
		}
	}
	if early == 0 {
		t.Error("whatever is enough, the layout is the lowest, or takes most of the work")
	}
}

// Work that is allowed is used only where there is something to gain, and then helps.
func TestPackRounds(t *testing.T) {
	var one, many int64
	for seed := range uint64(3) {
		name := fmt.Sprintf("seed %d", seed)
		steps, l := used(t, name, hard(seed), Options{})
		more, lower := used(t, name, hard(seed), Options{Rounds: 4})
		one, many = one+l.Height, many+lower.Height
		if !lower.Optimal && (more < 3*steps || more > 6*steps) {
			t.Errorf("%s: %d steps in a round, %d in four", name, steps, more)
		}
		if lower.Height > l.Height || lower.LowerBound < l.LowerBound && !l.Optimal {
			t.Errorf("%s: height %d, lower bound %d, after four rounds %d and %d", name, l.Height, l.LowerBound,
				lower.Height, lower.LowerBound)
		}
	}
	if t.Logf("heights add up to %d, after four rounds to %d", one, many); many >= one {
		t.Errorf("heights add up to %d, after four rounds to %d", one, many)
	}
	for seed := range uint64(40) {
		buffers := randomBuffers(rand.New(rand.NewPCG(seed, 43)))
		name := fmt.Sprintf("seed %d", seed)
		l := packed(t, name, buffers)
		if more := packedBy(t, name, buffers, Options{Rounds: 3}); more.Height > l.Height || l.Optimal &&
			more.Height < l.Height {
			t.Errorf("%s: height %d, optimal: %v; after three rounds %d", name, l.Height, l.Optimal, more.Height)
		}
		if none := packedBy(t, name, buffers, Options{Rounds: -1}); none.Height != l.Height {
			t.Errorf("%s: height %d, with -1 rounds %d", name, l.Height, none.Height)
		}
	}
}

// Pack asks whether to stop every few buffers, also while it makes the first layout and before. A Stop that panics ends
// it there.
func TestPackAsks(t *testing.T) {
	buffers := trainingStep(3000, 5)
	for _, method := range []string{"size", "search"} {
		asked := 0
		if _, err := Pack(buffers, Options{Method: method, Stop: func() bool { asked++; return true }}); err != nil {
			t.Fatal(err)
		}
		if least := 2 * len(buffers) / asking; asked < least {
			t.Errorf("%s: asked %d times for %d buffers, want %d", method, asked, len(buffers), least)
		}
		for last := 1; last <= asked; last += 1 + asked/20 {
			n := 0
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: nothing ended at question %d", method, last)
					}
				}()
				Pack(buffers, Options{Method: method, Stop: func() bool {
					if n++; n == last {
						panic("stopped")
					}
					return false
				}})
			}()
			if n != last {
				t.Errorf("%s: %d questions, stopped at %d", method, n, last)
			}
		}
	}
}
