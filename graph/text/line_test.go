package text

import (
	"testing"

	_ "tensile/internal/long" // the flag -long
)

func TestLine(t *testing.T) {
	for _, test := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"a\nb\nc", 7, "a; b; c"},
		{"a\nb\nc", 6, "a; b;  ..."},
		{"abc", 0, " ..."},
		{"näh", 2, "n ..."}, // ä has two bytes
		{"näh", 3, "nä ..."},
		{"näh", 4, "näh"},
		{"a\tb\x1b[2J\r\u009b\u202e\xff c", 99, "a b\uFFFD[2J\uFFFD\uFFFD\uFFFD\uFFFD c"},
	} {
		if got := Line(test.text, test.limit); got != test.want {
			t.Errorf("Line(%q, %d) = %q, want %q", test.text, test.limit, got, test.want)
		}
	}
}
