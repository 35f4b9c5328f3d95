package autoswap

import (
	"cmp"
	"math/bits"
	"time"

	"tensile/graph"
)

// area is bytes times nanoseconds, 0 or more.
type area struct{ high, low uint64 }

func areaOf(b graph.Bytes, d time.Duration) area {
	high, low := bits.Mul64(uint64(b), uint64(d))
	return area{high, low}
}

func (a area) plus(b area) area {
	low, carry := bits.Add64(a.low, b.low, 0)
	high, _ := bits.Add64(a.high, b.high, carry)
	return area{high, low}
}

// minus subtracts an area that is no larger.
func (a area) minus(b area) area {
	low, borrow := bits.Sub64(a.low, b.low, 0)
	high, _ := bits.Sub64(a.high, b.high, borrow)
	return area{high, low}
}

func (a area) compare(b area) int {
	return cmp.Or(cmp.Compare(a.high, b.high), cmp.Compare(a.low, b.low))
}

// float rounds the area, on every machine alike: products are rounded before they are added.
func (a area) float() float64 { return float64(float64(a.high)*(1<<64)) + float64(a.low) }
