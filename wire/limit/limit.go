// Package limit keeps a log from being filled by one sender: of lines of one kind it lets one through per interval, and
// counts the others.
package limit

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Interval lies between two lines of one kind.
const Interval = 10 * time.Second

// mostKinds are remembered at once; a sender can make up kinds.
const mostKinds = 1000

// Lines limits lines by kind. The zero value is ready; one goroutine at a time uses it.
type Lines struct{ kinds map[string]*kind }

type kind struct {
	said time.Time // the last line
	left int       // left out since
}

// Add returns the line that is to be logged at a time; ok is false if it is left out. A line after others that were
// left out says how many.
func (l *Lines) Add(now time.Time, of, line string) (text string, ok bool) {
	k := l.kinds[of]
	switch {
	case k == nil:
		if l.kinds == nil || len(l.kinds) >= mostKinds {
			l.kinds = make(map[string]*kind)
		}
		l.kinds[of] = &kind{said: now}
		return line, true
	case now.Sub(k.said) < Interval:
		k.left++
		return "", false
	}
	text = line + k.summary()
	k.said, k.left = now, 0
	return text, true
}

func (k *kind) summary() string {
	if k.left == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more like it)", k.left)
}

// Due returns lines about what was left out of kinds that have been quiet for an interval, and forgets these.
func (l *Lines) Due(now time.Time) (lines []string) {
	for _, of := range slices.Sorted(maps.Keys(l.kinds)) {
		k := l.kinds[of]
		if now.Sub(k.said) < Interval {
			continue
		}
		if k.left > 0 {
			lines = append(lines, fmt.Sprintf("%s: %d more lines like the last one", of, k.left))
		}
		delete(l.kinds, of)
	}
	return lines
}
