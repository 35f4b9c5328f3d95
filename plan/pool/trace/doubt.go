package trace

import (
	"fmt"
	"math/bits"
)

const (
	mostPasses = 8       // passes that may come before the first of two iterations, if they are alike
	tiny       = 32      // the part of an iteration that may follow the last one whatever it is
	compared   = 1 << 14 // mallocs of a pass that are looked for in another: bounds memory
)

// doubt says why what repeats is no iteration of the whole record, or nothing. r has the period before it was
// lengthened, which is one pass; it is what repeats.
//
// What comes before must be no events, blocks that stay and events of a pass, or a whole first pass, which does all
// that the others do and perhaps more: it may be much longer. What comes after must be frees, another pass, or next to
// nothing. All that must not be more than what repeats, but for a first pass. So layers within a recording of one pass
// are no iterations: what comes after the last of them, a head or another kind of layer, is no layer.
func (h *history) doubt(t Trace, r run, it Iteration, held int) string {
	blocks, bytes := h.growth(t, r)
	switch {
	case r.period == 0:
		return "nothing repeats"
	case bytes > 0:
		return fmt.Sprintf("each time leaves %d bytes more than it found", bytes)
	case bytes < 0:
		return fmt.Sprintf("each time leaves %d bytes fewer than it found", -bytes)
	case blocks != 0:
		return "each time leaves another number of blocks than it found"
	}
	if n := h.outliving(t, it); n == 1 {
		return "one of its blocks lives for longer"
	} else if n > 0 {
		return fmt.Sprintf("%d of its blocks live for longer", n)
	}
	if !h.covers(t, r, held) {
		return fmt.Sprintf("the %d events before and %d after are no passes of the same kind", r.from-held, len(t)-r.to)
	}
	return ""
}

// outliving is how many blocks of an iteration live for at least as long as one.
func (h *history) outliving(t Trace, it Iteration) int {
	mallocs, frees := 0, 0
	for i := it.From; i < it.From+it.Events; i++ {
		if t[i].Kind == Malloc && h.freed[i]-i >= it.Events {
			mallocs++
		}
		if t[i].Kind == Free && i-h.malloc[i] >= it.Events {
			frees++
		}
	}
	return max(mallocs, frees)
}

// covers reports whether a record consists of what repeats: see doubt.
func (h *history) covers(t Trace, r run, held int) bool {
	before, after := r.from-held, len(t)-r.to
	pass := sizes(t[r.to-r.period : r.to])
	next := sizes(t[r.to:])
	switch {
	case len(next) == 0 || tiny*after <= r.period:
	case after > 2*r.period || !contains(next, pass):
		return false
	}
	if before+after <= r.length() && h.continues(t, r, held) {
		return true
	}
	return before+after <= max(r.length(), mostPasses*r.period) && contains(sizes(t[held:r.from]),
		sizes(t[r.from:r.from+r.period]))
}

// continues reports whether what comes before a run goes over into it: nothing that is of the record, a part of a pass
// but for blocks from before the record, or mallocs of which at least half stay throughout or are those of passes.
func (h *history) continues(t Trace, r run, held int) bool {
	lead := held
	if held == 0 { // what was there before stands at the start, and cannot be told from what comes
		for lead < r.from && t[lead].Kind == Malloc {
			lead++
		}
	}
	from := r.from
	for from > lead && h.resembles(t, from-1, r.period, lead) {
		from--
	}
	if from <= lead {
		return true
	}
	stay := 0
	var others []int64
	for m := held; m < r.from; m++ {
		if t[m].Kind == Malloc && h.freed[m] >= r.to {
			stay++
		} else if t[m].Kind == Malloc {
			others = append(others, t[m].Bytes)
		}
	}
	others = others[max(0, len(others)-compared):]
	return 2*(stay+common(others, sizes(t[r.from:r.to]))) >= stay+len(others)
}

// resembles reports whether event i is like the one a period later, or would be if it knew when a block from before the
// record was malloced.
func (h *history) resembles(t Trace, i, period, lead int) bool {
	j := i + period
	return t[i].Kind == t[j].Kind && h.size(t, i) == h.size(t, j) &&
		(t[i].Kind == Malloc || h.malloc[i] < lead || h.relate(t, i, period) != unlike)
}

// sizes are those of the mallocs in a trace.
func sizes(t Trace) []int64 {
	var all []int64
	for _, e := range t {
		if e.Kind == Malloc {
			all = append(all, e.Bytes)
		}
	}
	return all
}

// contains reports whether nine tenths of a pass stand in a sequence in their order.
func contains(sequence, pass []int64) bool {
	pass = pass[:min(len(pass), compared)]
	return 10*common(pass, sequence) >= 9*len(pass)
}

// common is the length of the longest common subsequence of two sequences: a bit per element of a is 0 once it is part
// of one (Hyyrö, Bit-parallel LCS-length computation revisited, 2004). It takes O(len(a) len(b) / 64) steps and
// O(len(a)^2 / 64) words.
func common(a, b []int64) int {
	words := (len(a) + 63) / 64
	at := make(map[int64][]uint64, len(a)) // where a has an element
	for i, x := range a {
		if at[x] == nil {
			at[x] = make([]uint64, words)
		}
		at[x][i/64] |= 1 << (i % 64)
	}
	rest := make([]uint64, words)
	for i := range rest {
		rest[i] = ^uint64(0)
	}
	for _, x := range b {
		var carry uint64
		for i, has := range at[x] {
			match := rest[i] & has
			var sum uint64
			sum, carry = bits.Add64(rest[i], match, carry)
			rest[i] = sum | rest[i]&^match
		}
	}
	n := 0
	for i := range a {
		n += int(^rest[i/64] >> (i % 64) & 1)
	}
	return n
}
