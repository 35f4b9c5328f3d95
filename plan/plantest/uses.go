package plantest

import (
	"tensile/graph"
	"tensile/plan/program"
)

// Node is one command of the run Prologue, bodies and snapshots, Epilogue.
type Node struct {
	Cmd    *program.Command
	Before []int // nodes that end before it begins: its lane's last one, what it waits for, or all before a drain
	Uses   []Span
}

// Span is a range of bytes that a command uses.
type Span struct {
	Region   program.Region
	From, To graph.Bytes
	Write    bool
}

// Reach marks everything that ends before node i begins.
func Reach(nodes []Node, i int, reached []bool) {
	for _, j := range nodes[i].Before {
		if !reached[j] {
			reached[j] = true
			Reach(nodes, j, reached)
		}
	}
}

// Conflict reports whether two commands use the same bytes, and one of them writes them.
func Conflict(a, b []Span) bool {
	for _, x := range a {
		for _, y := range b {
			if (x.Write || y.Write) && x.Region == y.Region && x.From < y.To && y.From < x.To {
				return true
			}
		}
	}
	return false
}

// Unroll lists the commands of a run in list order.
func Unroll(g *graph.Graph, p *program.Program, iterations []*program.Section) []Node {
	var nodes []Node
	lanes := make([][]int, len(p.Streams)) // nodes
	section := func(s *program.Section, drained int) {
		origin := make([]int, len(lanes))
		for l := range lanes {
			origin[l] = len(lanes[l])
		}
		for i := range s.Commands {
			cmd := &s.Commands[i]
			n := Node{Cmd: cmd, Uses: Spans(g, p, cmd)}
			if k := len(lanes[cmd.Stream]); k > 0 {
				n.Before = append(n.Before, lanes[cmd.Stream][k-1])
			}
			for _, w := range cmd.Waits {
				if at := origin[w.Stream] + w.Count; at > 0 && at <= len(lanes[w.Stream]) {
					n.Before = append(n.Before, lanes[w.Stream][at-1])
				}
			}
			for j := range drained {
				n.Before = append(n.Before, j)
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

// Spans lists the bytes that a command uses: of every operand its whole storage, as the unit of content.
func Spans(g *graph.Graph, p *program.Program, cmd *program.Command) []Span {
	hosts, _ := program.SlotsOf(g, p.Plan)
	at := func(a program.Address, size graph.Bytes, write bool) Span {
		return Span{a.Region, a.Offset, a.Offset + size, write}
	}
	host := func(write bool) Span {
		slot := program.Address{Region: program.Region(program.HostMemory), Offset: hosts[cmd.Storage]}
		return at(slot, g.Storages[cmd.Storage].Bytes, write)
	}
	switch cmd.Kind {
	case program.Load:
		return []Span{host(true)}
	case program.Read:
		return []Span{host(false)}
	case program.Out:
		return []Span{at(cmd.Device, cmd.Bytes, false), host(true)}
	case program.In:
		return []Span{host(false), at(cmd.Device, cmd.Bytes, true)}
	case program.Poison:
		return []Span{at(cmd.Device, cmd.Bytes, true)}
	case program.Save:
		return []Span{at(cmd.Device, cmd.Bytes, false), at(cmd.Snapshot, cmd.Bytes, true)}
	case program.Keep:
		return []Span{host(false), at(cmd.Snapshot, cmd.Bytes, true)}
	}
	var all []Span
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
