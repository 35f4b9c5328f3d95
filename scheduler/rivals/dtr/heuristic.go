package dtr

import (
	"math/bits"
	"time"

	"tensile/graph"
)

// The heuristics: what is evicted is the storage of least h = c / (m * s), of cost c, bytes m, and staleness s, the
// time since its last access. Of equal ones it is the one that was unlocked last.
const (
	DTR   = "dtr"   // c0 and the sum of c0 over e*, the evicted that it is made of and that are made of it
	Eq    = "eq"    // c0 and the sums of the classes of its evicted neighbours: about e*, in nearly constant time
	Local = "local" // c0, of the ops that make it
	LRU   = "lru"   // 1 / s
	Size  = "size"  // 1 / m
	MSPS  = "msps"  // Capuchin's: c0 and the sum over the evicted that it is made of, per byte
)

// score is a cost over a product of size and staleness.
type score struct {
	cost      uint64
	high, low uint64 // the product; 0: infinite
}

func newScore(cost time.Duration, size graph.Bytes, stale time.Duration) score {
	high, low := bits.Mul64(uint64(size), uint64(stale))
	return score{uint64(cost), high, low}
}

func (x score) infinite() bool { return x.high|x.low == 0 }

// compare is negative if x is less than y. Costs are below 2^46, a day, and products below 2^82.
func (x score) compare(y score) int {
	switch {
	case x.infinite() || y.infinite():
		return asInt(x.infinite()) - asInt(y.infinite())
	}
	h1, l1 := multiply(x.cost, y.high, y.low)
	h2, l2 := multiply(y.cost, x.high, x.low)
	switch {
	case h1 != h2:
		return 1 - 2*asInt(h1 < h2)
	case l1 != l2:
		return 1 - 2*asInt(l1 < l2)
	}
	return 0
}

func multiply(a, high, low uint64) (uint64, uint64) {
	h, l := bits.Mul64(a, low)
	return h + a*high, l
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// victim returns the storage of the pool with the least h. Where h has e*, a storage need not be looked at whose h is
// larger than the least so far with what is known of e*: evictions since it was looked at have only added to that.
func (r *runtime) victim() graph.StorageID {
	r.count(len(r.pool))
	best, least := graph.StorageID(-1), score{}
	consider := func(id graph.StorageID, h score) {
		c := -1
		if best >= 0 {
			c = h.compare(least)
		}
		if c < 0 || c == 0 && r.storages[id].unlocked > r.storages[best].unlocked {
			best, least = id, h
		}
	}
	walks := r.heuristic == DTR || r.heuristic == MSPS
	first, lowest := graph.StorageID(-1), score{} // of those to be looked at, the one that is least by what is known
	for _, id := range r.pool {
		s := &r.storages[id]
		h := r.score(s)
		if !walks || s.valid {
			consider(id, h)
		} else if first < 0 || h.compare(lowest) < 0 {
			first, lowest = id, h
		}
	}
	if first < 0 {
		return best
	}
	look := func(id graph.StorageID) {
		s := &r.storages[id]
		if s.valid || best >= 0 && r.score(s).compare(least) > 0 {
			return
		}
		s.around, s.valid = r.neighbourhood(s), true
		consider(id, r.score(s))
	}
	look(first)
	for _, id := range r.pool {
		look(id)
	}
	return best
}

// score is the h of a storage.
func (r *runtime) score(s *storage) score {
	switch r.heuristic {
	case DTR, MSPS:
		return r.scoreAt(s, s.cost+s.around)
	case Eq:
		return r.scoreAt(s, s.cost+r.classSum(s))
	}
	return r.scoreAt(s, s.cost)
}

// scoreAt is the h of a storage of some cost.
func (r *runtime) scoreAt(s *storage, cost time.Duration) score {
	stale := r.clock - s.access
	switch r.heuristic {
	case LRU:
		return newScore(1, 1, stale)
	case Size:
		return newScore(1, s.bytes, 1)
	case MSPS:
		return newScore(cost, s.bytes, 1)
	}
	return newScore(cost, s.bytes, stale)
}

// neighbourhood is the sum of c0 over e*: the evicted storages that are reached through evicted ones only, going
// from what one is made of to what that is made of, or from what is made of it on.
func (r *runtime) neighbourhood(s *storage) (sum time.Duration) {
	r.begin()
	r.push(s.parents)
	for len(r.todo) > 0 {
		if p := &r.storages[r.next()]; p.evicted() {
			sum += p.cost
			r.push(p.parents)
		}
	}
	if r.heuristic == DTR {
		r.push(s.children)
		for len(r.todo) > 0 {
			if c := &r.storages[r.next()]; c.evicted() {
				sum += c.cost
				r.push(c.children)
			}
		}
	}
	r.count(r.visited)
	return sum
}

// changed notes that a storage leaves or comes back: those whose e* it belongs to have to be looked at again. What is
// known of their e* holds as a lower bound where it leaves.
func (r *runtime) changed(id graph.StorageID, leaves bool) {
	s := &r.storages[id]
	if s.version < 0 || r.heuristic != DTR && r.heuristic != MSPS {
		return
	}
	forget := func(s *storage) {
		if s.valid = false; !leaves {
			s.around = 0
		}
	}
	forget(s)
	r.begin()
	r.push(s.parents)
	for len(r.todo) > 0 {
		if p := &r.storages[r.next()]; p.evicted() {
			r.push(p.parents)
		} else {
			forget(p)
		}
	}
	r.push(s.children)
	for len(r.todo) > 0 {
		if c := &r.storages[r.next()]; c.evicted() {
			r.push(c.children)
		} else {
			forget(c)
		}
	}
	r.count(r.visited)
}
