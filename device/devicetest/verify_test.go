package devicetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tensile/device"
	"tensile/plan/compile"
	"tensile/plan/program"
)

// notes is a test that keeps its complaints.
type notes struct {
	testing.TB
	lines []string
}

func (n *notes) Helper() {}
func (n *notes) Errorf(format string, args ...any) {
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}
func (n *notes) Fatalf(format string, args ...any) {
	n.Errorf(format, args...)
	panic(n)
}

// TestVerify spoils a right report in several ways, and each is found.
func TestVerify(t *testing.T) {
	cases := []struct {
		name, want string
		spoil      func([]device.Event) []device.Event
	}{
		{"right", "", func(e []device.Event) []device.Event { return e }},
		{"left out", "was not reported", func(e []device.Event) []device.Event { return e[:len(e)-1] }},
		{"twice", "reported twice", func(e []device.Event) []device.Event { return append(e, e[0]) }},
		{"order of reports", "against the order of its lane", func(e []device.Event) []device.Event {
			i, j := computeEvents(e)
			e[i], e[j] = e[j], e[i]
			return e
		}},
		{"too early", "before the end of", func(e []device.Event) []device.Event {
			_, j := computeEvents(e)
			e[j].Ready -= time.Nanosecond
			return e
		}},
		{"wait", "against a wait", func(e []device.Event) []device.Event {
			e[lastOf(e, program.In)].Ready = e[0].Start
			return e
		}},
		{"drain", "against a drain", func(e []device.Event) []device.Event {
			e[len(e)-1].Ready = e[0].Start
			return e
		}},
		{"backwards", "start", func(e []device.Event) []device.Event {
			e[0].End = e[0].Start - 1
			return e
		}},
	}
	for _, test := range cases {
		n := &notes{TB: t}
		c := &crew{t: n, d: simulated(t)}
		g := Tiny()
		s := c.open(g)
		s.train(s.load(Build(t, c.d, g, Swapped(g), compile.Options{})), 0, 2)
		c.wait()
		s.events = test.spoil(s.events)
		func() {
			defer func() {
				if r := recover(); r != nil && r != n {
					panic(r)
				}
			}()
			s.verify()
		}()
		if got := strings.Join(n.lines, "\n"); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// computeEvents returns the places of two kernels that follow each other.
func computeEvents(events []device.Event) (i, j int) {
	var places []int
	for k, e := range events {
		if e.Section.Commands[e.Index].Kind.Unit() == program.Compute {
			places = append(places, k)
		}
	}
	return places[2], places[3]
}

func lastOf(events []device.Event, kind program.Kind) int {
	last := 0
	for k, e := range events {
		if e.Section.Commands[e.Index].Kind == kind {
			last = k
		}
	}
	return last
}
