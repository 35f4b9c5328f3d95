package bench

import (
	"fmt"
	"slices"
	"strings"

	"tensile/scheduler/policies"
)

// contender is a policy as it takes part: how its budget is found, and what it has that others have not.
type contender struct {
	name     string // of its rows
	policy   string
	goal     goal
	overhead float64  // with leastMemory
	share    int      // with shareOfLive, in percent
	passes   []string // rewrites, where the others have none
	gates    bool     // jobs share memory by gates, where the others have arenas of their own
}

// goal says how a contender's budget is found.
type goal int

const (
	noBudget    goal = iota // as it stops by itself
	paperPeak               // what tensile-paper needs as it stops by itself
	leastMemory             // the least with which plans are predicted to take no more than an overhead
	shareOfLive             // a share of what the jobs need that free everything after its last use
)

// keeping is the end of the names of policies that are without liveness, as their papers have them.
const keeping = "-keep"

// paperPolicy is the one whose peak is the budget of the others.
const paperPolicy = "tensile-paper"

// Some policies stop by themselves: all others of the table of policies plan for a budget. Of the policies few take
// part in scenes that have only those of the figures 6 and 7.
var (
	stopping = []string{"none-all", "none-live", paperPolicy, "tensile-authors", "vdnn-conv", "vdnn-conv-keep",
		"vdnn-all", "vdnn-all-keep", "vdnn-tensile"}
	few = []string{"none-live", "vdnn-conv", "vdnn-tensile", paperPolicy, "tensile-authors", "capuchin", "tensile"}
)

// stops reports whether a policy stops by itself, so that it is given no budget.
func stops(policy string) bool { return slices.Contains(stopping, policy) }

// overheads are those that policy tensile's least memory is measured for.
var overheads = []float64{0.005, 0.05, 0.10}

// leastName is the name of policy tensile with the least memory for an overhead.
func leastName(overhead float64) string { return fmt.Sprintf("tensile EOR %.4g", 1+overhead) }

// contenders are those of a scene: all policies of the table of policies, or few of them, those first that stop by
// themselves.
func (s *PaperScene) contenders() (all []contender) {
	takes := func(p string) bool { return !s.Few || slices.Contains(few, p) }
	for _, p := range policies.Names() {
		if stops(p) && takes(p) {
			all = append(all, contender{name: p, policy: p, goal: noBudget})
		}
	}
	for _, p := range policies.Names() {
		if !stops(p) && takes(p) {
			all = append(all, contender{name: p, policy: p, goal: paperPeak})
		}
	}
	if !s.Few {
		for _, o := range overheads {
			all = append(all, contender{name: leastName(o), policy: "tensile", goal: leastMemory, overhead: o})
		}
		all = append(all, contender{name: "tensile, all passes", policy: "tensile", goal: paperPeak,
			passes: allPasses()})
	}
	if s.jobs() > 1 {
		all = append(all, contender{name: "tensile, gates", policy: "tensile", goal: paperPeak, gates: true})
	}
	for _, share := range s.Shares {
		for _, p := range policies.Names() {
			if p == paperPolicy || !stops(p) && !strings.HasSuffix(p, keeping) {
				all = append(all, contender{name: p, policy: p, goal: shareOfLive, share: share})
			}
		}
	}
	return all
}

// real are the contenders of a scene on a device with data: all policies, within shares of live memory if they plan for
// a budget.
func (s *PaperScene) real() (all []contender) {
	for _, p := range policies.Names() {
		if stops(p) {
			all = append(all, contender{name: p, policy: p, goal: noBudget})
		}
	}
	for _, share := range s.Shares {
		for _, p := range policies.Names() {
			if !stops(p) {
				all = append(all, contender{name: p, policy: p, goal: shareOfLive, share: share})
			}
		}
	}
	return all
}
