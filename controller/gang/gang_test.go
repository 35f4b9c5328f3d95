package gang

import (
	"testing"
	"time"

	_ "tensile/internal/long"
)

// Replicas rest after more iterations than any has begun, two at least and those of a second. If they heard too late,
// the margin is twice the one before, but not more than lies between two checkpoints.
func TestRestPoint(t *testing.T) {
	for _, c := range []struct {
		replicas   []Progress
		late       bool
		at, margin int
	}{
		{replicas: []Progress{{Begun: 6}, {Begun: 7}}, at: 9, margin: 2},
		{replicas: []Progress{{Begun: 6, Margin: 2}, {Begun: 9}}, late: true, at: 13, margin: 4},
		{replicas: []Progress{{Iteration: time.Second / 10}, {Begun: 1, Iteration: time.Second}}, at: 13, margin: 12},
		{replicas: []Progress{{Margin: 8, Iteration: time.Second, Every: 5 * time.Second}}, late: true, at: 5,
			margin: 5},
		{replicas: []Progress{{Margin: 8, Every: 5 * time.Second}}, late: true, at: 16, margin: 16},
	} {
		if at, margin := RestPoint(c.replicas, c.late); at != c.at || margin != c.margin {
			t.Errorf("%+v: they rest after %d, with a margin of %d", c, at, margin)
		}
	}
}

// Replicas go on from the newest checkpoint that all have, also one within a run of which only the ends are known.
func TestNewestCommon(t *testing.T) {
	a := Checkpoints{}.Add(Run{5, 5}).Add(Run{10, 20})
	for iteration, want := range map[int]bool{5: true, 10: true, 12: false, 15: true, 20: true, 25: false} {
		if a.Contains(iteration, 5) != want {
			t.Errorf("there is one after %d: %v", iteration, !want)
		}
	}
	for _, c := range []struct{ from, b, want int }{{0, 5, 5}, {0, 12, 0}, {0, 15, 15}, {15, 15, 15}, {7, 5, 7}} {
		if got := NewestCommon(c.from, []Checkpoints{a, {{c.b, c.b}}}, 5); got != c.want {
			t.Errorf("from %d, and the other has %d: %d, want %d", c.from, c.b, got, c.want)
		}
	}
	if a = a.Add(Run{5, 25}); len(a) != 1 || len(a.Trim(24)) != 1 || len(a.Trim(25)) != 0 {
		t.Errorf("%v is not the longer run alone", a)
	}
}
