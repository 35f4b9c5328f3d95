package planner

import (
	"strings"
	"testing"
)

// A job is told what it can count on: to train with the others, to take turns, to wait, or that it never fits.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		admission Admission
		want      Verdict
		why       string
	}{
		{Admission{Budget: 100, Least: 90, EOR: 0.95, Alone: 60}, AtOnce, "90B together, of 100B, and take 0.950"},
		{Admission{Budget: 100, Least: 100, EOR: 1, Alone: 60, Turns: true}, AtOnce, "take 1.000"},
		{Admission{Budget: 100, Least: 90, EOR: 1.1, Alone: 60}, AtOnce, "take 1.100"},
		{Admission{Budget: 100, Least: 90, EOR: 1.1, Alone: 60, Turns: true}, Alternating, "but would take 1.100"},
		{Admission{Budget: 100, Least: 110, Alone: 60, Turns: true}, Alternating, "together need 110B, of 100B"},
		{Admission{Budget: 100, Least: 110, Alone: 60}, Queued, "waits until others are done"},
		{Admission{Budget: 100, Least: 130, Alone: 110, Turns: true}, Never, "needs 110B alone"},
	} {
		if got, why := c.admission.Verdict(); got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%+v: %s, %q; want %s, %q", c.admission, got, why, c.want, c.why)
		}
	}
}
