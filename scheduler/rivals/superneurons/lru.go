package superneurons

import (
	"slices"

	"tensile/graph"
)

// lru is a list of storages, the most recently used at the front (algorithm 2). The zero place is its head.
type lru struct{ next, prev []int32 }

func newLRU(storages int) lru {
	l := lru{slices.Repeat([]int32{absent}, storages+1), slices.Repeat([]int32{absent}, storages+1)}
	l.next[0], l.prev[0] = 0, 0
	return l
}

// front puts a storage at the front, wherever it was.
func (l *lru) front(s graph.StorageID) {
	l.remove(s)
	at, first := int32(s)+1, l.next[0]
	l.next[at], l.prev[at] = first, 0
	l.next[0], l.prev[first] = at, at
}

// remove takes a storage off the list, if it is there.
func (l *lru) remove(s graph.StorageID) {
	at := s + 1
	if l.next[at] == absent {
		return
	}
	l.next[l.prev[at]], l.prev[l.next[at]] = l.next[at], l.prev[at]
	l.next[at], l.prev[at] = absent, absent
}

// leastRecent returns the least recently used storage that may leave, or absent.
func (l *lru) leastRecent(may func(graph.StorageID) bool) graph.StorageID {
	for at := l.prev[0]; at != 0; at = l.prev[at] {
		if s := graph.StorageID(at - 1); may(s) {
			return s
		}
	}
	return absent
}
