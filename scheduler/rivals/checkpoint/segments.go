package checkpoint

import (
	"slices"

	"tensile/graph"
	"tensile/plan"
)

// segments is a forward pass that is cut, and what of it is dropped.
type segments struct {
	*network
	first []int // per segment: its first place in forward
	of    []int // per op: its segment, -1 after the forward pass

	dropped []bool        // per storage: it leaves after its segment
	repeats [][]plan.Step // per segment but the last
}

// cut divides the forward pass behind some places.
func (n *network) cut(places []int) *segments {
	s := &segments{network: n, of: make([]int, len(n.g.Ops)), dropped: make([]bool, len(n.g.Storages))}
	for op := range s.of {
		s.of[op] = -1
	}
	s.first = append(s.first, 0)
	for _, p := range places {
		s.first = append(s.first, p+1)
	}
	for k, first := range s.first {
		for _, op := range n.forward[first:s.end(k)] {
			s.of[op] = k
		}
	}
	for i := range n.g.Storages {
		s.dropped[i] = s.droppable(graph.StorageID(i))
	}
	return s
}

// end is the place behind segment k.
func (s *segments) end(k int) int {
	if k+1 < len(s.first) {
		return s.first[k+1]
	}
	return len(s.forward)
}

// checkpointed reports whether segment k is dropped: the last one is not.
func (s *segments) checkpointed(k int) bool { return k >= 0 && k < len(s.first)-1 }

// droppable reports whether a storage is made by ops of one segment alone, which may repeat, and used in the forward
// pass by no other segment.
func (s *segments) droppable(id graph.StorageID) bool {
	role := s.g.Storages[id].Role
	if role != graph.Activation && role != graph.Gradient || len(s.writers[id]) == 0 {
		return false
	}
	k := s.of[s.writers[id][0]]
	if !s.checkpointed(k) || s.lives[id].used > s.end(k) {
		return false
	}
	return !slices.ContainsFunc(s.writers[id], func(op graph.OpID) bool {
		return s.of[op] != k || !s.g.Repeatable(op)
	})
}

// steps executes the iteration. What cannot be made again when it is needed is not dropped.
func (s *segments) steps(count func(int)) []plan.Step {
	for {
		count(4 * len(s.g.Ops))
		s.findRepeats()
		steps, stuck := s.walk()
		if stuck == graph.NoOp {
			return steps
		}
		for _, w := range s.g.Writes(stuck) {
			s.dropped[w.Storage] = false
		}
	}
}

// findRepeats lists the ops of each segment that make, directly or not, what ops after the forward pass read.
func (s *segments) findRepeats() {
	g := s.g
	needed := make([]bool, len(g.Storages))
	for i := range g.Ops {
		if op := graph.OpID(i); s.of[op] < 0 {
			for _, r := range g.Reads(op) {
				needed[r.Storage] = true
			}
		}
	}
	s.repeats = make([][]plan.Step, len(s.first)-1)
	for k := range s.repeats {
		ops := s.forward[s.first[k]:s.end(k)]
		for _, op := range slices.Backward(ops) {
			step := plan.Step{Op: op}
			outputs := len(g.Ops[op].Outputs)
			for i, w := range g.Writes(op) {
				if needed[w.Storage] && s.dropped[w.Storage] {
					step.Want |= 1 << i
				}
			}
			if step.Want == 0 {
				continue
			}
			if step.Want == 1<<outputs-1 || !g.Pure(op) {
				step.Want = 0
			}
			s.repeats[k] = append(s.repeats[k], step)
			for _, r := range g.Reads(op) {
				needed[r.Storage] = true
			}
		}
		slices.Reverse(s.repeats[k])
	}
}

// walk executes the ops in the order of the graph, and segments again where they are needed. If that goes wrong it
// returns the op that cannot repeat.
func (s *segments) walk() (steps []plan.Step, stuck graph.OpID) {
	g := s.g
	w := walk{g: g, current: make([]int, len(g.Storages)), here: make([]bool, len(g.Storages))}
	for i := range g.Storages {
		w.here[i] = g.Storages[i].Role.FromHost()
	}
	for i := range g.Ops {
		op := graph.OpID(i)
		k := s.of[op]
		for _, r := range g.Reads(op) {
			if w.here[r.Storage] {
				continue
			}
			for _, again := range s.repeats[s.of[s.writers[r.Storage][0]]] {
				if !w.do(again) {
					return nil, again.Op
				}
			}
		}
		w.do(plan.Step{Op: op})
		if s.checkpointed(k) && op == s.forward[s.end(k)-1] {
			for _, inside := range s.forward[s.first[k]:s.end(k)] {
				for _, made := range g.Writes(inside) {
					w.here[made.Storage] = !s.dropped[made.Storage]
				}
			}
		}
	}
	return w.steps, graph.NoOp
}

// walk is an iteration under way.
type walk struct {
	g       *graph.Graph
	steps   []plan.Step
	current []int  // per storage: its version
	here    []bool // per storage: on the device
}

// do executes a step, if it finds what it reads.
func (w *walk) do(step plan.Step) bool {
	for _, r := range w.g.Reads(step.Op) {
		if !w.here[r.Storage] || w.current[r.Storage] != r.Number {
			return false
		}
	}
	writes := w.g.Writes(step.Op)
	for i, v := range writes {
		if step.Want.Has(i) && w.g.Fresh(step.Op, i) && w.here[v.Storage] {
			return false
		}
	}
	for i, v := range writes {
		if step.Want.Has(i) {
			w.here[v.Storage], w.current[v.Storage] = true, v.Number
		}
	}
	w.steps = append(w.steps, step)
	return true
}
