package controller

import (
	"fmt"
	"strings"
	"testing"

	"tensile/models/graphtest"
	"tensile/wire"
)

// The jobs of one user that are not over are bounded, together with those that come; not those of the administrator,
// and not those of others.
func TestJobsOfOneUser(t *testing.T) {
	w := calmWorld(t, 1, 0)
	g := graphtest.New(w.rng, graphtest.Options{})
	w.graphs[g.Digest()] = g
	submit := func(by, name string, count int) string {
		var list []Submission
		for i := range count {
			list = append(list, Submission{Spec: wire.Spec{Name: fmt.Sprint(name, i), Model: "random",
				Iterations: endless, Graph: g.Digest()}, Graph: g})
		}
		w.machine.submitJobs(1, by, list)
		var refusal string // "": they wait for plans
		for _, r := range w.machine.replies {
			refusal = fmt.Sprint(r.err)
		}
		w.machine.replies = nil
		return refusal
	}
	const want = "ada has %d jobs that are not over, and would have %d more: a user has at most 500: "
	if got := submit("ada", "a", maxJobsOne+1); !strings.HasPrefix(got, fmt.Sprintf(want, 0, maxJobsOne+1)) {
		t.Errorf("more jobs than a user may have: %q", got)
	}
	if len(w.machine.jobs) > 0 {
		t.Fatalf("%d jobs of those were taken", len(w.machine.jobs))
	}
	if got := submit("ada", "a", maxJobsOne); got != "" {
		t.Errorf("as many jobs as a user may have: %q", got)
	}
	if got := submit("ada", "more", 1); !strings.HasPrefix(got, fmt.Sprintf(want, maxJobsOne, 1)) {
		t.Errorf("one more job: %q", got)
	}
	w.machine.jobs[7].record.State = wire.JobStopped
	for by, name := range map[string]string{"ada": "again", "bob": "bobs", "": "administrators"} {
		if got := submit(by, name, 1); got != "" {
			t.Errorf("one job of %q: %q", by, got)
		}
	}
	if got := submit("", "many", maxJobsOne+1); got != "" {
		t.Errorf("many jobs of the administrator: %q", got)
	}
}
