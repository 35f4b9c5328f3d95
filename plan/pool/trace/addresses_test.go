package trace

import (
	"math"
	"testing"

	_ "tensile/internal/long" // the flag -long
)

func TestAddressBytes(t *testing.T) {
	malloc := func(block string, bytes int64) Event {
		return Event{Kind: Malloc, Block: block, Bytes: bytes}
	}
	free := func(block string) Event { return Event{Kind: Free, Block: block} }
	for _, c := range []struct {
		trace Trace
		from  int
		want  int64
	}{
		{nil, 0, 0},
		{Trace{malloc("0x10", 4), free("0x10"), malloc("0x10", 6), malloc("0x20", 1)}, 0, 7},
		{Trace{malloc("0x10", 6), free("0x10"), malloc("0x12", 2)}, 0, 6},
		{Trace{malloc("0x10", 8), free("0x10"), malloc("0x14", 8)}, 0, 12},
		{Trace{malloc("0x10", 8), free("0x10"), malloc("0x14", 8)}, 2, 8},
		{Trace{malloc("0x10", 8), malloc("0x20", 8), free("0x10"), malloc("0x14", 1)}, 3, 9},
		{Trace{malloc("0x7fffffffffffff00", 255)}, 0, 255},
		{Trace{malloc("0x7fffffffffffff00", math.MaxInt64)}, 0, 0},
		{Trace{malloc("0x10", 4), malloc("b", 4)}, 0, 0},
		{Trace{malloc("17", 4)}, 0, 0},
	} {
		if got := AddressBytes(c.trace, c.from); got != c.want {
			t.Errorf("%v from %d: %d, want %d", c.trace, c.from, got, c.want)
		}
	}
}
