package program

import "testing"

// A set of pages is ascending ranges that are not empty and do not touch, within a limit.
func TestPagesWellFormed(t *testing.T) {
	for _, c := range []struct {
		pages Pages
		want  bool
	}{
		{nil, true},
		{Pages{{0, 1}}, true},
		{Pages{{0, 1}, {2, 10}}, true},
		{Pages{{2, 11}}, false},        // above the limit
		{Pages{{-1, 1}}, false},        // below the arena
		{Pages{{0, 1}, {1, 2}}, false}, // touching
		{Pages{{0, 2}, {1, 3}}, false},
		{Pages{{4, 5}, {0, 1}}, false},
		{Pages{{3, 3}}, false},
		{Pages{{4, 3}}, false},
	} {
		if got := wellFormed(c.pages, 10); got != c.want {
			t.Errorf("%v below 10: well formed is %v, want %v", c.pages, got, c.want)
		}
	}
}
