package trace

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// AddressBytes returns the number of different addresses that belonged to a block at event from or later, if the
// blocks' ids are addresses (0x...), else 0.
func AddressBytes(t Trace, from int) int64 {
	type byteRange struct{ lo, hi int64 }
	live := make(map[string]byteRange)
	var used []byteRange
	for i, e := range t {
		if i == from {
			used = slices.AppendSeq(used, maps.Values(live))
		}
		switch e.Kind {
		case Malloc:
			at, err := strconv.ParseInt(e.Block, 0, 64)
			if err != nil || !strings.HasPrefix(e.Block, "0x") || e.Bytes > math.MaxInt64-at {
				return 0
			}
			live[e.Block] = byteRange{at, at + e.Bytes}
			if i >= from {
				used = append(used, live[e.Block])
			}
		case Free:
			delete(live, e.Block)
		}
	}
	slices.SortFunc(used, func(a, b byteRange) int { return cmp.Compare(a.lo, b.lo) })
	var sum, end int64
	for _, r := range used {
		if r.hi > end {
			sum += r.hi - max(r.lo, end)
			end = r.hi
		}
	}
	return sum
}
