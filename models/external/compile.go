package external

import (
	"tensile/graph"
	"tensile/plan"
)

// Compile returns a valid plan of a recorded graph as a script takes it: what is between its ops. Number, Graph, Limit
// and Bytes are the caller's to set. Offsets and delays are left out: bytes belong to the script's allocator, and a
// copy begins when its turn comes.
func Compile(g *graph.Graph, p *plan.Plan) Plan {
	c := &compiler{g: g, ran: make([]bool, len(g.Ops)), made: Plan{Entry: p.Entry}}
	c.lives(p)
	moves := c.moves(p.Moves, -1)
	for slot, step := range p.Steps {
		if c.ran[step.Op] {
			c.do(repeatStep(g, step))
		} else {
			c.flush()
			c.ran[step.Op], c.before = true, step.Op+1
		}
		moves = c.moves(moves, slot)
	}
	c.flush()
	return c.made
}

type compiler struct {
	g      *graph.Graph
	ran    []bool     // per op
	before graph.OpID // the op that comes next
	now    []Action   // before it
	made   Plan

	end  []int // per storage: the slot after which the script lets it go; -1: it outlives the iteration
	last []int // per storage: the last slot that repeats an op and touches it, or -1
	uses []int // per storage: the last slot that touches it or after which it is copied in
}

// lives finds out until when the script has each storage, and the plan uses it.
func (c *compiler) lives(p *plan.Plan) {
	g := c.g
	n := len(g.Storages)
	c.end, c.last, c.uses = make([]int, n), make([]int, n), make([]int, n)
	for s := range n {
		c.end[s], c.last[s], c.uses[s] = -1, -1, -1
	}
	first := make([]int, len(g.Ops)) // per op: the slot in which it runs first
	for op := range first {
		first[op] = -1
	}
	for slot, step := range p.Steps {
		repeats := first[step.Op] >= 0
		if !repeats {
			first[step.Op] = slot
		}
		for _, s := range g.Touches(step.Op) {
			c.uses[s] = slot
			if repeats {
				c.last[s] = slot
			} else {
				c.end[s] = slot
			}
		}
	}
	for _, m := range p.Moves {
		if m.Kind == plan.In {
			c.uses[m.Storage] = max(c.uses[m.Storage], m.After+1)
		}
	}
	for i := range g.Storages {
		s := &g.Storages[i]
		switch {
		case s.Role.Persistent():
			c.end[i] = -1
		case s.Until > 0:
			c.end[i] = max(c.end[i], first[s.Until-1])
		}
	}
}

// natural reports whether a storage that is dropped after a slot is one that the script lets go by itself.
func (c *compiler) natural(s graph.StorageID, after int) bool {
	return c.end[s] >= 0 && after >= c.end[s] && c.last[s] <= c.end[s] && c.uses[s] <= after
}

// moves does the leading moves that follow a slot, and returns the others.
func (c *compiler) moves(moves []plan.Move, after int) []plan.Move {
	for len(moves) > 0 && moves[0].After == after {
		m := moves[0]
		moves = moves[1:]
		verb := map[plan.MoveKind]Verb{plan.Out: Out, plan.Drop: Drop, plan.In: In}[m.Kind]
		if m.Kind != plan.Drop || !c.natural(m.Storage, after) {
			c.do(Action{Do: verb, Storage: &m.Storage, Wait: m.Sync})
		}
	}
	return moves
}

func (c *compiler) do(a Action) { c.now = append(c.now, a) }

// flush ends the boundary before the next op.
func (c *compiler) flush() {
	if len(c.now) > 0 {
		c.made.Boundaries = append(c.made.Boundaries, Boundary{c.before, c.now})
		c.now = nil
	}
}

// repeatStep is a step that repeats an op.
func repeatStep(g *graph.Graph, step plan.Step) Action {
	a := Action{Do: Again, Op: &step.Op}
	for i := range g.Ops[step.Op].Outputs {
		if step.Want != 0 && step.Want.Has(i) {
			a.Outputs = append(a.Outputs, i)
		}
	}
	return a
}
