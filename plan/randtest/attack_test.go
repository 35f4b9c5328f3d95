package randtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// mistaken is a program with mistakes made in it.
type mistaken struct {
	*program.Program
	rng *rand.Rand
	g   *graph.Graph
}

// spoiled returns a copy of a program with one or two random mistakes.
func spoiled(rng *rand.Rand, g *graph.Graph, p *program.Program) *program.Program {
	q := *p
	m := &mistaken{&q, rng, g}
	for _, s := range m.sections() {
		s.Commands = slices.Clone(s.Commands)
		for i := range s.Commands {
			c := &s.Commands[i]
			c.Waits, c.Inputs, c.Outputs = slices.Clone(c.Waits), slices.Clone(c.Inputs), slices.Clone(c.Outputs)
		}
	}
	for range 1 + rng.IntN(2) {
		m.mistake()
	}
	if rng.IntN(20) > 0 { // else wrong counts are one more mistake
		for _, s := range m.sections() {
			s.Counts = make([]int, len(m.Streams))
			for _, c := range s.Commands {
				s.Counts[min(c.Stream, program.Stream(len(m.Streams))-1)]++
			}
		}
	}
	return &q
}

func (m *mistaken) sections() []*program.Section {
	all := m.Sections()
	return all[:]
}

// section is mostly the body.
func (m *mistaken) section() *program.Section {
	if s := m.sections()[m.rng.IntN(4)]; len(s.Commands) > 0 {
		return s
	}
	return &m.Body
}

// near returns a small change of a number, or now and then a huge one.
func (m *mistaken) near() int {
	switch m.rng.IntN(12) {
	case 0:
		return math.MaxInt - m.rng.IntN(300)
	case 1:
		return math.MinInt + m.rng.IntN(300)
	}
	return []int{-2, -1, 1, 2}[m.rng.IntN(4)]
}

// address returns that of another operand or copy, or a place nearby.
func (m *mistaken) address(a program.Address) program.Address {
	switch m.rng.IntN(8) {
	case 0:
		a.Region = program.Region(m.rng.IntN(4))
	case 1, 2, 3:
		a.Offset += m.Align * graph.Bytes(m.near())
	case 4:
		a.Offset += graph.Bytes(4 * m.near())
	case 5:
		return program.Nowhere
	default:
		c := &m.Body.Commands[m.rng.IntN(len(m.Body.Commands))]
		of := append(slices.Concat(c.Inputs, c.Outputs), c.Device)
		return of[m.rng.IntN(len(of))]
	}
	return a
}

// mistake makes one.
func (m *mistaken) mistake() {
	s, rng := m.section(), m.rng
	i := rng.IntN(len(s.Commands))
	c := &s.Commands[i]
	switch rng.IntN(18) {
	case 0, 1:
		if len(c.Waits) > 0 {
			k := rng.IntN(len(c.Waits))
			c.Waits = slices.Delete(c.Waits, k, k+1)
		}
	case 2, 3:
		if len(c.Waits) > 0 {
			c.Waits[rng.IntN(len(c.Waits))].Count += m.near()
		}
	case 4:
		c.Waits = append(c.Waits, program.Point{Stream: program.Stream(rng.IntN(len(m.Streams) + 1)),
			Count: rng.IntN(9) - 4})
	case 5, 6: // another place in the list
		j := min(len(s.Commands)-1, max(0, i+rng.IntN(9)-4))
		moved := *c
		s.Commands = slices.Insert(slices.Delete(s.Commands, i, i+1), j, moved)
	case 7:
		s.Commands = slices.Delete(s.Commands, i, i+1)
	case 8:
		s.Commands = slices.Insert(s.Commands, rng.IntN(len(s.Commands)), *c)
	case 9, 10:
		switch {
		case len(c.Inputs) > 0 && rng.IntN(2) == 0:
			k := rng.IntN(len(c.Inputs))
			c.Inputs[k] = m.address(c.Inputs[k])
		case len(c.Outputs) > 0:
			k := rng.IntN(len(c.Outputs))
			c.Outputs[k] = m.address(c.Outputs[k])
		case rng.IntN(4) == 0:
			c.Host = m.address(c.Host)
		case rng.IntN(4) == 0:
			c.Snapshot = m.address(c.Snapshot)
		default:
			c.Device = m.address(c.Device)
		}
	case 11:
		c.Version += []int{-1, 1}[rng.IntN(2)]
	case 12: // a command of another kind, well formed if it can be
		kind := program.Kind(rng.IntN(9))
		if c.Kind != program.Kernel {
			if c.Kind = kind; rng.IntN(4) > 0 {
				c.Stream = []program.Stream{0, 1, 2, 3, 3, 0, 1, 3, 0}[kind]
			}
		}
	case 13:
		c.Stream = program.Stream(rng.IntN(len(m.Streams) + 1))
	case 14: // another section
		moved := *c
		s.Commands = slices.Delete(s.Commands, i, i+1)
		to := m.sections()[rng.IntN(4)]
		to.Commands = slices.Insert(to.Commands, rng.IntN(len(to.Commands)+1), moved)
	case 15: // another storage, from and to its own host slot
		if c.Kind != program.Kernel {
			hosts, _ := program.SlotsOf(m.g, m.Plan)
			c.Storage = graph.StorageID(rng.IntN(len(m.g.Storages)))
			c.Bytes, c.Host = m.g.Storages[c.Storage].Bytes, program.Address{Region: program.Region(program.HostMemory),
				Offset: hosts[c.Storage]}
			slots, _ := program.SnapshotSlots(m.g)
			c.Snapshot.Offset = slots[c.Storage]
		}
	case 16:
		switch rng.IntN(5) {
		case 0:
			c.Op = graph.OpID(rng.IntN(len(m.g.Ops)))
		case 1:
			c.ScratchBytes += graph.Bytes(4 * m.near())
		case 2:
			c.Slot += m.near()
		case 3:
			c.Hold += time.Duration(m.near())
		default:
			c.Scratch = m.address(c.Scratch)
		}
	default:
		m.merge(c)
	}
}

// merge puts everything that lies where an operand of a command does somewhere else.
func (m *mistaken) merge(c *program.Command) {
	from := c.Device
	if len(c.Inputs) > 0 {
		from = c.Inputs[m.rng.IntN(len(c.Inputs))]
	}
	to := m.address(from)
	for _, s := range m.sections() {
		for i := range s.Commands {
			c := &s.Commands[i]
			for _, a := range [][]program.Address{c.Inputs, c.Outputs} {
				for k := range a {
					if a[k] == from {
						a[k] = to
					}
				}
			}
			if c.Kind != program.Kernel && c.Device == from {
				c.Device = to
			}
		}
	}
}

// attacked is a graph, a plan and the bits that they must give after each number of iterations, up to the last.
func attacked(t *testing.T, d device.Device, seed uint64, last int) (*rand.Rand, *graph.Graph, *plan.Plan, []outcome) {
	rng, g := seeded(seed, graphtest.Options{Ops: 16})
	what := fmt.Sprintf("seed %d", seed)
	p := New(rng, g, scratchOf(d, g))
	var want []outcome
	plain := job{g: g, seed: seed, programs: programs(t, d, what, g, vanilla(t, d, g))}
	for n := range last + 1 {
		want = append(want, train(t, d, n, what, plain)[0])
	}
	return rng, g, p, want
}

// Random mistakes are made in compiled programs. Whatever Check accepts gives the right bits, in snapshots too, and
// harms nothing. Five iterations have a snapshot after the two that are issued first, and one after two more.
func TestAttackCheck(t *testing.T) {
	seeds := long.Rounds(5, 120)
	engines(t, func(t *testing.T, d *cpu.Device) {
		tried, accepted, taken := 0, 0, 0
		for seed := range seeds {
			rng, g, p, want := attacked(t, d, seed, 5)
			what := fmt.Sprintf("seed %d", seed)
			good := proven(t, d, g, p, what).Program()
			for k := range 40 {
				bad := spoiled(rng, g, good)
				tried++
				if cmp.Equal(good, bad) || proof.Check(bad) != nil {
					continue
				}
				accepted++
				wrong, err := Prove(bad)
				if err != nil {
					t.Fatalf("seed %d, mistakes %d: Check accepts what Prove refuses: %v", seed, k, err)
				}
				what := fmt.Sprintf("seed %d, mistakes %d", seed, k)
				if diff := cmp.Diff(want[5], train(t, d, 5, what, job{g: g, seed: seed, before: want, taken: &taken,
					programs: []proof.Proven{wrong}})[0]); diff != "" {
					t.Fatalf("%s: Check accepts a program that gives other bits (-want +got):\n%s\nprogram (-right "+
						"+wrong):\n%s", what, diff, cmp.Diff(good, bad))
				}
			}
		}
		if t.Logf("%d programs with mistakes, %d accepted, all with the right bits, and in %d snapshots", tried,
			accepted, taken); accepted < long.Or(1, tried/50) || taken < accepted {
			t.Errorf("%d accepted of %d, %d snapshots", accepted, tried, taken)
		}
	})
}

// blunder makes a random mistake in a plan.
func blunder(rng *rand.Rand, g *graph.Graph, p *plan.Plan) {
	slot := rng.IntN(len(p.Steps))
	move := func() *plan.Move {
		if len(p.Moves) == 0 {
			p.Moves = append(p.Moves, plan.Move{Kind: plan.Out})
		}
		return &p.Moves[rng.IntN(len(p.Moves))]
	}
	storage := func() graph.StorageID { return graph.StorageID(rng.IntN(len(g.Storages))) }
	switch rng.IntN(14) {
	case 0:
		other := rng.IntN(len(p.Steps))
		p.Steps[slot], p.Steps[other] = p.Steps[other], p.Steps[slot]
	case 1:
		if slot > 0 {
			p.Steps[slot-1], p.Steps[slot] = p.Steps[slot], p.Steps[slot-1]
		}
	case 2:
		p.Steps = slices.Insert(p.Steps, slot, p.Steps[rng.IntN(len(p.Steps))])
	case 3:
		p.Steps[slot].Want ^= 1 << rng.IntN(3)
	case 4:
		p.Steps[slot].Scratch += []graph.Bytes{-4, 4, 1024, math.MaxInt64, graph.MaxBytes}[rng.IntN(5)]
	case 5:
		if at, found := slices.BinarySearch(p.Entry, storage()); found {
			p.Entry = slices.Delete(p.Entry, at, at+1)
		} else {
			p.Entry = slices.Insert(p.Entry, at, storage())
			slices.Sort(p.Entry)
		}
	case 6:
		*move() = *move()
	case 7:
		m := *move()
		m.Storage = storage()
		p.Moves = append(p.Moves, m)
	case 8:
		i := slices.Index(p.Moves, *move())
		p.Moves = slices.Delete(p.Moves, i, i+1)
	case 9:
		move().Kind = []plan.MoveKind{plan.Out, plan.Drop, plan.In, "copy"}[rng.IntN(4)]
	case 10: // out, dropped, and back in later
		s, after := storage(), slot
		p.Moves = append(p.Moves, plan.Move{Kind: plan.Out, Storage: s, After: after}, plan.Move{Kind: plan.Drop,
			Storage: s, After: after},
			plan.Move{Kind: plan.In, Storage: s, After: min(len(p.Steps)-1, after+rng.IntN(5))})
	case 11:
		move().Delay = []time.Duration{-1, 1, 50 * time.Microsecond,
			math.MaxInt64 - time.Duration(rng.IntN(3))}[rng.IntN(4)]
	case 12:
		if len(p.Made) > slot {
			p.Made[slot] = []time.Duration{-1, 0, time.Millisecond, math.MaxInt64}[rng.IntN(4)]
		}
	default:
		m := move()
		m.After = min(len(p.Steps)-1, max(-1, m.After+rng.IntN(7)-3))
	}
}

// Random mistakes are made in plans. Check accepts the programs of whatever Validate accepts, and they give the right
// bits.
func TestAttackValidate(t *testing.T) {
	seeds := long.Rounds(10, 120)
	engines(t, func(t *testing.T, d *cpu.Device) {
		tried, accepted, ran := 0, 0, 0
		for seed := range seeds {
			rng, g, p, want := attacked(t, d, seed, 3)
			for k := range 60 {
				bad := *p
				bad.Steps, bad.Moves, bad.Entry, bad.Made = slices.Clone(p.Steps), slices.Clone(p.Moves),
					slices.Clone(p.Entry), slices.Clone(p.Made)
				for range 1 + rng.IntN(3) {
					blunder(rng, g, &bad)
				}
				plan.Sort(bad.Moves)
				tried++
				if cmp.Equal(p, &bad) || proof.Validate(g, &bad) != nil {
					continue
				}
				layout, err := compile.Place(g, &bad, d.Align())
				if err != nil {
					continue // scratch beyond what can be packed
				}
				accepted++
				what := fmt.Sprintf("seed %d, mistakes %d", seed, k)
				c, err := compile.Prove(g, &bad, layout, optionsOf(d))
				if err != nil {
					t.Fatalf("%s: Validate accepts what Check does not: %v\n%s", what, err, bad.Text(g))
				}
				if !runnable(d, c) || accepted%3 > 0 {
					continue
				}
				ran++
				if diff := cmp.Diff(want[3],
					train(t, d, 3, what, job{g: g, seed: seed, programs: []proof.Proven{c}})[0]); diff != "" {
					t.Fatalf("%s: a valid plan gives other bits (-want +got):\n%s\n%s", what, diff, bad.Text(g))
				}
			}
		}
		if t.Logf("%d plans with mistakes, %d accepted, %d of them run, all with the right bits", tried, accepted,
			ran); accepted < tried/50 || ran < tried/200 {
			t.Errorf("%d accepted of %d, %d run", accepted, tried, ran)
		}
	})
}

// runnable reports whether a host would take the program: enough scratch, and an arena that fits this machine.
func runnable(d device.Device, p proof.Proven) bool {
	return device.Runnable(d, p) == nil && p.Program().Arena < 64*graph.MiB
}
