package superneurons

import (
	"testing"

	"tensile/graph"
)

// TestLRU uses storages again: what was used moves to the front, however long ago it came (algorithm 2; the release
// leaves it where it is).
func TestLRU(t *testing.T) {
	l := newLRU(4)
	for _, s := range []graph.StorageID{0, 1, 2, 0, 3, 1} {
		l.front(s)
	}
	l.remove(3)
	for _, want := range []graph.StorageID{2, 0, 1, absent} {
		got := l.leastRecent(func(graph.StorageID) bool { return true })
		if got != want {
			t.Fatalf("storage %d is the least recently used, want %d", got, want)
		}
		if got != absent {
			l.remove(got)
		}
	}
}
