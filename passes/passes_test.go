package passes

import (
	"slices"
	"strings"
	"testing"
)

// TestParse reads choices of passes, and refuses what is none.
func TestParse(t *testing.T) {
	all := Names()
	for text, want := range map[string][]string{
		"": nil, "none": nil, "all": all, strings.Join(all, ","): all,
	} {
		if got, err := Parse(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"fast", "all,none", ",", " all"} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "unknown pass") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
