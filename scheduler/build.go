package scheduler

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
)

// plan writes the draft as a plan.
func (d *draft) plan(policy string) *plan.Plan {
	g := d.job.Graph
	p := &plan.Plan{Job: d.job.Name, Epoch: d.job.Epoch, Policy: policy, Graph: g.Digest()}
	for _, s := range d.steps {
		step := plan.Step{Op: s.op, Scratch: d.job.Scratch[s.op]}
		if d.job.Variant != nil {
			step.Variant = d.job.Variant[s.op]
		}
		if s.want >= 0 {
			step.Want = wanted(g, s.op, s.want)
		}
		p.Steps = append(p.Steps, step)
		p.Made = append(p.Made, d.job.Latency[s.op])
	}
	b := builder{draft: d, resident: make([]bool, len(g.Storages))}
	for _, s := range g.Storages {
		b.resident[s.ID] = s.Role.Persistent() && d.lastUse[s.ID] >= 0
		b.ends(s)
	}
	for _, x := range d.gaps {
		b.gap(x)
	}
	p.Moves = b.sorted()
	for s, resident := range b.resident {
		if resident {
			p.Entry = append(p.Entry, graph.StorageID(s))
		}
	}
	return p
}

type builder struct {
	*draft
	moves    []ranked
	resident []bool // per storage: over the boundary
}

// ranked is a move and its place among those of its kind after the same step: the slot in which its effect is needed.
type ranked struct {
	plan.Move
	needed int
}

func (b *builder) move(k plan.MoveKind, s graph.StorageID, after, needed int) {
	b.moves = append(b.moves, ranked{plan.Move{Kind: k, Storage: s, After: after}, needed})
}

// ends drops what does not outlive the iteration after its last use, and copies outputs out where they are made.
func (b *builder) ends(s graph.Storage) {
	if s.Role == graph.Output {
		made := b.writeSlots[s.ID]
		b.move(plan.Out, s.ID, made[len(made)-1], b.lastUse[s.ID])
	}
	if last := b.lastUse[s.ID]; !s.Role.Persistent() && last >= 0 {
		b.move(plan.Drop, s.ID, last, 0)
	}
}

// gap writes the moves of a gap that is not kept, folded back into one iteration.
func (b *builder) gap(x *gap) {
	if x.kind == keep {
		return
	}
	n := len(b.steps)
	if x.from >= 0 {
		if x.kind == swap && !b.clean(x) {
			b.move(plan.Out, x.storage, x.from, x.drop)
		}
		b.move(plan.Drop, x.storage, x.drop%n, 0)
	}
	if x.kind != swap {
		return
	}
	// A fetch just before the next iteration begins with it: then the storage is not on the device in between.
	if x.in >= n-1 && x.to >= n {
		b.move(plan.In, x.storage, x.in-n, x.to-n)
		b.resident[x.storage] = x.drop >= n
	} else {
		b.move(plan.In, x.storage, x.in, x.to)
	}
}

func (b *builder) sorted() []plan.Move {
	slices.SortStableFunc(b.moves, func(x, y ranked) int {
		return cmp.Or(cmp.Compare(x.After, y.After), cmp.Compare(x.needed, y.needed), cmp.Compare(x.Storage, y.Storage))
	})
	moves := make([]plan.Move, len(b.moves))
	for i, m := range b.moves {
		moves[i] = m.Move
	}
	plan.Sort(moves)
	return moves
}

// decisions tells what was decided and what it is expected to cost.
func (d *draft) decisions() []Decision {
	var all []Decision
	for _, x := range d.gaps {
		if x.kind == keep || x.from < 0 && x.in < 0 {
			continue
		}
		to, kind, reason := x.to+1, "recompute", "its inputs are on the device by then and making it again costs least for what it frees"
		if x.kind == swap {
			to = x.to
			kind, reason = "swap", "both copies fit into free link time"
			if x.cost > 2*overhead {
				reason = "no copy fits into free link time and this one costs least for what it frees"
			}
		}
		all = append(all, Decision{Storage: x.storage, Kind: kind, From: x.from, To: to, Freed: x.in - x.drop, Cost: x.cost, Reason: reason})
	}
	slices.SortStableFunc(all, func(a, b Decision) int {
		return cmp.Compare(time.Duration(d.size(b.Storage))*time.Duration(b.Freed), time.Duration(d.size(a.Storage))*time.Duration(a.Freed))
	})
	return all
}
