package text

import (
	"fmt"
	"slices"
	"strings"
)

// Suggest returns " did you mean a, b?" with the known names that someone may mean who gave another one: those that
// begin with it, eight at most, or else the nearest by edit distance, if that is two at most. "": none is near.
func Suggest(name string, known []string) string {
	if name == "" || len(known) == 0 {
		return ""
	}
	const most = 8
	var near []string
	for _, k := range known {
		if strings.HasPrefix(k, name) && len(near) < most {
			near = append(near, k)
		}
	}
	if near == nil {
		nearest := slices.MinFunc(known, func(a, b string) int { return distance(a, name) - distance(b, name) })
		if d := distance(nearest, name); d > 2 || d >= len(name) {
			return ""
		}
		near = []string{nearest}
	}
	return fmt.Sprintf(" did you mean %s?", strings.Join(near, ", "))
}

// distance is the number of bytes to insert, delete or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // distances of the prefix of a so far to every prefix of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
