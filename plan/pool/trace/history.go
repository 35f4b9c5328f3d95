package trace

import (
	"fmt"
	"math"
)

// never is the index of an event that does not come.
const never = math.MaxInt

// history says, by event, which block it is about: blocks are told apart by their mallocs, since ids are used again.
type history struct {
	malloc []int // per event: the index of its block's malloc
	freed  []int // per event that is a malloc: the index of the block's free, or never
}

// newHistory checks a trace; the error names the first event that does not fit.
func newHistory(t Trace) (*history, error) {
	h := &history{malloc: make([]int, len(t)), freed: make([]int, len(t))}
	known := newLedger()
	present := make(map[string]int)
	for i, e := range t {
		if err := known.add(e); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
		if e.Kind == Malloc {
			present[e.Block], h.freed[i] = i, never
		}
		h.malloc[i] = present[e.Block]
		if e.Kind == Free {
			h.freed[h.malloc[i]] = i
			delete(present, e.Block)
		}
	}
	return h, nil
}

// size is that of the block of event i, in bytes.
func (h *history) size(t Trace, i int) int64 { return t[h.malloc[i]].Bytes }

// labels gives each event a number. Two events that stand for each other in two iterations have equal labels: equal
// kinds, equal sizes and, if they are frees, blocks of equal age, counted in events. The age of what is read or written
// is left out, since that of a block which outlives the iterations differs from one to the next.
func (h *history) labels(t Trace) []int32 {
	type label struct {
		kind Kind
		size int64
		age  int
	}
	numbers := make(map[label]int32)
	labels := make([]int32, len(t))
	for i, e := range t {
		l := label{kind: e.Kind, size: h.size(t, i)}
		if e.Kind == Free {
			l.age = i - h.malloc[i]
		}
		number, ok := numbers[l]
		if !ok {
			number = int32(len(numbers))
			numbers[l] = number
		}
		labels[i] = number
	}
	return labels
}

// relation is how two events an iteration apart belong together.
type relation uint8

const (
	unlike relation = iota
	moving          // the block of the later one was malloced an iteration after that of the earlier one
	fixed           // both are about one block, which outlives the iteration
)

// relate compares event i with the one a period later, given that their labels are equal. Malloc and free are always
// moving then.
func (h *history) relate(t Trace, i, period int) relation {
	switch m, n := h.malloc[i], h.malloc[i+period]; {
	case n == m+period || t[i].Kind == Malloc:
		return moving
	case n == m:
		return fixed
	}
	return unlike
}
