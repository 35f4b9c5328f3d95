package devicetest

import (
	"fmt"
	"slices"

	"tensile/device"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// snapshots trains by many plans with a snapshot instead of one body, without a drain around it. What it holds is
// what a run of as many iterations as came before leaves on the host, also when the job has been closed. What is
// trained is as without.
func snapshots(c *crew) {
	const iterations = 4
	for _, g := range []*graph.Graph{Tiny(), Zoo()} {
		keep := Build(c.t, c.d, g, KeepAll(g), compile.Options{})
		var after [iterations + 1]finished // per number of iterations
		for n := range after {
			after[n] = c.run(g, n, keep)
		}
		programs := []proof.Proven{Build(c.t, c.d, g, KeepAll(g), compile.Options{Snapshot: true})}
		for seed := range uint64(8) {
			programs = append(programs, shuffled(c, g, seed, compile.Options{Poison: seed%2 == 0, Snapshot: true,
				Durations: program.Durations{Out: cost.Link{Rate: cost.BytesPerSecond(1e6 * seed)}}}))
		}
		for i, p := range programs {
			for at := range iterations - 1 {
				what := fmt.Sprintf("%s, program %d, snapshot after %d", g.Name, i, at)
				taken, trained := c.snapshotted(g, p, iterations, at)
				compareBits(c.t, what+": trained", trained, after[iterations])
				sameContent(c, what, g, taken, after[at])
				taken.Release()
				taken.Release()
			}
		}
	}
}

// snapshotted trains a job with a snapshot instead of a body, and closes it.
func (c *crew) snapshotted(g *graph.Graph, proven proof.Proven, iterations, at int) (device.Snapshot, finished) {
	c.t.Helper()
	s := c.open(g)
	defer s.leave()
	p := s.load(proven)
	s.issue(p, &p.Prologue, 0, true)
	taken, err := s.Snapshot()
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range iterations {
		section := &p.Body
		if i == at {
			section = &p.Snapshot
		}
		s.issue(p, section, i, i == 0)
	}
	s.issue(p, &p.Epilogue, iterations, true)
	c.wait()
	return taken, finished{s.host(), s.feed.outputs}
}

// sameContent compares a snapshot with the weights that a run has left, on a device with data.
func sameContent(c *crew, what string, g *graph.Graph, taken device.Snapshot, want finished) {
	c.t.Helper()
	for _, s := range g.Storages {
		switch content := taken.Content(s.ID); {
		case !s.Role.Persistent() && content != nil:
			c.t.Errorf("%s: the snapshot holds %s, which is no state", what, s.Name)
		case s.Role.Persistent() && (content != nil || len(want.weights[s.Name]) > 0):
			sameBits(c.t, what+": "+s.Name, slices.Clone(content), want.weights[s.Name])
		}
	}
}
