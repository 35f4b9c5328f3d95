package report

import (
	"fmt"
	"io"

	"tensile/graph"
	"tensile/scheduler/planner"
)

// Gates are the figures of jobs that share memory by gates.
type Gates struct {
	Least       graph.Bytes `json:"least_bytes"`    // the least with which they run: bases and largest headroom
	Capacity    graph.Bytes `json:"capacity_bytes"` // the memory for which the time is expected
	ExpectedEOR float64     `json:"expected_eor"`   // against turns, each alone and without a plan
	MSRAll      float64     `json:"msr_all"`        // by what they need together
	MSRLive     float64     `json:"msr_live"`
}

// JobGates are those of one of the jobs.
type JobGates struct {
	Base        graph.Bytes `json:"base_bytes"`   // held between two iterations
	ExpectedEOR float64     `json:"expected_eor"` // of an iteration against a round of turns
}

// Share adds the figures of jobs that share memory by gates.
func (r *Plan) Share(p *planner.Planned) {
	t := p.Expected
	saving := func(of graph.Bytes) float64 { return float64(of-p.Least) / float64(max(of, 1)) }
	r.Gates = &Gates{Least: p.Least, Capacity: t.Capacity, ExpectedEOR: t.ExpectedEOR,
		MSRAll: saving(r.Total.VanillaAll), MSRLive: saving(r.Total.VanillaLive)}
	for i := range r.Jobs {
		r.Jobs[i].JobGates = &JobGates{p.Jobs[i].Base, t.Jobs[i]}
	}
}

// write prints them in a line.
func (g *Gates) write(out io.Writer, jobs int) {
	if jobs == 1 {
		fmt.Fprintf(out, "It needs %s; within %s an iteration is expected to take %.3f of its time without a plan.\n",
			g.Least, g.Capacity, g.ExpectedEOR)
		return
	}
	fmt.Fprintf(out, "Together they need %s; within %s they are expected to take %.3f of the time of turns, each "+
		"alone without a plan.\n", g.Least, g.Capacity, g.ExpectedEOR)
}
