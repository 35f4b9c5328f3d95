package compile

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
)

// folded is a move of the plan, by its index there, perhaps with a later trigger and a smaller delay.
type folded struct {
	plan.Move
	index int
}

// fold moves the trigger of every delayed copy to the last step whose planned end is not after the planned start, and
// keeps the rest as the delay. A move never passes another event of its storage. Since a plan owns bytes by slots,
// nothing else depends on the trigger.
//
// No delay is longer than the plan's iteration, and a plan without latencies has none: a copy that nothing waits for is
// held for its whole delay, and with it the next body but one, or the way Home.
func fold(g *graph.Graph, p *plan.Plan) []folded {
	moves := make([]folded, len(p.Moves))
	length := p.Length()
	for i, m := range p.Moves {
		m.Delay = min(m.Delay, length)
		moves[i] = folded{m, i}
	}
	if len(p.Made) == 0 || !slices.ContainsFunc(p.Moves, func(m plan.Move) bool { return m.Delay > 0 }) {
		return moves
	}
	ends := make([]time.Duration, len(p.Made))
	var now time.Duration
	for i, d := range p.Made {
		now += d
		ends[i] = now
	}
	limit := limits(g, p)
	for i := range moves {
		m := &moves[i]
		if m.Delay == 0 {
			continue
		}
		start := m.Delay
		if m.After >= 0 {
			start += ends[m.After]
		}
		for m.After < limit[i] && ends[m.After+1] <= start {
			m.After++
		}
		if m.Delay = start; m.After >= 0 {
			m.Delay -= ends[m.After]
		}
	}
	slices.SortStableFunc(moves, func(a, b folded) int { return plan.CompareMoves(a.Move, b.Move) })
	return moves
}

// limits returns, per move, the last step that it may follow: just before its storage is used or moved next. After the
// same step an out or drop of the storage would come before an in, so an in stays one step away from them.
func limits(g *graph.Graph, p *plan.Plan) []int {
	next := slices.Repeat([]int{len(p.Steps) - 1}, len(g.Storages))
	moved := make([]bool, len(g.Storages)) // what next stops before is a move
	limit := make([]int, len(p.Moves))
	m := len(p.Moves) - 1
	for slot := len(p.Steps) - 1; slot >= -1; slot-- {
		for ; m >= 0 && p.Moves[m].After == slot; m-- {
			s := p.Moves[m].Storage
			if limit[m] = next[s]; p.Moves[m].Kind == plan.In && moved[s] {
				limit[m]--
			}
			next[s], moved[s] = slot, true
		}
		if slot >= 0 {
			for _, s := range g.Touches(p.Steps[slot].Op) {
				next[s], moved[s] = slot-1, false
			}
		}
	}
	return limit
}
