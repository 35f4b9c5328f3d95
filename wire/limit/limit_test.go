package limit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	_ "tensile/internal/long" // the flag -long
)

// Of many lines a few are said, and all are counted.
func TestLines(t *testing.T) {
	var l Lines
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var got []string
	for i := range 100_000 { // a hundred seconds
		now := start.Add(time.Duration(i) * time.Millisecond)
		if text, ok := l.Add(now, "a report of lab", fmt.Sprint("line ", i)); ok {
			got = append(got, text)
		}
	}
	if len(got) != 10 || got[0] != "line 0" || got[1] != "line 10000 (and 9999 more like it)" {
		t.Errorf("of 100,000 lines in 100 s these were said: %q", got)
	}
	if text, ok := l.Add(start, "a report of other", "another sender"); !ok || text != "another sender" {
		t.Errorf("a line of another kind: %q, %v", text, ok)
	}
	if due := l.Due(start.Add(95 * time.Second)); len(due) != 0 {
		t.Errorf("within the interval it is said %q", due)
	}
	want := []string{"a report of lab: 9999 more lines like the last one"}
	if due := l.Due(start.Add(101 * time.Second)); !slices.Equal(due, want) {
		t.Errorf("after the last line it is said %q, want %q", due, want)
	}
	if len(l.kinds) != 0 {
		t.Errorf("%d kinds are remembered", len(l.kinds))
	}
	for i := range 10 * mostKinds {
		l.Add(start, fmt.Sprint(i), "x")
	}
	if len(l.kinds) > mostKinds {
		t.Errorf("%d kinds are remembered", len(l.kinds))
	}
}
