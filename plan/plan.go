package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/graph"
)

// Plan is the schedule of one iteration of one job.
type Plan struct {
	Job    string            `json:"job"`
	Epoch  int64             `json:"epoch"` // a job never goes back to a smaller one
	Policy string            `json:"policy"`
	Graph  graph.Digest      `json:"graph"`
	Passes []string          `json:"passes,omitempty"` // rewrites of the graph, by name, in order
	Steps  []Step            `json:"steps"`
	Moves  []Move            `json:"moves"` // sorted as Sort sorts them
	Entry  []graph.StorageID `json:"entry"` // ascending
	// latencies of Steps that the planner assumed; no part of the proof
	Made []time.Duration `json:"made,omitempty"`
}

// Step is one execution of an op.
type Step struct {
	Op      graph.OpID  `json:"op"`
	Want    Outputs     `json:"want,omitzero"`    // which outputs to make; zero: all
	Variant string      `json:"variant,omitzero"` // of the device's kernel table; "": its first
	Scratch graph.Bytes `json:"scratch,omitzero"` // bytes of the arena that the kernel may overwrite during the step
	Join    bool        `json:"join,omitzero"`    // the next step waits for all copies of moves before this step
}

// Outputs is a set of outputs of an op: bit i stands for output i. Zero means all of them.
type Outputs uint32

// Has reports whether output i is in the set.
func (o Outputs) Has(i int) bool { return o == 0 || o&(1<<i) != 0 }

// MoveKind says what a move does.
type MoveKind string

const (
	Out  MoveKind = "out"  // copy device to host; stays on the device
	Drop MoveKind = "drop" // leave the device
	In   MoveKind = "in"   // copy host to device
)

// order is the order of moves after the same step.
func (k MoveKind) order() int {
	switch k {
	case Out:
		return 0
	case Drop:
		return 1
	case In:
		return 2
	}
	return -1
}

// Move is one event on a storage. It starts when step After has ended; -1 is the end of the previous iteration.
type Move struct {
	Kind    MoveKind        `json:"kind"`
	Storage graph.StorageID `json:"storage"`
	After   int             `json:"after"`
	Sync    bool            `json:"sync,omitzero"` // copies only: the next step waits until the copy has ended
	// copies only: the pause after the trigger (Delta-t of TENSILE, III-B), Plan.Length at most
	Delay time.Duration `json:"delay,omitzero"`
}

// Sort brings moves into the order in which they happen; moves of one kind after the same step keep their order, which
// is the order in their copy lane.
func Sort(moves []Move) { slices.SortStableFunc(moves, CompareMoves) }

// CompareMoves is negative if a happens before b, and 0 if they are of one kind after the same step.
func CompareMoves(a, b Move) int {
	if a.After != b.After {
		return cmp.Compare(a.After, b.After)
	}
	return cmp.Compare(a.Kind.order(), b.Kind.order())
}

// Length is how long the planner took the steps to be together: 0 without Made.
func (p *Plan) Length() time.Duration {
	var sum time.Duration
	for _, d := range p.Made {
		sum += d
	}
	return sum
}

// Copied returns how many bytes the plan copies out of and into the device in one iteration.
func (p *Plan) Copied(g *graph.Graph) (out, in graph.Bytes) {
	for _, m := range p.Moves {
		switch m.Kind {
		case Out:
			out += g.Storages[m.Storage].Bytes
		case In:
			in += g.Storages[m.Storage].Bytes
		}
	}
	return out, in
}

// Swapped returns how many bytes swaps copy in one iteration, both ways: all copies but the arrival of inputs and the
// delivery of outputs.
func (p *Plan) Swapped(g *graph.Graph) graph.Bytes {
	out, in := p.Copied(g)
	for _, s := range g.Storages {
		switch s.Role {
		case graph.Input:
			if p.moves(In, s.ID) {
				in -= s.Bytes
			}
		case graph.Output:
			out -= s.Bytes
		}
	}
	return out + in
}

func (p *Plan) moves(kind MoveKind, s graph.StorageID) bool {
	return slices.ContainsFunc(p.Moves, func(m Move) bool { return m.Kind == kind && m.Storage == s })
}

// Recomputation returns how long the steps take that repeat an op, as far as Made says.
func (p *Plan) Recomputation() (sum time.Duration) {
	ran := make(map[graph.OpID]bool, len(p.Steps))
	for i, s := range p.Steps {
		if ran[s.Op] && len(p.Made) > 0 {
			sum += p.Made[i]
		}
		ran[s.Op] = true
	}
	return sum
}

// Text prints the plan for people and goldens: a line per step with the moves that follow it.
func (p *Plan) Text(g *graph.Graph) string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan %s epoch %d policy %s: %d steps, %d moves\n", p.Job, p.Epoch, p.Policy, len(p.Steps),
		len(p.Moves))
	names := func(ids []graph.StorageID) string {
		words := make([]string, len(ids))
		for i, s := range ids {
			words[i] = g.Storages[s].Name
		}
		return strings.Join(words, " ")
	}
	fmt.Fprintf(&b, "entry: %s\n", names(p.Entry))
	moves := p.Moves
	print := func(after int) {
		for len(moves) > 0 && moves[0].After == after {
			m := moves[0]
			fmt.Fprintf(&b, "      %-4s %s %s", m.Kind, g.Storages[m.Storage].Name, g.Storages[m.Storage].Bytes)
			if m.Sync {
				b.WriteString(" sync")
			}
			if m.Delay != 0 {
				fmt.Fprintf(&b, " delay %v", m.Delay)
			}
			b.WriteByte('\n')
			moves = moves[1:]
		}
	}
	print(-1)
	ran := make([]bool, len(g.Ops))
	for i, s := range p.Steps {
		again := ""
		if ran[s.Op] {
			again = " (again)"
		}
		ran[s.Op] = true
		join := ""
		if s.Join {
			join = " join"
		}
		fmt.Fprintf(&b, "%4d  %s%s%s\n", i, g.Ops[s.Op].Name, again, join)
		print(i)
	}
	return b.String()
}
