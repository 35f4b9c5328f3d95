//go:build unix

package cpu

import (
	"sync"
	"syscall"
	"time"

	"tensile/graph/cost"
)

// link is one copy direction. With a limit it is a token bucket without a store: each piece takes its turn at the end
// of those before it, of whichever job, so jobs that copy at the same time share the rate.
type link struct {
	limit cost.BytesPerSecond // 0: none

	mu    sync.Mutex
	share cost.BytesPerSecond // of this process in the limit; 0: all of it
	next  time.Time           // when the pieces so far have passed
}

func newLink(limit cost.BytesPerSecond) *link { return &link{limit: limit} }

// setShare changes the share from the next piece on.
func (l *link) setShare(share cost.BytesPerSecond) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.share = share
}

// rate is what pieces pass at now; 0: no limit.
func (l *link) rate() cost.BytesPerSecond {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit > 0 && l.share > 0 {
		return min(l.limit, l.share)
	}
	return max(l.limit, l.share)
}

// piece is how much one turn copies: small enough that turns of jobs alternate, large enough to sleep well.
const piece = 64 << 10 // elements

// copy copies from into to, no faster than the link allows.
func (l *link) copy(to, from []float32) {
	for len(from) > 0 {
		rate := l.rate()
		if rate == 0 {
			copy(to, from)
			return
		}
		n := min(piece, len(from))
		copy(to[:n], from[:n])
		sleepUntil(l.turn(n*4, rate))
		to, from = to[n:], from[n:]
	}
}

// turn books the next stretch of the link for n bytes and returns its end.
func (l *link) turn(n int, rate cost.BytesPerSecond) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.next.Before(now) {
		l.next = now
	}
	l.next = l.next.Add(time.Duration(float64(n) / float64(rate) * 1e9))
	return l.next
}

// sleepUntil sleeps in the operating system: the caller's goroutine has a thread of its own, and Go's timers are late
// when all cores are busy.
func sleepUntil(t time.Time) {
	for {
		left := time.Until(t)
		if left <= 0 {
			return
		}
		wait := syscall.NsecToTimespec(int64(left))
		_ = syscall.Nanosleep(&wait, nil) // interrupted: the loop sleeps the rest
	}
}
