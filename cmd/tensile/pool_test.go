package main

import (
	"math"
	"testing"
	"time"

	"tensile/pool"
	"tensile/pool/trace"
)

// What to do about a capacity that is missed depends on why.
func TestPoolVerdict(t *testing.T) {
	for _, c := range []struct {
		flags    poolFlags
		layout   pool.Layout
		capacity int64
		want     string
	}{
		{poolFlags{method: "search"}, pool.Layout{Height: 10, LowerBound: 8}, 0, ""},
		{poolFlags{method: "search"}, pool.Layout{Height: 10, LowerBound: 8}, 10, ""},
		{poolFlags{method: "search"}, pool.Layout{Height: 10, LowerBound: 8}, 9,
			"f: the layout needs 10 bytes, 1 more than --capacity 9: search longer with --deadline 1m, or give it 10"},
		{poolFlags{method: "search", deadline: time.Minute}, pool.Layout{Height: 10, LowerBound: 8}, 8,
			"f: the layout needs 10 bytes, 2 more than --capacity 8: search longer than --deadline 1m0s, or give it 10"},
		{poolFlags{method: "online"}, pool.Layout{Height: 10, LowerBound: 8}, 8,
			"f: the layout needs 10 bytes, 2 more than --capacity 8: try --method search, or give it 10"},
		{poolFlags{method: "search"}, pool.Layout{Height: 10, LowerBound: 8, Optimal: true}, 8,
			"f: the layout needs 10 bytes, 2 more than --capacity 8: no layout is lower; give it that, or free something sooner"},
		{poolFlags{method: "search"}, pool.Layout{Height: 10, LowerBound: 8}, 7,
			"f: the layout needs 10 bytes, 3 more than --capacity 7: no layout is below 8; give it that at least, or free something sooner"},
	} {
		got := ""
		if err := c.flags.verdict("f", c.layout, c.capacity, nil); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v, %+v, capacity %d: %q, want %q", c.flags, c.layout, c.capacity, got, c.want)
		}
	}
}

func TestAddressBytes(t *testing.T) {
	malloc := func(block string, bytes int64) trace.Event {
		return trace.Event{Kind: trace.Malloc, Block: block, Bytes: bytes}
	}
	free := func(block string) trace.Event { return trace.Event{Kind: trace.Free, Block: block} }
	for _, c := range []struct {
		trace trace.Trace
		from  int
		want  int64
	}{
		{nil, 0, 0},
		{trace.Trace{malloc("0x10", 4), free("0x10"), malloc("0x10", 6), malloc("0x20", 1)}, 0, 7},
		{trace.Trace{malloc("0x10", 6), free("0x10"), malloc("0x12", 2)}, 0, 6},
		{trace.Trace{malloc("0x10", 8), free("0x10"), malloc("0x14", 8)}, 0, 12},
		{trace.Trace{malloc("0x10", 8), free("0x10"), malloc("0x14", 8)}, 2, 8},
		{trace.Trace{malloc("0x10", 8), malloc("0x20", 8), free("0x10"), malloc("0x14", 1)}, 3, 9},
		{trace.Trace{malloc("0x7fffffffffffff00", 255)}, 0, 255},
		{trace.Trace{malloc("0x7fffffffffffff00", math.MaxInt64)}, 0, 0},
		{trace.Trace{malloc("0x10", 4), malloc("b", 4)}, 0, 0},
		{trace.Trace{malloc("17", 4)}, 0, 0},
	} {
		if got := addressBytes(c.trace, c.from); got != c.want {
			t.Errorf("%v from %d: %d, want %d", c.trace, c.from, got, c.want)
		}
	}
}
