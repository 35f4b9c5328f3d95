package draft

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// slowLane is a lane that keeps what is booked, and not what is free, in a plain list.
type slowLane struct {
	period time.Duration
	booked []stretch // ascending
}

func (l *slowLane) earliest(from, to, length time.Duration) (time.Duration, bool) {
	if from < 0 {
		at, ok := l.earliest(from+l.period, to+l.period, length)
		return at - l.period, ok
	}
	at := from
	for _, b := range l.booked {
		if b.to > at && b.from < at+length {
			at = b.to
		}
	}
	return at, at+length <= to
}

func (l *slowLane) latest(from, to, length time.Duration) (time.Duration, bool) {
	if from < 0 {
		at, ok := l.latest(from+l.period, to+l.period, length)
		return at - l.period, ok
	}
	end := to
	for _, b := range slices.Backward(l.booked) {
		if b.from < end && b.to > end-length {
			end = b.from
		}
	}
	return end - length, end-length >= from
}

func (l *slowLane) book(from, length time.Duration) {
	for shift := -l.period; shift <= 2*l.period; shift += l.period {
		if s := (stretch{max(0, from+shift), min(2*l.period, from+length+shift)}); s.from < s.to {
			l.booked = append(l.booked, s)
		}
	}
	slices.SortFunc(l.booked, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
}

func (l *slowLane) release(from, length time.Duration) {
	for shift := -l.period; shift <= 2*l.period; shift += l.period {
		s := stretch{max(0, from+shift), min(2*l.period, from+length+shift)}
		if i := slices.Index(l.booked, s); i >= 0 {
			l.booked = slices.Delete(l.booked, i, i+1)
		}
	}
}

func checkLane(t testing.TB, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 31))
	period := time.Duration(20 + rng.IntN(100))
	fast, slow := newLane(period), &slowLane{period: period}
	var held []stretch
	for range 40 {
		length := time.Duration(1 + rng.IntN(int(period)/4))
		from := time.Duration(rng.IntN(int(period*3/2))) - period/2
		to := from + time.Duration(rng.IntN(int(period)))
		if early, ok := slow.earliest(from, to, length); rng.IntN(2) == 0 {
			got, fits := fast.earliest(from, to, length)
			if fits != ok || ok && got != early {
				t.Fatalf("seed %d: earliest of [%d,%d) for %d: %d %v, want %d %v", seed, from, to, length, got, fits,
					early, ok)
			}
			if ok {
				fast.book(got, length)
				slow.book(early, length)
				held = append(held, stretch{got, got + length})
			}
		}
		if late, ok := slow.latest(from, to, length); rng.IntN(2) == 0 {
			got, fits := fast.latestStart(from, to, length)
			if fits != ok || ok && got != late {
				t.Fatalf("seed %d: latest of [%d,%d) for %d: %d %v, want %d %v", seed, from, to, length, got, fits,
					late, ok)
			}
			if ok {
				fast.book(got, length)
				slow.book(late, length)
				held = append(held, stretch{got, got + length})
			}
		}
		if len(held) > 0 && rng.IntN(3) == 0 {
			i := rng.IntN(len(held))
			fast.release(held[i].from, held[i].to-held[i].from)
			slow.release(held[i].from, held[i].to-held[i].from)
			held = slices.Delete(held, i, i+1)
		}
	}
}

// TestLane compares the free list with a plain list of what is booked.
func TestLane(t *testing.T) {
	for seed := range uint64(3000) {
		checkLane(t, seed)
	}
}

func FuzzLane(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { checkLane(t, seed) })
}
