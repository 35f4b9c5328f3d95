package replay

import (
	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
)

// Steps returns the plan of a job under a policy's name that executes these steps, which may repeat ops, and swaps
// nothing. Of a step it takes Op and Want; steps take the first variants of their ops. Each content leaves the device
// after the last step that uses it: one that is made again later leaves as soon as it is not used until then. The steps
// have to find what they read. Plan.Graph is left to scheduler/draft.
func Steps(j *scheduler.Job, policy string, steps []plan.Step) *plan.Plan {
	g := j.Graph
	p := &plan.Plan{Job: j.Name, Epoch: j.Epoch, Policy: policy, Passes: g.Passes}
	last := make([]int, len(g.Storages)) // the slot that used a storage last, and -1
	for s := range last {
		last[s] = -1
	}
	made := g.LastVersions()
	drop := func(s graph.StorageID) {
		p.Moves = append(p.Moves, plan.Move{Kind: plan.Drop, Storage: s, After: last[s]})
	}
	for slot, step := range steps {
		v := j.Variant(step.Op, 0)
		p.Steps = append(p.Steps, plan.Step{Op: step.Op, Want: step.Want, Variant: v.Name, Scratch: v.Scratch})
		p.Made = append(p.Made, v.Latency)
		for _, r := range g.Reads(step.Op) {
			last[r.Storage] = slot
		}
		for i, w := range g.Writes(step.Op) {
			if !step.Want.Has(i) {
				continue
			}
			if g.Fresh(step.Op, i) && last[w.Storage] >= 0 {
				drop(w.Storage)
			}
			last[w.Storage] = slot
			if g.Storages[w.Storage].Role == graph.Output && w.Number == made[w.Storage] {
				p.Moves = append(p.Moves, plan.Move{Kind: plan.Out, Storage: w.Storage, After: slot})
			}
		}
	}
	for i := range g.Storages {
		s := &g.Storages[i]
		if last[s.ID] < 0 {
			continue
		}
		if s.Role.Persistent() {
			p.Entry = append(p.Entry, s.ID)
			continue
		}
		if s.Role == graph.Input {
			p.Moves = append(p.Moves, plan.Move{Kind: plan.In, Storage: s.ID, After: -1})
		}
		drop(s.ID)
	}
	plan.Sort(p.Moves)
	return p
}
