package capuchin

import (
	"math/bits"
	"slices"
	"time"

	"tensile/graph"
)

// maxReplay is how many ops a replay has at most.
const maxReplay = 64

// sources finds from what a candidate can be made again at its back-access, and how long that takes. A storage is there
// if it is used at that time or later (4.3, 4.4); else its own inputs are looked for. What is evicted later is left to
// recompute.
func (o *observed) sources(c *candidate) {
	c.srcs, c.replay = nil, 0
	var ops []graph.OpID
	ok := true
	var make func(s graph.StorageID)
	make = func(s graph.StorageID) {
		op := o.maker[s]
		if op == graph.NoOp || len(ops) == maxReplay {
			ok = false
			return
		}
		if slices.Contains(ops, op) {
			return
		}
		ops = append(ops, op)
		o.session.Count(8)
		for _, v := range o.reads[op] {
			switch {
			case !ok || v.Storage == c.storage:
			case o.g.Storages[v.Storage].Role.Persistent():
				ok = ok && o.current(v, c.back)
			case o.g.Storages[v.Storage].Role == graph.Input:
			case o.lastTouch(v.Storage) >= c.back && o.current(v, c.back):
				if !slices.Contains(c.srcs, v.Storage) {
					c.srcs = append(c.srcs, v.Storage)
				}
			default:
				make(v.Storage)
			}
		}
	}
	make(c.storage)
	if !ok {
		c.srcs = nil
		return
	}
	for _, op := range ops {
		c.replay += o.latency[op]
	}
	c.replay = max(1, c.replay)
}

// current reports whether a version is that of its storage before an op.
func (o *observed) current(v graph.Version, k int) bool {
	for _, use := range o.uses[v.Storage] {
		if use >= k {
			break
		}
		for _, w := range o.writes[use] {
			if w.Storage == v.Storage && w.Number > v.Number {
				return false
			}
		}
	}
	return true
}

// best is the candidate that saves most memory per second of its replay and of what it adds to others' (MSPS). Whether
// the paper's MSPS counts the latter is not confirmed.
func (o *observed) best() *candidate {
	var best *candidate
	o.session.Count(len(o.all))
	for _, c := range o.all {
		if c.done || c.replay == 0 || !o.saves(c) {
			continue
		}
		if best == nil || compareMSPS(c, best) {
			best = c
		}
	}
	return best
}

// compareMSPS compares two candidates by MSPS.
func compareMSPS(a, b *candidate) bool {
	high, low := bits.Mul64(uint64(a.bytes), uint64(b.replay+b.extra))
	otherHigh, otherLow := bits.Mul64(uint64(b.bytes), uint64(a.replay+a.extra))
	return high > otherHigh || high == otherHigh && low > otherLow
}

// recompute has a storage dropped after the evicted-access, and does the bookkeeping of Algorithm 2: what needs it for
// its own replay replays it too.
func (o *observed) recompute(t *candidate) {
	t.done = true
	o.markAbsent(t, true)
	o.session.Count(4 * len(o.all))
	ext := time.Duration(1)
	for _, p := range o.all {
		if p.done && p != t && replace(p, t) {
			ext++
		}
	}
	for _, c := range o.all {
		if c.done {
			continue
		}
		if replace(c, t) {
			c.replay += t.replay
			o.session.Count(len(o.all))
			rests := time.Duration(0)
			for _, p := range o.all {
				if p.done && slices.Contains(p.srcs, c.storage) {
					rests++
				}
			}
			c.extra = rests * c.replay
		}
		if slices.Contains(t.srcs, c.storage) {
			c.extra = ext * c.replay
		}
	}
}

// replace puts the sources of t in the place of t among those of c, if t is one and away when c is replayed.
func replace(c, t *candidate) bool {
	at := slices.Index(c.srcs, t.storage)
	if at < 0 || c.back <= t.from || c.back > t.back {
		return false
	}
	c.srcs = slices.Delete(slices.Clone(c.srcs), at, at+1)
	for _, s := range t.srcs {
		if !slices.Contains(c.srcs, s) {
			c.srcs = append(c.srcs, s)
		}
	}
	return true
}
