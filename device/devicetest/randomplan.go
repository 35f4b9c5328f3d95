package devicetest

import (
	"math/rand/v2"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
)

// RandomPlan returns a valid plan that decides every gap between two accesses of a storage at random: it is kept,
// swapped, or recomputed where that is possible. Drops, copies and the pauses before copies are anywhere they may be.
func RandomPlan(r *rand.Rand, g *graph.Graph) *plan.Plan {
	p := empty(g, "random")
	recompute(r, g, p)
	m := &gambler{r: r, g: g, p: p, last: g.LastVersions(), end: len(p.Steps) - 1}
	for s, accesses := range accesses(g, p.Steps) {
		m.plan(graph.StorageID(s), accesses)
	}
	if r.IntN(2) == 0 {
		m.delay()
	}
	r.Shuffle(len(p.Moves), func(i, j int) { p.Moves[i], p.Moves[j] = p.Moves[j], p.Moves[i] })
	plan.Sort(p.Moves)
	slices.Sort(p.Entry)
	return p
}

// access is what a step does to a storage.
type access struct {
	slot    int
	version int  // on the device when the step has ended
	makes   bool // the storage must not be on the device before
}

// accesses lists the accesses of every storage in slot order.
func accesses(g *graph.Graph, steps []plan.Step) [][]access {
	all := make([][]access, len(g.Storages))
	for slot, step := range steps {
		found := map[graph.StorageID]access{}
		for _, read := range g.Reads(step.Op) {
			found[read.Storage] = access{slot: slot, version: read.Number}
		}
		for i, w := range g.Writes(step.Op) {
			if step.Want.Has(i) {
				found[w.Storage] = access{slot, w.Number, g.Fresh(step.Op, i)}
			}
		}
		for s, a := range found {
			all[s] = append(all[s], a)
		}
	}
	return all
}

// recompute inserts second executions of ops just before a use of what they make, where their inputs and output have
// the versions of the first time.
func recompute(r *rand.Rand, g *graph.Graph, p *plan.Plan) {
	for op := range g.Ops {
		id := graph.OpID(op)
		if !g.Pure(id) || r.IntN(3) > 0 {
			continue
		}
		output := r.IntN(len(g.Ops[op].Outputs))
		s := g.Tensors[g.Ops[op].Outputs[output]].Storage
		list := accesses(g, p.Steps)[s]
		if len(list) < 2 {
			continue
		}
		slot := list[1+r.IntN(len(list)-1)].slot
		at := versions(g, p.Steps[:slot])
		possible := at[s] == 0
		for _, read := range g.Reads(id) {
			possible = possible && at[read.Storage] == read.Number
		}
		if possible {
			p.Steps = slices.Insert(p.Steps, slot, plan.Step{Op: id, Want: 1 << output})
		}
	}
}

// versions returns the versions that storages have reached after some steps.
func versions(g *graph.Graph, steps []plan.Step) []int {
	reached := make([]int, len(g.Storages))
	for _, step := range steps {
		for _, w := range g.Writes(step.Op) {
			reached[w.Storage] = max(reached[w.Storage], w.Number)
		}
	}
	return reached
}

// gambler places the moves of a plan whose steps are given.
type gambler struct {
	r    *rand.Rand
	g    *graph.Graph
	p    *plan.Plan
	last []int
	end  int // the last slot

	s     graph.StorageID // the storage at hand
	host  int             // the version of it on the host, or -1
	now   int             // and that on the device, or the last one there
	stays bool            // its last version is not copied out
}

// slotBetween returns a slot in [from, to].
func (m *gambler) slotBetween(from, to int) int { return from + m.r.IntN(to-from+1) }

// heads is the toss of a coin.
func (m *gambler) heads() bool { return m.r.IntN(2) == 0 }

func (m *gambler) move(kind plan.MoveKind, after int) int {
	sync := kind != plan.Drop && m.r.IntN(4) == 0
	m.p.Moves = append(m.p.Moves, plan.Move{Kind: kind, Storage: m.s, After: after, Sync: sync})
	return after
}

// save copies the storage out somewhere in [from, to] unless the host has it already, and returns from when on it may
// be dropped.
func (m *gambler) save(from, to int) int {
	if m.host == m.now {
		return from
	}
	m.host = m.now
	return m.move(plan.Out, m.slotBetween(from, to))
}

// swap takes the storage off the device for a part of the slots after from and before to.
func (m *gambler) swap(from, to int) {
	from = m.move(plan.Drop, m.slotBetween(m.save(from, to), to))
	m.move(plan.In, m.slotBetween(from, to))
}

// plan places the moves of one storage.
func (m *gambler) plan(s graph.StorageID, list []access) {
	m.s, m.host, m.now, m.stays = s, -1, 0, false
	switch role := m.g.Storages[s].Role; {
	case role.Persistent():
		m.persistent(list)
	case len(list) == 0: // an input that nobody reads
	case role == graph.Input:
		m.host = 0
		m.move(plan.In, m.slotBetween(-1, list[0].slot-1))
		m.gaps(list)
		m.move(plan.Drop, m.slotBetween(list[len(list)-1].slot, m.end))
	default:
		m.gaps(list)
		from := list[len(list)-1].slot
		if role == graph.Output {
			from = m.save(from, m.end)
		}
		m.move(plan.Drop, m.slotBetween(from, m.end))
	}
}

// persistent plans a storage whose host slot is valid when slot 0 begins if the storage does not change or its last
// version goes out in every iteration.
func (m *gambler) persistent(list []access) {
	if m.stays = m.last[m.s] > 0 && m.heads(); !m.stays {
		m.host = 0
	}
	if m.host == 0 && m.heads() {
		m.visitor(list)
		return
	}
	m.p.Entry = append(m.p.Entry, m.s)
	if len(list) == 0 {
		return
	}
	first, last := list[0].slot, list[len(list)-1].slot
	if first > 0 && m.heads() {
		m.swap(0, first-1)
	}
	m.gaps(list)
	switch {
	case m.stays:
	case m.heads():
		m.swap(last, m.end)
	default:
		m.save(last, m.end)
	}
}

// visitor plans a persistent storage that is not on the device at the boundary.
func (m *gambler) visitor(list []access) {
	if len(list) == 0 {
		return
	}
	m.move(plan.In, m.slotBetween(-1, list[0].slot-1))
	m.gaps(list)
	m.move(plan.Drop, m.slotBetween(m.save(list[len(list)-1].slot, m.end), m.end))
}

// gaps decides the gaps between accesses and leaves the storage as the last access does.
func (m *gambler) gaps(list []access) {
	m.now = list[0].version
	for i, a := range list[1:] {
		from, to := list[i].slot, a.slot-1
		switch {
		case a.makes:
			m.move(plan.Drop, m.slotBetween(from, to))
		case m.heads() && !(m.stays && m.now == m.last[m.s]):
			m.swap(from, to)
		}
		m.now = a.version
	}
}

// delay gives some copies a pause, and sometimes the plan latencies for the compiler to fold them into triggers.
func (m *gambler) delay() {
	const limit = 100 * time.Microsecond
	for i := range m.p.Moves {
		if m.p.Moves[i].Kind != plan.Drop && m.r.IntN(3) == 0 {
			m.p.Moves[i].Delay = time.Duration(m.r.Int64N(int64(limit)))
		}
	}
	if m.heads() {
		for range m.p.Steps {
			m.p.Made = append(m.p.Made, time.Duration(m.r.Int64N(int64(limit))))
		}
	}
}
