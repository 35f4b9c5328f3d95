package proof_test

import (
	"math"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/proof"
)

// planMutations are mistakes in plans: Validate must see them.
var planMutations = []mutation{
	{"scratch without end", validate, []error{proof.ErrForm}, eachStep(func(s subject, i int) bool {
		s.p.Steps[i].Scratch = graph.MaxBytes + 1
		return true
	})},
	{"negative latency", validate, []error{proof.ErrForm}, eachStep(func(s subject, i int) bool {
		s.p.Made = make([]time.Duration, len(s.p.Steps))
		s.p.Made[i] = -1
		return true
	})},
	{"latencies without end", validate, []error{proof.ErrForm}, eachStep(func(s subject, i int) bool {
		s.p.Made = make([]time.Duration, len(s.p.Steps))
		s.p.Made[0], s.p.Made[i] = 1, math.MaxInt64
		return i > 0
	})},
	{"dropped In", validate, []error{proof.ErrNotResident, proof.ErrBoundary},
		eachMove(plan.In, func(s subject, i int) bool { deleteMove(s, i); return true })},
	{"In after its use", validate, []error{proof.ErrNotResident},
		eachMove(plan.In, func(s subject, i int) bool {
			m := &s.p.Moves[i]
			use := s.nextTouch(m.Storage, m.After)
			again := slices.ContainsFunc(s.p.Moves, func(o plan.Move) bool {
				return o.Storage == m.Storage && o.After > m.After && o.After < use
			})
			m.After = use
			return use < len(s.p.Steps) && !again
		})},
	{"In before its Drop", validate, []error{proof.ErrResident},
		eachMove(plan.In, func(s subject, i int) bool {
			m := &s.p.Moves[i]
			drop := -1
			for _, o := range s.p.Moves[:i] {
				if o.Kind == plan.Drop && o.Storage == m.Storage {
					drop = o.After
				}
			}
			m.After = drop - 1
			return drop > 0 && s.lastTouch(m.Storage, drop-1) == drop-1
		})},
	{"In twice", validate, []error{proof.ErrResident},
		eachMove(plan.In, func(s subject, i int) bool { s.p.Moves = append(s.p.Moves, s.p.Moves[i]); return true })},
	{"Out twice", validate, []error{proof.ErrRedundant},
		eachMove(plan.Out, func(s subject, i int) bool { s.p.Moves = append(s.p.Moves, s.p.Moves[i]); return true })},
	{"Out after its Drop", validate, []error{proof.ErrNotResident},
		eachMove(plan.Out, func(s subject, i int) bool {
			m := &s.p.Moves[i]
			at := slices.IndexFunc(s.p.Moves[i:], func(o plan.Move) bool {
				return o.Kind == plan.Drop && o.Storage == m.Storage
			})
			if at < 0 {
				return false
			}
			m.After = s.p.Moves[i+at].After + 1
			return m.After < len(s.p.Steps) && !s.touches(m.After, m.Storage) && !slices.ContainsFunc(s.p.Moves,
				func(o plan.Move) bool {
					return o.Kind == plan.In && o.Storage == m.Storage && o.After == m.After-1
				})
		})},
	{"stale host copy", validate, []error{proof.ErrStale, proof.ErrLost, proof.ErrUndelivered, proof.ErrRedundant},
		eachMove(plan.Out, func(s subject, i int) bool { // out before the update instead of after it
			m := &s.p.Moves[i]
			update := m.After
			for update >= 0 && !s.writes(update, m.Storage) {
				update--
			}
			if !needed(s, i) || update < 0 || s.g.Pure(s.p.Steps[update].Op) {
				return false
			}
			m.After = update - 1
			return !slices.ContainsFunc(s.p.Moves, func(o plan.Move) bool { // else it is not there so early
				return o.Kind == plan.In && o.Storage == m.Storage && o.After == update-1
			})
		})},
	{"missing Out of an output", validate, []error{proof.ErrUndelivered},
		eachMove(plan.Out, func(s subject, i int) bool {
			m := s.p.Moves[i]
			last := !slices.ContainsFunc(s.p.Moves[i+1:], func(o plan.Move) bool {
				return o.Kind == plan.Out && o.Storage == m.Storage
			})
			deleteMove(s, i)
			return last && s.g.Storages[m.Storage].Role == graph.Output
		})},
	{"missing Out of a swap", validate, []error{proof.ErrStale, proof.ErrLost, proof.ErrUndelivered},
		eachMove(plan.Out, func(s subject, i int) bool {
			ok := needed(s, i)
			deleteMove(s, i)
			return ok
		})},
	{"dropped Drop", validate, []error{proof.ErrResident, proof.ErrBoundary},
		eachMove(plan.Drop, func(s subject, i int) bool { deleteMove(s, i); return true })},
	{"earlier Drop", validate, []error{proof.ErrNotResident},
		eachMove(plan.Drop, func(s subject, i int) bool {
			m := &s.p.Moves[i]
			use := s.lastTouch(m.Storage, m.After)
			entered := slices.ContainsFunc(s.p.Moves[:i], func(o plan.Move) bool {
				return o.Kind == plan.In && o.Storage == m.Storage && o.After >= use
			})
			m.After = use - 1
			return use > 0 && !entered
		})},
	{"Drop before slot 0", validate, []error{proof.ErrForm},
		eachMove(plan.Drop, func(s subject, i int) bool { s.p.Moves[i].After = -1; return true })},
	{"Drop with Sync", validate, []error{proof.ErrForm},
		eachMove(plan.Drop, func(s subject, i int) bool { s.p.Moves[i].Sync = true; return true })},
	{"negative Delay", validate, []error{proof.ErrForm},
		eachMove(plan.In, func(s subject, i int) bool { s.p.Moves[i].Delay = -time.Nanosecond; return true })},
	{"move after the last step", validate, []error{proof.ErrForm},
		eachMove(plan.In, func(s subject, i int) bool { s.p.Moves[i].After = len(s.p.Steps); return true })},
	{"move of no storage", validate, []error{proof.ErrForm},
		eachMove(plan.Out, func(s subject,
			i int) bool {
			s.p.Moves[i].Storage = graph.StorageID(len(s.g.Storages))
			return true
		})},
	{"swapped steps", validate, []error{proof.ErrNotResident, proof.ErrVersion}, func(s subject) (bad []subject) {
		for slot := range s.p.Steps[1:] {
			for _, r := range s.g.Reads(s.p.Steps[slot+1].Op) {
				if b := s.withPlan(); s.writes(slot, r.Storage) {
					b.p.Steps[slot], b.p.Steps[slot+1] = b.p.Steps[slot+1], b.p.Steps[slot]
					bad = append(bad, b)
					break
				}
			}
		}
		return bad
	}},
	{"all-reduces in another order", validate, []error{proof.ErrExchange}, func(s subject) (bad []subject) {
		var reduces []int // slots
		for slot, step := range s.p.Steps {
			if s.g.Ops[step.Op].Kind == graph.AllReduce {
				reduces = append(reduces, slot)
			}
		}
		for i, slot := range reduces[:max(0, len(reduces)-1)] { // as late as the one after it
			b := s.withPlan()
			b.p.Steps = slices.Insert(b.p.Steps, reduces[i+1]+1, b.p.Steps[slot])
			b.p.Steps = slices.Delete(b.p.Steps, slot, slot+1)
			b.p.Made = nil
			bad = append(bad, b)
		}
		return bad
	}},
	{"repeated impure op", validate, []error{proof.ErrImpure}, eachStep(func(s subject, slot int) bool {
		op := s.p.Steps[slot].Op
		insertStep(s.p, slot+1, s.p.Steps[slot])
		return !s.g.Repeatable(op)
	})},
	{"op in place repeated without the version before", validate, []error{proof.ErrVersion},
		eachStep(func(s subject, slot int) bool {
			op := s.p.Steps[slot].Op
			repeat(s.p, slot)
			return s.g.Repeatable(op) && !s.g.Pure(op)
		})},
	{"versions made again in another order", validate,
		[]error{proof.ErrVersion, proof.ErrNotResident, proof.ErrResident},
		eachStep(func(s subject, slot int) bool {
			next := s.chainAfter(slot)
			if next < 0 {
				return false
			}
			s.p.Steps[slot], s.p.Steps[next] = s.p.Steps[next], s.p.Steps[slot]
			return true
		})},
	{"an old version copied in", validate, []error{proof.ErrStale}, func(s subject) (bad []subject) {
		for slot := range s.p.Steps {
			if b := s.withPlan(); oldIn(b, slot) {
				bad = append(bad, b)
			}
		}
		return bad
	}},
	{"part of an impure op", validate, []error{proof.ErrForm}, eachStep(func(s subject, slot int) bool {
		s.p.Steps[slot].Want = 1
		return !s.g.Pure(s.p.Steps[slot].Op)
	})},
	{"outputs that there are not", validate, []error{proof.ErrForm}, eachStep(func(s subject, slot int) bool {
		s.p.Steps[slot].Want = 1 << len(s.g.Ops[s.p.Steps[slot].Op].Outputs)
		return true
	})},
	{"repeated op over what it made", validate, []error{proof.ErrResident, proof.ErrVersion},
		eachStep(func(s subject, slot int) bool {
			op := s.p.Steps[slot].Op
			repeat(s.p, slot)
			return s.g.Pure(op) && len(s.g.Reads(op)) > 0
		})},
	{"missing step", validate, []error{proof.ErrMissing}, eachStep(func(s subject, slot int) bool {
		op := s.p.Steps[slot].Op
		other := s.p.Steps[(slot+1)%len(s.p.Steps)]
		s.p.Steps[slot] = other
		return !slices.ContainsFunc(s.p.Steps, func(step plan.Step) bool { return step.Op == op })
	})},
	{"wrong number of latencies", validate, []error{proof.ErrForm}, eachStep(func(s subject, slot int) bool {
		s.p.Made = make([]time.Duration, slot+1)
		return slot+1 != len(s.p.Steps)
	})},
	{"left out of Entry", validate, []error{proof.ErrNotResident, proof.ErrBoundary, proof.ErrResident},
		func(s subject) (bad []subject) {
			for i, storage := range s.p.Entry {
				if b := s.withPlan(); s.used(storage) {
					b.p.Entry = slices.Delete(b.p.Entry, i, i+1)
					bad = append(bad, b)
				}
			}
			return bad
		}},
	{"wrongly in Entry", validate, []error{proof.ErrForm, proof.ErrBoundary, proof.ErrResident},
		func(s subject) (bad []subject) {
			for _, storage := range s.g.Storages {
				at, found := slices.BinarySearch(s.p.Entry, storage.ID)
				if b := s.withPlan(); !found && (s.used(storage.ID) || !storage.Role.Persistent()) {
					b.p.Entry = slices.Insert(b.p.Entry, at, storage.ID)
					bad = append(bad, b)
				}
			}
			return bad
		}},
	{"wrong digest", validate, []error{proof.ErrForm}, func(s subject) []subject {
		b, c := s.withPlan(), s.withPlan()
		b.p.Graph, c.p.Graph = "", "x"+b.p.Graph[1:]
		return []subject{b, c}
	}},
	{"larger storage, to the plan", validate, []error{proof.ErrForm}, larger},
}

// repeat executes a step a second time, just after the first. What is dropped after the first stays for the second.
func repeat(p *plan.Plan, slot int) {
	insertStep(p, slot+1, p.Steps[slot])
	for i := range p.Moves {
		if p.Moves[i].After == slot {
			p.Moves[i].After++
		}
	}
	plan.Sort(p.Moves)
}

// chainAfter returns the step that repeats the next version of the storage that a step makes again, or -1.
func (s subject) chainAfter(slot int) int {
	op := s.p.Steps[slot].Op
	if !slices.ContainsFunc(s.p.Steps[:slot], func(step plan.Step) bool { return step.Op == op }) || !s.g.Pure(op) {
		return -1
	}
	for i, w := range s.g.Writes(op) {
		if !s.p.Steps[slot].Want.Has(i) {
			continue
		}
		next := graph.Version{Storage: w.Storage, Number: w.Number + 1}
		for later := slot + 1; later < len(s.p.Steps); later++ {
			if s.writes(later, w.Storage) {
				if slices.Contains(s.g.Writes(s.p.Steps[later].Op), next) {
					return later
				}
				break
			}
		}
	}
	return -1
}

// oldIn copies a storage out before a step updates it in place, and in again after it. It reports whether it could.
func oldIn(s subject, slot int) bool {
	op := s.p.Steps[slot].Op
	if slot == 0 || s.g.Pure(op) || !s.g.Repeatable(op) {
		return false
	}
	storage := s.g.Writes(op)[0].Storage
	if slices.ContainsFunc(s.p.Moves, func(m plan.Move) bool {
		return m.Storage == storage && (m.After == slot-1 || m.After == slot)
	}) {
		return false
	}
	s.p.Moves = append(s.p.Moves, plan.Move{Kind: plan.Out, Storage: storage, After: slot - 1},
		plan.Move{Kind: plan.Drop, Storage: storage, After: slot}, plan.Move{Kind: plan.In, Storage: storage,
			After: slot})
	plan.Sort(s.p.Moves)
	return true
}

// eachStep returns a mutation that changes one step at a time.
func eachStep(change func(s subject, slot int) bool) func(subject) []subject {
	return func(s subject) (bad []subject) {
		for slot := range s.p.Steps {
			if b := s.withPlan(); change(b, slot) {
				bad = append(bad, b)
			}
		}
		return bad
	}
}

// used reports whether a step or move has to do with a storage.
func (s subject) used(storage graph.StorageID) bool {
	return s.nextTouch(storage, -1) < len(s.p.Steps) || slices.ContainsFunc(s.p.Moves, func(m plan.Move) bool {
		return m.Storage == storage
	})
}

// larger makes a storage larger than it was when the program was compiled.
func larger(s subject) (bad []subject) {
	for i := range s.g.Storages {
		b := s.withGraph()
		b.g.Storages[i].Bytes += s.c.Arena
		bad = append(bad, b)
	}
	return bad
}
