package report

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/plan/program"
)

// A drawing is well-formed whatever the job is called, and has the two curves, a bar per copy, and the peaks in its
// title.
func TestDraw(t *testing.T) {
	_, _, planned, _ := twoJobs(t, "tensile", tight)
	var out strings.Builder
	p := planned.Programs[0].Program()
	Draw(&out, "a <b> & c", []graph.Bytes{3 * graph.MiB, graph.MiB}, planned.Jobs[0].Footprint.Slots, p,
		planned.Timing(0))
	elements, title := make(map[string]int), ""
	in := xml.NewDecoder(strings.NewReader(out.String()))
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, out.String())
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local]++
		case xml.CharData:
			if s := string(token); strings.HasPrefix(s, "a <b> & c: ") {
				title = s
			}
		}
	}
	copies := 0
	for _, c := range p.Body.Commands {
		if c.Kind == program.Out || c.Kind == program.In {
			copies++
		}
	}
	if elements["path"] != 2 || copies == 0 || elements["rect"] < 5+copies { // the page, four lanes, bars
		t.Errorf("elements %v of a program with %d copies", elements, copies)
	}
	if !strings.Contains(title, "peak 3MiB without a plan, "+planned.Jobs[0].Footprint.Peak.String()+" with it") {
		t.Errorf("the title is %q", title)
	}
}
