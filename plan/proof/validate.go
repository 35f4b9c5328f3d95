package proof

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
)

// Validate proves the plan without reference to time (see the package comment). The error is an *InvalidError with
// every problem found. It takes time linear in the steps, moves and operands.
//
// The proof walks the iteration in issue order. Host copies that are valid when slot 0 begins are those valid in Home
// (all persistent ones) as well as after the last slot; the walk is repeated until that set no longer shrinks, so that
// the first iteration and every later one are covered.
func Validate(g *graph.Graph, p *plan.Plan) error { return ValidateBy(g, p, func(int) {}) }

// ValidateBy is Validate for a caller who may want to stop: tick is told of every few steps of the work, of some
// nanoseconds each, and may panic.
func ValidateBy(g *graph.Graph, p *plan.Plan, tick func(steps int)) error {
	v := &validator{g: g, p: p, last: g.LastVersions(), tick: tick, script: g.Opaque()}
	if !v.form() || v.script && !v.follows() {
		return v.err()
	}
	valid := make([]bool, len(g.Storages))
	for s := range valid {
		valid[s] = g.Storages[s].Role.Persistent()
	}
	for {
		after := v.walk(valid)
		if stable := slices.Equal(after, valid); stable {
			v.problems = append(v.problems, v.redundant...)
			return v.err()
		} else if len(v.problems) > 0 {
			return v.err()
		}
		for s := range valid {
			valid[s] = valid[s] && after[s]
		}
	}
}

const absent = -1

// validateTicks is what a step of a plan and the moves behind it take about, in steps of work.
const stepTicks = 32

type validator struct {
	g        *graph.Graph
	p        *plan.Plan
	last     []int // versions
	problems []*Problem
	tick     func(steps int)

	redundant []*Problem // of the last walk: the first iterations after Home may find more host copies than later ones

	device  []int // version on the device, or absent
	host    []int // version on the host, or absent
	current []int // version made last, or absent; made again from version 0, a storage goes through all of them again
	ran     []bool
	reduced graph.OpID // the last all-reduce

	script bool                // the ops are what a script does
	until  [][]graph.StorageID // of a script's graph, per op and for the end: what is held until then
}

func (v *validator) err() error {
	if len(v.problems) == 0 {
		return nil
	}
	return &InvalidError{v.p.Job, v.problems}
}

func (v *validator) say(slot int, s graph.StorageID, kind error, format string, args ...any) {
	v.problems = append(v.problems, &Problem{slot, s, kind, fmt.Sprintf(format, args...)})
}

func (v *validator) name(s graph.StorageID) string { return v.g.Storages[s].Name }

// form checks ids, ranges and orders.
func (v *validator) form() bool {
	g, p := v.g, v.p
	if d := g.DigestBy(v.tick); p.Graph != d {
		v.say(-1, -1, ErrForm, "made for graph %.12s, not for %.12s", p.Graph, d)
	}
	if !slices.Equal(p.Passes, g.Passes) {
		v.say(-1, -1, ErrForm, "made for a graph after passes %q, not after %q", p.Passes, g.Passes)
	}
	if len(p.Made) != 0 && len(p.Made) != len(p.Steps) {
		v.say(-1, -1, ErrForm, "%d latencies for %d steps", len(p.Made), len(p.Steps))
	}
	length := time.Duration(0)
	for i, d := range p.Made {
		if d < 0 || d > math.MaxInt64-length {
			v.say(i, -1, ErrForm, "a latency of %v after %v", d, length)
			break
		}
		length += d
	}
	for i, s := range p.Steps {
		if s.Op < 0 || int(s.Op) >= len(g.Ops) {
			v.say(i, -1, ErrForm, "there is no op %d", s.Op)
		} else if s.Want>>len(g.Ops[s.Op].Outputs) != 0 {
			v.say(i, -1, ErrForm, "op %s has no outputs %b", g.Ops[s.Op].Name, s.Want)
		}
		if s.Scratch < 0 || s.Scratch > graph.MaxBytes {
			v.say(i, -1, ErrForm, "scratch of %d bytes", s.Scratch)
		}
	}
	for i, m := range p.Moves {
		if m.Storage < 0 || int(m.Storage) >= len(g.Storages) {
			v.say(m.After, -1, ErrForm, "move %d: there is no storage %d", i, m.Storage)
		}
		known := m.Kind == plan.Out || m.Kind == plan.Drop || m.Kind == plan.In
		if !known || m.After < -1 || m.After >= len(p.Steps) || m.Delay < 0 {
			v.say(m.After, m.Storage, ErrForm, "move %d: %s after %d delay %v with %d steps", i, m.Kind, m.After,
				m.Delay, len(p.Steps))
		}
		if m.Kind == plan.Drop && (m.Sync || m.Delay != 0) {
			v.say(m.After, m.Storage, ErrForm, "move %d: a drop has neither sync nor delay", i)
		}
		if m.Kind == plan.Drop && m.After == -1 {
			v.say(m.After, m.Storage, ErrForm, "move %d: drop it after the last step of the iteration before and "+
				"leave it out of entry", i)
		}
	}
	if !slices.IsSortedFunc(p.Moves, plan.CompareMoves) {
		v.say(-1, -1, ErrForm, "moves are not sorted by step and out, drop, in")
	}
	for i, s := range p.Entry {
		switch {
		case s < 0 || int(s) >= len(g.Storages):
			v.say(-1, -1, ErrForm, "entry: there is no storage %d", s)
		case i > 0 && p.Entry[i-1] >= s:
			v.say(-1, s, ErrForm, "entry is not ascending at %s", v.name(s))
		case !g.Storages[s].Role.Persistent():
			v.say(-1, s, ErrForm, "entry: %s does not outlive an iteration", v.name(s))
		}
	}
	return len(v.problems) == 0
}

// walk runs one iteration, in which the host copies marked valid are so at the start, and returns which are at the end.
func (v *validator) walk(valid []bool) []bool {
	g, p := v.g, v.p
	n := len(g.Storages)
	v.device, v.host, v.current = slices.Repeat([]int{absent}, n), slices.Repeat([]int{absent}, n),
		slices.Repeat([]int{absent}, n)
	v.ran, v.redundant, v.reduced = make([]bool, len(g.Ops)), nil, graph.NoOp
	for s, storage := range g.Storages {
		if storage.Role.FromHost() {
			v.current[s] = 0
		}
		if storage.Role == graph.Input || valid[s] {
			v.host[s] = 0
		}
	}
	for _, s := range p.Entry {
		v.device[s] = 0
	}
	moves := v.moves(p.Moves, -1)
	for slot, step := range p.Steps {
		v.tick(stepTicks)
		v.step(slot, step)
		moves = v.moves(moves, slot)
	}
	v.end()
	after := make([]bool, n)
	for s, storage := range g.Storages {
		after[s] = storage.Role.Persistent() && v.host[s] == v.last[s]
	}
	return after
}

func (v *validator) step(slot int, step plan.Step) {
	g := v.g
	op := &g.Ops[step.Op]
	for _, r := range g.Reads(op.ID) {
		switch v.device[r.Storage] {
		case r.Number:
		case absent:
			v.say(slot, r.Storage, ErrNotResident, "%s reads %s", op.Name, v.name(r.Storage))
		default:
			v.say(slot, r.Storage, ErrVersion, "%s reads version %d of %s, version %d is there", op.Name, r.Number,
				v.name(r.Storage), v.device[r.Storage])
		}
	}
	if v.script {
		if need := g.Scratch(op.ID, v.ran[op.ID]); step.Scratch < need {
			v.say(slot, -1, ErrScratch, "%s needs %d bytes, and has %d", op.Name, need, step.Scratch)
		}
	}
	first := !v.ran[op.ID]
	if v.ran[op.ID] && !g.Repeatable(op.ID) {
		v.say(slot, -1, ErrImpure, "%s", op.Name)
	} else if step.Want != 0 && !g.Pure(op.ID) {
		v.say(slot, -1, ErrForm, "%s updates in place and must make all outputs", op.Name)
	}
	if op.Kind == graph.AllReduce {
		if op.ID < v.reduced {
			v.say(slot, -1, ErrExchange, "%s after %s", op.Name, g.Ops[v.reduced].Name)
		}
		v.reduced = op.ID
	}
	v.ran[op.ID] = true
	for i, w := range g.Writes(op.ID) {
		if !step.Want.Has(i) {
			continue
		}
		if g.Fresh(op.ID, i) && v.device[w.Storage] != absent {
			v.say(slot, w.Storage, ErrResident, "%s makes %s", op.Name, v.name(w.Storage))
		}
		v.device[w.Storage], v.current[w.Storage] = w.Number, w.Number
	}
	if v.script && first {
		v.held(slot, op.ID+1)
	}
}

// moves carries out the leading moves that follow slot after and returns the rest.
func (v *validator) moves(moves []plan.Move, after int) []plan.Move {
	for len(moves) > 0 && moves[0].After == after {
		m := moves[0]
		moves = moves[1:]
		s := m.Storage
		if resident := v.device[s] != absent; m.Kind == plan.In && resident {
			v.say(after, s, ErrResident, "copies in %s", v.name(s))
		} else if m.Kind != plan.In && !resident {
			v.say(after, s, ErrNotResident, "%s of %s", m.Kind, v.name(s))
			continue
		}
		switch m.Kind {
		case plan.Out:
			if v.host[s] == v.device[s] {
				v.redundant = append(v.redundant, &Problem{after, s, ErrRedundant, "copies out " + v.name(s)})
			}
			v.host[s] = v.device[s]
		case plan.Drop:
			v.device[s] = absent
		case plan.In:
			if v.host[s] == absent || v.host[s] != v.current[s] {
				v.say(after, s, ErrStale, "copies in %s: version %d is current, version %d on the host (-1: none)",
					v.name(s), v.current[s], v.host[s])
			}
			v.device[s] = v.current[s]
		}
	}
	return moves
}

// end checks the state after the last slot.
func (v *validator) end() {
	g, n := v.g, len(v.p.Steps)-1
	for op, ran := range v.ran {
		if !ran {
			v.say(n, -1, ErrMissing, "%s", g.Ops[op].Name)
		}
	}
	for i, storage := range g.Storages {
		s := graph.StorageID(i)
		_, entry := slices.BinarySearch(v.p.Entry, s)
		resident := v.device[s] != absent
		switch {
		case resident && !entry:
			v.say(n, s, ErrBoundary, "%s is on the device after the last slot but not in entry", storage.Name)
		case entry && !resident:
			v.say(n, s, ErrBoundary, "%s is in entry but not on the device after the last slot", storage.Name)
		case storage.Role.Persistent() && !resident && v.host[s] != v.last[s]:
			v.say(n, s, ErrLost, "version %d of %s is neither on the device nor on the host", v.last[s], storage.Name)
		}
		if storage.Role == graph.Output && v.host[s] != v.last[s] {
			v.say(n, s, ErrUndelivered, "%s", storage.Name)
		}
	}
}
