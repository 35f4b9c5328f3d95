package swapexec

import (
	"testing"
	"time"

	"tensile/plan/program"
)

// Of copies that end together the first wait's has the stall, and a copy has it before the loader: one of them, not
// both.
func TestBlameOfTies(t *testing.T) {
	out, in, load := program.Point{Stream: program.Stream(program.CopyOut), Count: 1},
		program.Point{Stream: program.Stream(program.CopyIn), Count: 1},
		program.Point{Stream: program.Stream(program.Host), Count: 1}
	for _, test := range []struct {
		waits   []program.Point
		in, out int
	}{
		{[]program.Point{out, in, load}, 0, 25},
		{[]program.Point{in, out, load}, 25, 0},
		{[]program.Point{out, in}, 0, 25},
		{[]program.Point{load, in}, 0, 0},
	} {
		s := section("load", "in", "out", "kernel")
		s.Commands[3].Waits = test.waits
		copies := Account(s, timeline(s, 5, 30, 10, 30, 10, 30, 30, 31), timeline(s, 0, 0, 0, 0, 0, 0, 0, 5), nil)
		if copies[0].Stall != time.Duration(test.in) || copies[1].Stall != time.Duration(test.out) {
			t.Errorf("waits %v: stalls %v and %v, want %d and %d", test.waits, copies[0].Stall, copies[1].Stall,
				test.in, test.out)
		}
	}
}
