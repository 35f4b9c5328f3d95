package text

import (
	"strings"
	"unicode/utf8"
)

// Line makes one line of a text: its lines are joined by semicolons. Of more than limit bytes it keeps the beginning,
// and " ..." follows.
func Line(s string, limit int) string {
	short, cut := Clip(strings.ReplaceAll(s, "\n", "; "), limit)
	if cut {
		short += " ..."
	}
	return short
}

// Clip returns the beginning of a text, at most limit bytes that end with a whole character, and whether that is not
// all.
func Clip(s string, limit int) (short string, cut bool) {
	if len(s) <= limit {
		return s, false
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], true
}
