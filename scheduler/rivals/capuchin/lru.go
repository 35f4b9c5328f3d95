package capuchin

import (
	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/rivals/each"
	"tensile/scheduler/rivals/replay"
)

// LRU is Capuchin's passive mode alone: what an op needs and is not on the device is copied in on demand, and when
// that does not fit, what was not used for longest is copied out first.
func LRU(s *draft.Session) (scheduler.Result, error) {
	if _, err := s.Request.CheckFirstWorkingSets(); err != nil {
		return scheduler.Result{}, err
	}
	return each.Plan(s, func(i int, part each.Part) (*plan.Plan, error) { return passivePlan(s, i, part.Capacity) })
}

// lru has what was not used for longest leave. Storages are in a ring, in the order of their last use.
type lru struct {
	s          *draft.Session
	next, prev []int32 // of each storage in the ring; the last place is the ring's begin and end
	offered    []bool
}

func newLRU(s *draft.Session, storages int) *lru {
	l := &lru{s: s, next: make([]int32, storages+1), prev: make([]int32, storages+1), offered: make([]bool, storages)}
	for i := range l.next {
		l.next[i], l.prev[i] = int32(i), int32(i)
	}
	return l
}

func (l *lru) Used(s graph.StorageID) {
	l.Left(s)
	end := int32(len(l.next) - 1)
	last := l.prev[end]
	l.next[last], l.prev[s], l.next[s], l.prev[end] = int32(s), last, end, int32(s)
}

func (l *lru) Left(s graph.StorageID) {
	before, after := l.prev[s], l.next[s]
	l.next[before], l.prev[after] = after, before
	l.next[s], l.prev[s] = int32(s), int32(s)
}

func (l *lru) Victim(candidates []replay.Candidate) graph.StorageID {
	l.s.Count(len(candidates))
	for _, c := range candidates {
		l.offered[c.Storage] = true
	}
	victim := l.next[len(l.next)-1]
	for !l.offered[victim] {
		victim = l.next[victim]
	}
	for _, c := range candidates {
		l.offered[c.Storage] = false
	}
	return graph.StorageID(victim)
}
