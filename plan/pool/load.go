package pool

import (
	"math"
	"math/bits"
)

// Load returns the largest sum of sizes over any slot, in bytes, a group counting with its largest: no layout is lower.
// It expects buffers that Pack accepts; where the sizes add up to more than an int64 holds it returns math.MaxInt64.
// O(n log n) for n spans.
func Load(buffers []Buffer) int64 {
	var total int64
	for _, b := range buffers {
		if b.Size > math.MaxInt64-total {
			return math.MaxInt64
		}
		total += max(b.Size, 0)
	}
	var largest int64
	buffers = apart(buffers)
	for _, load := range columnLoads(newColumns(buffers), buffers) {
		largest = max(largest, load)
	}
	return largest
}

// columnLoads returns the sum of sizes in each column. The sum of all sizes fits in an int64.
func columnLoads(c columns, buffers []Buffer) []int64 {
	loads := make([]int64, c.count()+1) // at first the difference to the column before
	for _, b := range buffers {
		if b.Size <= 0 {
			continue
		}
		for _, s := range b.Spans {
			s = c.of(s)
			loads[s.From] += b.Size
			loads[s.To] -= b.Size
		}
	}
	for i := 1; i < len(loads); i++ {
		loads[i] += loads[i-1]
	}
	return loads[:c.count()]
}

// peaks answers what the largest load of a span is. peaks[k][i] is the largest of the 2^k loads from i on.
type peaks [][]int64

func newPeaks(loads []int64) peaks {
	p := peaks{loads}
	for half := 1; 2*half <= len(loads); half *= 2 {
		below := p[len(p)-1]
		row := make([]int64, len(loads)-2*half+1)
		for i := range row {
			row[i] = max(below[i], below[i+half])
		}
		p = append(p, row)
	}
	return p
}

// of is the largest load in a span of columns that is not empty.
func (p peaks) of(s Span) int64 {
	k := bits.Len(uint(s.To-s.From)) - 1
	return max(p[k][s.From], p[k][s.To-1<<k])
}
