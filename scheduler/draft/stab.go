package draft

import (
	"math/bits"
	"slices"
)

// stabbing finds, of all intervals of slots that cover a slot and were not removed, the one with the lowest rank. It
// is an interval tree over powers of two: an interval lies in the one node whose middle it contains, and each node
// has its intervals once by begin and once by end, with the lowest rank of every prefix a tree of minima away. It
// takes linear memory; a query takes a logarithm of the slots times one of the intervals at most, and most often far
// less.
type stabbing struct {
	levels    int
	intervals []interval
	first     []int32 // per key: its first interval; those of a key follow each other
	at        []int32 // per place in the tree: its node, or -1 where nothing lies
	nodes     []stabNode
}

// interval is a range of slots, both ends included, of something that is known by a key and ranked.
type interval struct {
	low, high int32
	key, rank int32
	byLow     int32 // its places in the lists of its node
	byHigh    int32
	node      int32
}

type stabNode struct {
	low, high prefixes
}

// prefixes is a list of intervals in the order of one end, and a tree of minima of their ranks.
type prefixes struct {
	ends   []int32 // ascending; those of the high ends are negated
	lowest []int32 // 1-based heap: leaf i is len(ends)+i
}

const gone = 1<<31 - 1

// newStabbing returns the index of intervals over slots [0, slots), which it keeps. Keys count from 0, ascending; ranks
// differ but for those of one key.
func newStabbing(slots, keys int, intervals []interval) *stabbing {
	s := &stabbing{levels: bits.Len(uint(max(1, slots))), intervals: intervals, first: make([]int32, keys+1)}
	s.at = slices.Repeat([]int32{-1}, 2<<s.levels)
	var count []int32 // per node
	for i := range intervals {
		x := &intervals[i]
		s.first[x.key+1] = int32(i + 1)
		place := s.place(x)
		if s.at[place] < 0 {
			s.at[place] = int32(len(count))
			count = append(count, 0)
		}
		x.node = s.at[place]
		count[x.node]++
	}
	ends := make([]int32, 2*len(intervals))
	lowest := make([]int32, 4*len(intervals))
	s.nodes = make([]stabNode, 0, len(count))
	for _, n := range count {
		s.nodes = append(s.nodes, stabNode{prefixes{ends[:0:n], lowest[: 2*n : 2*n]}, prefixes{ends[n : n : 2*n],
			lowest[2*n : 4*n : 4*n]}})
		ends, lowest = ends[2*n:], lowest[4*n:]
	}
	for _, i := range sortedBy(intervals, slots, func(x *interval) int32 { return x.low }) {
		x := &intervals[i]
		x.byLow = s.nodes[x.node].low.add(x.low, x.rank)
	}
	for _, i := range sortedBy(intervals, slots, func(x *interval) int32 { return int32(slots) - 1 - x.high }) {
		x := &intervals[i]
		x.byHigh = s.nodes[x.node].high.add(-x.high, x.rank)
	}
	for i := range s.nodes {
		s.nodes[i].low.build()
		s.nodes[i].high.build()
	}
	return s
}

// sortedBy returns the numbers of the intervals in the order of something that is a slot.
func sortedBy(intervals []interval, slots int, by func(*interval) int32) []int32 {
	next := make([]int32, slots+1)
	for i := range intervals {
		next[by(&intervals[i])+1]++
	}
	for slot := range slots {
		next[slot+1] += next[slot]
	}
	order := make([]int32, len(intervals))
	for i := range intervals {
		slot := by(&intervals[i])
		order[next[slot]] = int32(i)
		next[slot]++
	}
	return order
}

// place returns the place of an interval in the tree: on the level of the highest bit in which its ends differ, that
// of their common higher bits.
func (s *stabbing) place(x *interval) int32 {
	level := bits.Len32(uint32(x.low ^ x.high))
	return 1<<(s.levels-level) + x.low>>level
}

func (p *prefixes) add(end, rank int32) int32 {
	p.ends = append(p.ends, end)
	p.lowest[cap(p.ends)+len(p.ends)-1] = rank
	return int32(len(p.ends) - 1)
}

func (p *prefixes) build() {
	for i := len(p.ends) - 1; i > 0; i-- {
		p.lowest[i] = min(p.lowest[2*i], p.lowest[2*i+1])
	}
}

// best returns the lowest rank of those whose end is at most a limit.
func (p *prefixes) best(limit int32) int32 {
	n, _ := slices.BinarySearch(p.ends, limit+1)
	lowest := int32(gone)
	for l, r := len(p.ends), len(p.ends)+n; l < r; l, r = l/2, r/2 {
		if l&1 == 1 {
			lowest = min(lowest, p.lowest[l])
			l++
		}
		if r&1 == 1 {
			r--
			lowest = min(lowest, p.lowest[r])
		}
	}
	return lowest
}

func (p *prefixes) remove(at int32) {
	i := len(p.ends) + int(at)
	p.lowest[i] = gone
	for i /= 2; i > 0; i /= 2 {
		p.lowest[i] = min(p.lowest[2*i], p.lowest[2*i+1])
	}
}

// best returns the lowest rank of the intervals that cover a slot, or gone.
func (s *stabbing) best(slot int) int32 {
	lowest := int32(gone)
	for level := s.levels; level >= 0; level-- {
		node := s.at[1<<(s.levels-level)+slot>>level]
		if node < 0 {
			continue
		}
		n := &s.nodes[node]
		if n.low.lowest[1] >= lowest {
			continue
		}
		if level > 0 && slot>>(level-1)&1 == 0 { // before the middle, which all intervals of the node contain
			lowest = min(lowest, n.low.best(int32(slot)))
		} else {
			lowest = min(lowest, n.high.best(int32(-slot)))
		}
	}
	return lowest
}

// remove takes the intervals of a key out. Taking them out again changes nothing.
func (s *stabbing) remove(key int32) {
	for i := s.first[key]; i < s.first[key+1]; i++ {
		x := &s.intervals[i]
		s.nodes[x.node].low.remove(x.byLow)
		s.nodes[x.node].high.remove(x.byHigh)
	}
}
