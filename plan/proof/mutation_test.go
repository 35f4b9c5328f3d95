package proof_test

import (
	"errors"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/pool"
	"tensile/plan/proof"
)

// mutation is a mistake, made wherever it can be made, and the checker that must see it.
type mutation struct {
	name    string
	checker func(subject) error
	want    []error // one of them at least
	make    func(subject) []subject
}

func validate(s subject) error { return proof.Validate(s.g, s.p) }

func check(s subject) error {
	c := *s.c
	c.Graph = s.g
	return proof.Check(&c)
}

// compileAndCheck is the checker of mistakes in a layout.
func compileAndCheck(s subject) error {
	return proof.Check(compile.Compile(s.g, s.p, s.l, compile.Options{}))
}

// packing is the other checker of mistakes in a layout. It has no kinds of errors.
func packing(s subject) error {
	var buffers []pool.Buffer
	l := pool.Layout{Height: int64(s.l.Arena)}
	for i, r := range s.l.Stays.Residencies {
		size := (s.g.Storages[r.Storage].Bytes + align - 1) / align * align
		buffers = append(buffers, pool.Buffer{Size: int64(size), Spans: r.Spans, Align: align})
		l.Offsets = append(l.Offsets, int64(s.l.Offsets[i]))
	}
	for slot, step := range s.p.Steps {
		if step.Scratch > 0 {
			size := (step.Scratch + align - 1) / align * align
			buffers = append(buffers, pool.Buffer{Size: int64(size), Spans: []pool.Span{{From: slot, To: slot + 1}},
				Align: align})
			l.Offsets = append(l.Offsets, int64(s.l.Scratch[slot]))
		}
	}
	if err := pool.Validate(buffers, l); err != nil {
		return errors.Join(errPacking, err)
	}
	return nil
}

var errPacking = errors.New("bad packing")

// TestMutations makes every mistake of the tables in many places and demands that the checker in charge rejects each,
// for the right reason.
func TestMutations(t *testing.T) {
	all := subjects(t)
	for _, s := range all {
		if err := packing(s); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
	for _, m := range slices.Concat(planMutations, layoutMutations, programMutations, snapshotMutations,
		groupMutations) {
		t.Run(m.name, func(t *testing.T) {
			tried := 0
			for _, s := range all {
				for i, bad := range few(m.make(s)) {
					tried++
					err := m.checker(bad)
					if !slices.ContainsFunc(m.want, func(kind error) bool { return errors.Is(err, kind) }) {
						t.Fatalf("%s, place %d: got %v, want one of %v\n%s", s.name, i, err, m.want, bad.p.Text(s.g))
					}
				}
			}
			t.Logf("%d places", tried)
			if tried < 5 {
				t.Errorf("tried in %d places only", tried)
			}
		})
	}
}

// few returns some of many subjects, evenly spread.
func few(all []subject) []subject {
	limit := long.Or(6, 25)
	if len(all) <= limit {
		return all
	}
	var some []subject
	for i := range limit {
		some = append(some, all[i*len(all)/limit])
	}
	return some
}

// layoutMutations move residencies and scratch.
var layoutMutations = []mutation{
	{"overlapping offsets", compileAndCheck, []error{proof.ErrContent, proof.ErrRace}, overlap},
	{"overlapping offsets, to the packer", packing, []error{errPacking}, overlap},
	{"scratch over an operand", compileAndCheck, []error{proof.ErrContent}, overlapScratch},
	{"scratch over an operand, to the packer", packing, []error{errPacking}, overlapScratch},
	{"offset outside of the arena", compileAndCheck, []error{proof.ErrBounds}, func(s subject) (bad []subject) {
		for i := range s.l.Offsets {
			b := s.withLayout()
			b.l.Offsets[i] = b.l.Arena
			bad = append(bad, b)
		}
		return bad
	}},
}

// overlap places a residency over another one, both of which a step works on.
func overlap(s subject) (bad []subject) {
	rs := s.l.Stays.Residencies
	for slot := range s.p.Steps {
		for i := range rs {
			for j := range i {
				at := func(r plan.Residency) bool {
					return s.touches(slot, r.Storage) && slices.ContainsFunc(r.Spans, pool.Span{From: slot, To: slot +
						1}.Overlaps)
				}
				if at(rs[i]) && at(rs[j]) && s.l.Offsets[i]+s.g.Storages[rs[j].Storage].Bytes <= s.l.Arena {
					b := s.withLayout()
					b.l.Offsets[j] = s.l.Offsets[i]
					bad = append(bad, b)
				}
			}
		}
	}
	return bad
}

// overlapScratch places scratch where the step finds an input.
func overlapScratch(s subject) (bad []subject) {
	for _, cmd := range s.c.Body.Commands {
		if cmd.ScratchBytes > 0 && len(cmd.Inputs) > 0 {
			b := s.withLayout()
			storage := s.g.Tensors[s.g.Ops[cmd.Op].Inputs[0]]
			b.l.Scratch[cmd.Slot] = cmd.Inputs[0].Offset - storage.Offset
			if b.l.Scratch[cmd.Slot]+cmd.ScratchBytes <= s.l.Arena {
				bad = append(bad, b)
			}
		}
	}
	return bad
}

// insertStep puts a step before another one and moves everything after it on.
func insertStep(p *plan.Plan, at int, step plan.Step) {
	p.Steps = slices.Insert(p.Steps, at, step)
	p.Made = nil
	for i := range p.Moves {
		if p.Moves[i].After >= at {
			p.Moves[i].After++
		}
	}
}

// eachMove returns a mutation that changes one move at a time. change reports whether there is something to change.
func eachMove(kind plan.MoveKind, change func(s subject, i int) bool) func(subject) []subject {
	return func(s subject) (bad []subject) {
		for i, m := range s.p.Moves {
			b := s.withPlan()
			if m.Kind == kind && change(b, i) {
				plan.Sort(b.p.Moves)
				bad = append(bad, b)
			}
		}
		return bad
	}
}

func deleteMove(s subject, i int) { s.p.Moves = slices.Delete(s.p.Moves, i, i+1) }

// needed reports whether a plan is not valid without a move.
func needed(s subject, i int) bool {
	b := s.withPlan()
	deleteMove(b, i)
	return proof.Validate(b.g, b.p) != nil
}

// lastTouch returns the last step up to a slot that touches a storage, or -1.
func (s subject) lastTouch(storage graph.StorageID, upTo int) int {
	for ; upTo >= 0 && !s.touches(upTo, storage); upTo-- {
	}
	return upTo
}

// nextTouch returns the first step after a slot that touches a storage, or the number of steps.
func (s subject) nextTouch(storage graph.StorageID, after int) int {
	for after++; after < len(s.p.Steps) && !s.touches(after, storage); after++ {
	}
	return after
}
