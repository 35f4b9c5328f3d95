package draft

import (
	"slices"
	"time"

	"tensile/graph/cost"
)

// lanes are a job's share of the link, and what its draft has booked there.
//
// Several drafts may share booked lanes after a Clone. The first to book gets lanes of its own: see own.
type lanes struct {
	out, in   cost.Link
	outs, ins *lane // one and the same if the style has one channel
	shared    bool
	exact     bool // the steps are what they were when the lanes were booked: what is booked takes place as booked
}

// clone shares the lanes until either side books.
func (l *lanes) clone() lanes {
	l.shared = true
	return *l
}

// copyOnWrite makes sure that a change of the lanes has no effect on another draft.
func (l *lanes) copyOnWrite() {
	if !l.shared {
		return
	}
	l.shared = false
	if l.outs == l.ins {
		l.outs = l.outs.clone()
		l.ins = l.outs
		return
	}
	l.outs, l.ins = l.outs.clone(), l.ins.clone()
}

// oneChannel reports whether both directions share a lane.
func (l *lanes) oneChannel() bool { return l.outs == l.ins }

// book takes a stretch of each lane for the two copies of a swap; a copy that takes no time needs none.
func (l *lanes) book(send, fetch stretch) {
	if send.from == send.to && fetch.from == fetch.to {
		return
	}
	l.copyOnWrite()
	l.outs.book(send.from, send.to-send.from)
	l.ins.book(fetch.from, fetch.to-fetch.from)
}

// lane is the use of one copy lane over an iteration that repeats: what is booked in [0, period) is booked in every
// period. Free time is kept for two periods, so that a gap that wraps lies in one piece.
type lane struct {
	period time.Duration
	free   *freeList
}

type stretch struct{ from, to time.Duration }

// never is later than all that a lane knows.
const never = time.Duration(1) << 62

func (l *lane) clone() *lane {
	free := *l.free
	free.nodes = slices.Clone(free.nodes)
	return &lane{l.period, &free}
}

func newLane(period time.Duration) *lane { return &lane{period, newFreeList(0, never)} }

// earliest returns the first start of a free stretch of this length in [from, to). Before the iteration begins the
// times are those of the one before. What takes no time needs no lane.
func (l *lane) earliest(from, to, length time.Duration) (time.Duration, bool) {
	if length == 0 {
		return from, from <= to
	}
	if from < 0 {
		at, ok := l.earliest(from+l.period, to+l.period, length)
		return at - l.period, ok
	}
	at, ok := l.free.firstFree(from, length)
	return at, ok && at+length <= to
}

// latestStart returns the last start of a free stretch of this length in [from, to).
func (l *lane) latestStart(from, to, length time.Duration) (time.Duration, bool) {
	if length == 0 {
		return to, from <= to
	}
	if from < 0 {
		at, ok := l.latestStart(from+l.period, to+l.period, length)
		return at - l.period, ok
	}
	at, ok := l.free.final(to, length)
	return at, ok && at >= from
}

// book takes a stretch. What is booked already, or lies outside of two periods, is passed over.
func (l *lane) book(from, length time.Duration) { l.every(from, length, l.free.book) }

// release gives back a stretch that was free before it was booked.
func (l *lane) release(from, length time.Duration) { l.every(from, length, l.free.release) }

func (l *lane) every(from, length time.Duration, do func(from, to time.Duration)) {
	if length == 0 {
		return
	}
	for _, shift := range [4]time.Duration{-l.period, 0, l.period, 2 * l.period} {
		if s := (stretch{max(0, from+shift), min(2*l.period, from+length+shift)}); s.from < s.to {
			do(s.from, s.to)
		}
	}
}

// following returns the end of the free stretch that begins at a time or around it.
func (l *lane) following(at time.Duration) time.Duration {
	if at < 0 {
		return l.following(at+l.period) - l.period
	}
	_, end, _ := l.free.nextFree(at)
	return end
}
