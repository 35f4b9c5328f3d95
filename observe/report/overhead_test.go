package report

import (
	"slices"
	"testing"
	"time"

	"tensile/controller/local"

	"github.com/google/go-cmp/cmp"
)

// watched is what was seen of a job whose iterations took so long.
func watched(walls []time.Duration) local.Watched {
	var w local.Watched
	for i, wall := range walls {
		w.Add(i, 1, wall, nil)
	}
	w.First = 0
	return w
}

func TestBlocks(t *testing.T) {
	for _, test := range []struct {
		iterations int
		want       []int
	}{
		{1, []int{1}}, {7, []int{7}}, {8, []int{4, 8}}, {10, []int{5, 10}}, {12, []int{4, 8, 12}},
		{20, []int{4, 8, 12, 16, 20}},
		{50, []int{6, 12, 18, 25, 31, 37, 43, 50}},
	} {
		if diff := cmp.Diff(test.want, Blocks(test.iterations)); diff != "" {
			t.Errorf("%d iterations (-want +got):\n%s", test.iterations, diff)
		}
	}
}

// An overhead is that of warm iterations alone, block by block, and there is none of a few iterations.
func TestOverhead(t *testing.T) {
	run := func(jobs ...[]time.Duration) *local.Run {
		var r local.Run
		for _, walls := range jobs {
			r.Jobs = append(r.Jobs, local.JobRun{Iterations: len(walls), Watched: watched(walls)})
		}
		return &r
	}
	block := func(cold, warm time.Duration) []time.Duration { return []time.Duration{cold, warm, warm, warm} }
	three := func(a, b, c time.Duration) []time.Duration {
		return slices.Concat(block(900, a), block(900, b), block(900, c))
	}
	vanilla := run(three(10, 10, 20), three(40, 40, 40))
	planned := run(three(11, 10, 24), three(40, 44, 36))
	reported := three(11, 10, 24)
	for _, i := range []int{1, 6, 9, 10, 11} { // one block has no report of a warm iteration
		reported[i] = 0
	}
	lost := run(reported, three(40, 44, 36))
	for _, test := range []struct {
		name             string
		planned, vanilla *local.Run
		job              int
		want             *spread
	}{
		{"a job", planned, vanilla, 0, &spread{45.0 / 40, 1, 1.2}},
		{"another", planned, vanilla, 1, &spread{1, 0.9, 1.1}},
		{"all: the one that takes longest", planned, vanilla, everyJob, &spread{1, 0.9, 1.1}},
		{"lost reports", lost, vanilla, 0, &spread{21.0 / 20, 1, 1.1}},
		{"nothing but lost reports", run(make([]time.Duration, 12)), run(make([]time.Duration, 12)), 0, nil},
		{"nine iterations", run(make([]time.Duration, 9)), run(make([]time.Duration, 9)), 0, nil},
		{"a run that ended early", run(block(1, 1)), vanilla, 0, nil},
	} {
		if diff := cmp.Diff(test.want, overhead(test.planned, test.vanilla, test.job),
			cmp.AllowUnexported(spread{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	walls := three(10, 10, 20)
	for _, i := range []int{0, 4, 8} {
		walls[i] = time.Hour
	}
	if got := overhead(run(walls), run(three(10, 10, 20)), 0); *got != (spread{1, 1, 1}) {
		t.Errorf("cold iterations count: %v", *got)
	}
}

// Metrics of few iterations print as nothing, those of enough with their spread.
func TestEORPrinted(t *testing.T) {
	var m Metrics
	if m.eor() != "-" || percentText(nil) != "-" {
		t.Errorf("what was not measured prints as %s and %s", m.eor(), percentText(nil))
	}
	m.relate(&spread{1.02, 0.99, 1.049})
	if error := 0.666; m.eor() != "1.02 (0.99 to 1.05)" || percentText(&error) != "67 %" {
		t.Errorf("printed as %s and %s", m.eor(), percentText(&error))
	}
}
