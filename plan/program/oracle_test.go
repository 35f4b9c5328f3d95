package program_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/randgraph"
	"tensile/plan/program"
)

// node is one command of the run Prologue, bodies and snapshots, Epilogue.
type node struct {
	cmd    *program.Command
	before []int // nodes that end before it begins: its lane's last one, what it waits for, or all before a drain
	uses   []span
}

// span is a range of bytes that a command uses.
type span struct {
	region   program.Region
	from, to graph.Bytes
	write    bool
}

// raceFree is the slow oracle of Check: for every two commands that use the same byte, one of them to write it, it
// looks for a path from the first to the second along lanes, waits and drains.
func raceFree(g *graph.Graph, p *program.Program, iterations ...*program.Section) bool {
	nodes := unroll(g, p, iterations)
	for i := range nodes {
		var reached []bool
		for j := range i {
			if !conflict(nodes[j].uses, nodes[i].uses) {
				continue
			}
			if reached == nil {
				reached = make([]bool, i+1)
				reach(nodes, i, reached)
			}
			if !reached[j] {
				return false
			}
		}
	}
	return true
}

// reach marks everything that ends before node i begins.
func reach(nodes []node, i int, reached []bool) {
	for _, j := range nodes[i].before {
		if !reached[j] {
			reached[j] = true
			reach(nodes, j, reached)
		}
	}
}

func conflict(a, b []span) bool {
	for _, x := range a {
		for _, y := range b {
			if (x.write || y.write) && x.region == y.region && x.from < y.to && y.from < x.to {
				return true
			}
		}
	}
	return false
}

func unroll(g *graph.Graph, p *program.Program, iterations []*program.Section) []node {
	var nodes []node
	var lanes [streams][]int // nodes
	section := func(s *program.Section, drained int) {
		var origin [streams]int
		for l := range lanes {
			origin[l] = len(lanes[l])
		}
		for i := range s.Commands {
			cmd := &s.Commands[i]
			n := node{cmd: cmd, uses: spans(g, p, cmd)}
			if k := len(lanes[cmd.Stream]); k > 0 {
				n.before = append(n.before, lanes[cmd.Stream][k-1])
			}
			for _, w := range cmd.Waits {
				if at := origin[w.Stream] + w.Count; at > 0 && at <= len(lanes[w.Stream]) {
					n.before = append(n.before, lanes[w.Stream][at-1])
				}
			}
			for j := range drained {
				n.before = append(n.before, j)
			}
			lanes[cmd.Stream] = append(lanes[cmd.Stream], len(nodes))
			nodes = append(nodes, n)
		}
	}
	section(&p.Prologue, 0)
	drained := 0
	if len(iterations) > 0 && iterations[0] == &p.Snapshot {
		drained = len(nodes)
	}
	for _, s := range iterations {
		section(s, drained)
	}
	section(&p.Epilogue, len(nodes))
	return nodes
}

// spans lists the bytes that a command uses: of every operand its whole storage, as the unit of content.
func spans(g *graph.Graph, p *program.Program, cmd *program.Command) []span {
	hosts, _ := program.SlotsOf(g, p.Plan)
	at := func(a program.Address, size graph.Bytes, write bool) span {
		return span{a.Region, a.Offset, a.Offset + size, write}
	}
	host := func(write bool) span {
		return at(program.Address{Region: hostRegion, Offset: hosts[cmd.Storage]}, g.Storages[cmd.Storage].Bytes, write)
	}
	switch cmd.Kind {
	case program.Load:
		return []span{host(true)}
	case program.Read:
		return []span{host(false)}
	case program.Out:
		return []span{at(cmd.Device, cmd.Bytes, false), host(true)}
	case program.In:
		return []span{host(false), at(cmd.Device, cmd.Bytes, true)}
	case program.Poison:
		return []span{at(cmd.Device, cmd.Bytes, true)}
	case program.Save:
		return []span{at(cmd.Device, cmd.Bytes, false), at(cmd.Snapshot, cmd.Bytes, true)}
	case program.Keep:
		return []span{host(false), at(cmd.Snapshot, cmd.Bytes, true)}
	}
	var all []span
	operands := func(ids []graph.TensorID, addresses []program.Address, write bool) {
		for i, t := range ids {
			if addresses[i] != program.Nowhere {
				from := program.Address{Offset: addresses[i].Offset - g.Tensors[t].Offset}
				all = append(all, at(from, g.Storages[g.Tensors[t].Storage].Bytes, write))
			}
		}
	}
	operands(g.Ops[cmd.Op].Inputs, cmd.Inputs, false)
	operands(g.Ops[cmd.Op].Outputs, cmd.Outputs, true)
	if cmd.ScratchBytes > 0 {
		all = append(all, at(cmd.Scratch, cmd.ScratchBytes, true))
	}
	return all
}

// TestCheckAgainstOracle changes the waits of random programs at random and compares Check's verdict on races with the
// oracle's, for two bodies and for three: the third is like the second. With snapshots among them it does so for the
// runs that Check goes through and for longer ones.
func TestCheckAgainstOracle(t *testing.T) {
	seeds := long.Rounds(150, 1500)
	racy, snapshots := 0, 0
	for seed := range seeds {
		s := random(t, seed, randgraph.Options{Ops: 14})
		if err := check(s); err != nil {
			t.Fatalf("%s: %v\n%s", s.name, err, s.p.Text(s.g))
		}
		rng := rand.New(rand.NewPCG(seed, 5))
		for change := range 3 {
			bad := s.withProgram()
			for range change {
				bad.shake(rng)
			}
			got := !errors.Is(check(bad), program.ErrRace)
			if !got {
				racy++
			}
			body, snapshot := &bad.c.Body, &bad.c.Snapshot
			short, long := []*program.Section{body, body}, []*program.Section{body, body, body}
			alone := true
			if len(snapshot.Commands) > 0 {
				snapshots++
				short = append(short, snapshot, body)
				long = append(long, snapshot, body, body, snapshot, body)
				alone = raceFree(bad.g, bad.c, snapshot, body)
			}
			for _, run := range [][]*program.Section{short, long} {
				if want := alone && raceFree(bad.g, bad.c, run...); got != want {
					t.Fatalf("%s, %d changes: Check says race-free %v, the oracle over %d iterations %v\n%s", s.name,
						change, got, len(run), want, bad.c.Text())
				}
			}
		}
	}
	t.Logf("%d of %d programs race, %d have snapshots", racy, 3*seeds, snapshots)
	if racy < int(seeds)/2 || snapshots < int(seeds) {
		t.Errorf("%d of %d programs race, %d have snapshots", racy, 3*seeds, snapshots)
	}
}

// shake removes a wait of the body or the snapshot, or lets it be reached a little earlier.
func (s subject) shake(rng *rand.Rand) {
	for range 100 {
		section := &s.c.Body
		if len(s.c.Snapshot.Commands) > 0 && rng.IntN(2) == 0 {
			section = &s.c.Snapshot
		}
		cmd := &section.Commands[rng.IntN(len(section.Commands))]
		if len(cmd.Waits) == 0 {
			continue
		}
		i := rng.IntN(len(cmd.Waits))
		if rng.IntN(2) == 0 {
			cmd.Waits = append(cmd.Waits[:i:i], cmd.Waits[i+1:]...)
		} else {
			cmd.Waits[i].Count -= 1 + rng.IntN(2)
		}
		return
	}
}
