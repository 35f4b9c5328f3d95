package superneurons

import (
	"slices"

	"tensile/graph"
	"tensile/plan"
)

// step is one execution of an op.
type step struct {
	op   graph.OpID
	want graph.StorageID // the storage that a recomputation makes; absent: the first execution
}

// touches returns the storages that a step reads or makes.
func (n *network) touches(s step) []graph.StorageID {
	all := n.g.Touches(s.op)
	if s.want < 0 {
		return all
	}
	return slices.DeleteFunc(all, func(x graph.StorageID) bool {
		return x != s.want && n.made(s.op, x) != absent
	})
}

// outputsOf returns the outputs that a step makes: of a recomputation by an op that updates nothing in place, those in
// one storage.
func (n *network) outputsOf(s step) (set plan.Outputs) {
	if s.want < 0 || !n.g.Pure(s.op) {
		return 0
	}
	for i, t := range n.g.Ops[s.op].Outputs {
		if n.g.Tensors[t].Storage == s.want {
			set |= 1 << i
		}
	}
	return set
}

// makesFirst reports whether a step makes the first content of a storage.
func (n *network) makesFirst(s step, x graph.StorageID) bool {
	return n.made(s.op, x) == 0 && !n.g.Storages[x].Role.FromHost() && (s.want < 0 || s.want == x)
}

// firstSteps executes every op once.
func (n *network) firstSteps() []step {
	steps := make([]step, len(n.g.Ops))
	for op := range steps {
		steps[op] = step{graph.OpID(op), absent}
	}
	return steps
}

// steps returns all executions with what is made again (3.4), and how many layers that executes: what a segment makes
// is dropped after the forward pass. Before a backward op the segments that it needs are made again from the checkpoint
// on, as far as they are not there. A speed-centric one then stays until it is used for the last time. Of a
// memory-centric one only what the layer itself needs does, and after the layer what the next layer in the segment
// needs as well (figure 9). count is told of the work.
func (n *network) steps(count func(int)) (steps []step, extra int) {
	r := &repeater{network: n, gone: make([]bool, len(n.g.Storages)), steps: n.firstSteps()[:n.forward], count: count}
	for s, at := range n.segment {
		r.gone[s] = at >= 0
	}
	groups := n.groups()
	for i, group := range groups {
		for _, op := range group.ops {
			for _, v := range n.g.Reads(op) {
				r.ensure(v.Storage)
			}
			r.steps = append(r.steps, step{op, absent})
			r.shed(group.needs)
		}
		r.endGroup(groups, i)
	}
	return r.steps, r.extra
}

// repeater is steps in the making.
type repeater struct {
	*network
	gone  []bool // per storage: it has to be made again
	steps []step
	extra int
	spare []graph.StorageID // of memory-centric segments: made on the way to something else
	count func(int)
}

// group is what a layer's backward ops execute in a row.
type group struct {
	ops   []graph.OpID
	needs []graph.StorageID // of what is made again, each once
	next  []successor       // per segment of these, if there is one
}

// successor is the next group that needs something of a segment.
type successor struct{ segment, group int }

// groups cuts what follows the forward pass into groups.
func (n *network) groups() (all []group) {
	layer := absent - 1
	for i := n.forward; i < len(n.g.Ops); i++ {
		op := graph.OpID(i)
		if n.of[i] != layer || len(all) == 0 {
			all = append(all, group{})
			layer = n.of[i]
		}
		last := &all[len(all)-1]
		last.ops = append(last.ops, op)
		for _, s := range n.g.Touches(op) {
			if n.segment[s] >= 0 && !slices.Contains(last.needs, s) {
				last.needs = append(last.needs, s)
			}
		}
	}
	next := make([]int, len(n.chains)) // per segment: the group behind, counted from 1; 0: none
	for i := len(all) - 1; i >= 0; i-- {
		for _, s := range all[i].needs {
			at := n.segment[s]
			if next[at] > i+1 {
				all[i].next = append(all[i].next, successor{at, next[at] - 1})
			}
		}
		for _, s := range all[i].needs {
			next[n.segment[s]] = i + 1
		}
	}
	return all
}

// ensure makes a storage again, after what it is made of, unless it is there.
func (r *repeater) ensure(s graph.StorageID) {
	if !r.gone[s] {
		return
	}
	for _, x := range r.sources(s) {
		r.ensure(x)
	}
	layer := absent
	for _, op := range r.writers[s] {
		if r.of[op] != layer {
			layer = r.of[op]
			r.extra++
		}
		r.steps = append(r.steps, step{op, s})
	}
	r.count(16)
	r.gone[s] = false
	if r.chains[r.segment[s]].memory {
		r.spare = append(r.spare, s)
	}
}

// shed drops what memory-centric segments have made on the way to what a group needs.
func (r *repeater) shed(needs []graph.StorageID) {
	for _, s := range r.spare {
		if !slices.Contains(needs, s) {
			r.gone[s] = true
		}
	}
	r.spare = r.spare[:0]
}

// endGroup ends group i: of memory-centric segments that stays which the next group in the segment needs.
func (r *repeater) endGroup(groups []group, i int) {
	for _, s := range groups[i].needs {
		at := r.segment[s]
		if !r.chains[at].memory {
			continue
		}
		r.gone[s] = true
		for k := range groups[i].next {
			if groups[i].next[k].segment == at {
				r.gone[s] = !slices.Contains(groups[groups[i].next[k].group].needs, s)
			}
		}
	}
}
