package text

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Line makes one line of a text, as Shown does: its lines are joined by semicolons. Of more than limit bytes it keeps
// the beginning, and " ..." follows.
func Line(s string, limit int) string {
	short, cut := Clip(Shown(strings.ReplaceAll(s, "\n", "; ")), limit)
	if cut {
		short += " ..."
	}
	return short
}

// Shown is what others say in one line that only prints: nothing in it moves the cursor, changes colours or turns the
// direction of writing. A tab is a blank.
func Shown(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !strconv.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, s)
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
