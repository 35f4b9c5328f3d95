package main

import (
	"testing"
	"time"

	"tensile/plan/pool"
)

// What to do about a capacity that is missed depends on why.
func TestPoolVerdict(t *testing.T) {
	for _, c := range []struct {
		flags    poolFlags
		layout   pool.Layout
		needs    int64
		capacity int64
		want     string
	}{
		{poolFlags{method: "search"}, pool.Layout{Height: 10, LowerBound: 8}, 0, 0, ""},
		{poolFlags{method: "search"}, pool.Layout{Height: 10, LowerBound: 8}, 0, 10, ""},
		{poolFlags{method: "search"}, pool.Layout{Height: 10, LowerBound: 8}, 0, 9,
			"f: the layout needs 10 bytes, 1 more than --capacity 9: search longer with --deadline 1m, or give it 10"},
		{poolFlags{method: "search", deadline: time.Minute}, pool.Layout{Height: 10, LowerBound: 8}, 0, 8,
			"f: the layout needs 10 bytes, 2 more than --capacity 8: search longer than --deadline 1m0s, or give it " +
				"10"},
		{poolFlags{method: "online"}, pool.Layout{Height: 10, LowerBound: 8}, 0, 8,
			"f: the layout needs 10 bytes, 2 more than --capacity 8: try --method search, or give it 10"},
		{poolFlags{method: "search"}, pool.Layout{Height: 10, LowerBound: 8, Optimal: true}, 0, 8,
			"f: the layout needs 10 bytes, 2 more than --capacity 8: no layout is lower; give it that, or free " +
				"something sooner"},
		{poolFlags{method: "search"}, pool.Layout{Height: 10, LowerBound: 8}, 0, 7,
			"f: the layout needs 10 bytes, 3 more than --capacity 7: no layout is below 8; give it that at least, " +
				"or free something sooner"},
		{poolFlags{method: "search"}, pool.Layout{Height: 10, LowerBound: 10}, 12, 10,
			"f: the record needs 12 bytes before or after the iterations, where nothing is swapped, 2 more than " +
				"--capacity 10: give it that"},
		{poolFlags{method: "search"}, pool.Layout{Height: 10, LowerBound: 10}, 12, 12, ""},
	} {
		got := ""
		if err := c.flags.verdict(&packing{name: "f", needs: c.needs}, c.layout, c.capacity, nil); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v, %+v, capacity %d: %q, want %q", c.flags, c.layout, c.capacity, got, c.want)
		}
	}
}
