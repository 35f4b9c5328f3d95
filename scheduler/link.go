package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// timeline is the use of one copy lane over an iteration that repeats: what is booked in [0, period) is booked in
// every period. Booked stretches are kept for two periods, so that a gap that wraps lies in one piece.
type timeline struct {
	period time.Duration
	booked []stretch // ascending, disjoint
}

type stretch struct{ from, to time.Duration }

// earliest returns the first start of a free stretch of this length in [from, to).
func (l *timeline) earliest(from, to, length time.Duration) (time.Duration, bool) {
	at := from
	first, _ := slices.BinarySearchFunc(l.booked, from, func(b stretch, t time.Duration) int { return cmp.Compare(b.to, t+1) })
	for _, b := range l.booked[first:] {
		if b.from >= at+length {
			break
		}
		at = b.to
	}
	return at, at+length <= to
}

// latest returns the last start of a free stretch of this length in [from, to).
func (l *timeline) latest(from, to, length time.Duration) (time.Duration, bool) {
	end := to
	after, _ := slices.BinarySearchFunc(l.booked, to, func(b stretch, t time.Duration) int { return cmp.Compare(b.from, t) })
	for _, b := range slices.Backward(l.booked[:after]) {
		if b.to <= end-length {
			break
		}
		end = b.from
	}
	return end - length, end-length >= from
}

// book takes a stretch. What is booked already, or lies outside of two periods, is passed over.
func (l *timeline) book(from, length time.Duration) {
	if length == 0 {
		return
	}
	for _, shift := range [3]time.Duration{-l.period, 0, l.period} {
		s := stretch{max(0, from+shift), min(2*l.period, from+length+shift)}
		if s.from >= s.to {
			continue
		}
		at, _ := slices.BinarySearchFunc(l.booked, s, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
		l.booked = slices.Insert(l.booked, at, s)
	}
}
