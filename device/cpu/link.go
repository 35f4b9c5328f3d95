//go:build unix

package cpu

import (
	"sync"
	"syscall"
	"time"

	"tensile/cost"
)

// link is one copy direction. With a limit it is a token bucket without a store: each piece takes its turn at the end
// of those before it, of whichever job, so jobs that copy at the same time share the rate.
type link struct {
	rate cost.BytesPerSecond // 0: no limit

	mu   sync.Mutex
	next time.Time // when the pieces so far have passed
}

func newLink(rate cost.BytesPerSecond) *link { return &link{rate: rate} }

// piece is how much one turn copies: small enough that turns of jobs alternate, large enough to sleep well.
const piece = 64 << 10 // elements

// copy copies from into to, no faster than the link allows.
func (l *link) copy(to, from []float32) {
	if l.rate == 0 {
		copy(to, from)
		return
	}
	for len(from) > 0 {
		n := min(piece, len(from))
		copy(to[:n], from[:n])
		sleepUntil(l.turn(n * 4))
		to, from = to[n:], from[n:]
	}
}

// turn books the next stretch of the link for n bytes and returns its end.
func (l *link) turn(n int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.next.Before(now) {
		l.next = now
	}
	l.next = l.next.Add(time.Duration(float64(n) / float64(l.rate) * 1e9))
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
