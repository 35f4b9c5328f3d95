package proof

import (
	"testing"

	"tensile/plan/program"
)

// A set of pages is ascending ranges that are not empty and do not touch, within a limit.
func TestPagesWellFormed(t *testing.T) {
	for _, c := range []struct {
		pages program.Pages
		want  bool
	}{
		{nil, true},
		{program.Pages{{From: 0, To: 1}}, true},
		{program.Pages{{From: 0, To: 1}, {From: 2, To: 10}}, true},
		{program.Pages{{From: 2, To: 11}}, false},                  // above the limit
		{program.Pages{{From: -1, To: 1}}, false},                  // below the arena
		{program.Pages{{From: 0, To: 1}, {From: 1, To: 2}}, false}, // touching
		{program.Pages{{From: 0, To: 2}, {From: 1, To: 3}}, false},
		{program.Pages{{From: 4, To: 5}, {From: 0, To: 1}}, false},
		{program.Pages{{From: 3, To: 3}}, false},
		{program.Pages{{From: 4, To: 3}}, false},
	} {
		if got := wellFormed(c.pages, 10); got != c.want {
			t.Errorf("%v below 10: well formed is %v, want %v", c.pages, got, c.want)
		}
	}
}
