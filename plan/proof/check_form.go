package proof

import (
	"fmt"

	"tensile/graph"
	"tensile/plan/program"
)

// flaw says what is wrong with a command in itself, "" if nothing is: its ids lead somewhere, its stream is one of its
// kind's unit, a kernel has the operands of its op, and anything else is about a whole storage and its host slot.
func (c *checker) flaw(cmd *program.Command) string {
	switch {
	case cmd.Kind >= program.Kinds:
		return "no such kind"
	case cmd.Stream < 0 || int(cmd.Stream) >= len(c.p.Streams) || c.p.Streams[cmd.Stream] != cmd.Kind.Unit():
		return fmt.Sprintf("not on a stream of the %s unit", cmd.Kind.Unit())
	case cmd.Slot < -1 || cmd.Slot >= len(c.p.Plan.Steps) || cmd.Slot < 0 && cmd.Kind.Executes():
		return "no such slot"
	case cmd.Hold != 0 && cmd.Kind != program.In && cmd.Kind != program.Out, cmd.Hold < 0, cmd.Hold > c.limit:
		return fmt.Sprintf("held for %v, the limit is %v, for copies", cmd.Hold, c.limit)
	case cmd.Due != 0 && cmd.Kind != program.In, cmd.Due < 0, cmd.Due > c.limit:
		return fmt.Sprintf("due after %v, the limit is %v, for copies in", cmd.Due, c.limit)
	case cmd.Kind.Executes():
		return c.kernelFlaw(cmd)
	case cmd.Storage < 0 || int(cmd.Storage) >= len(c.g.Storages):
		return "no such storage"
	}
	device := cmd.Kind == program.Out || cmd.Kind == program.In || cmd.Kind == program.Poison ||
		cmd.Kind == program.Save
	host := cmd.Kind != program.Poison && cmd.Kind != program.Save
	snapshot := cmd.Kind == program.Save || cmd.Kind == program.Keep
	switch s := &c.g.Storages[cmd.Storage]; {
	case cmd.Bytes != s.Bytes:
		return fmt.Sprintf("about %d bytes of the %d of %s", cmd.Bytes, s.Bytes, s.Name)
	case device && c.misplaced(cmd.Device):
		return "not at an aligned place of the arena"
	case host && c.slots[s.ID].Offset < 0:
		return "no copy out of " + s.Name + " in the plan: it has no host slot"
	case host && cmd.Host != c.slots[s.ID]:
		return "not at the host slot of " + s.Name
	case snapshot && (!s.Role.Persistent() || cmd.Version != 0):
		return fmt.Sprintf("version %d of %s %s is no part of a snapshot", cmd.Version, s.Role, s.Name)
	case snapshot && (c.saved == nil || cmd.Snapshot != c.saved[s.ID]):
		return "not at the place of " + s.Name + " in the snapshot"
	case cmd.Kind == program.Load && (s.Role != graph.Input || cmd.Version != 0):
		return fmt.Sprintf("a load of version %d of %s %s", cmd.Version, s.Role, s.Name)
	case cmd.Kind == program.Read && s.Role != graph.Output:
		return fmt.Sprintf("a read of %s %s", s.Role, s.Name)
	}
	return ""
}

// misplaced reports whether a storage or scratch may not begin at an address.
func (c *checker) misplaced(a program.Address) bool {
	return a.Region < 0 || int(a.Region) >= len(c.p.Regions) || c.p.Regions[a.Region] != program.Arena ||
		a.Offset%c.p.Align != 0
}

func (c *checker) kernelFlaw(cmd *program.Command) string {
	g := c.g
	if cmd.Op < 0 || int(cmd.Op) >= len(g.Ops) {
		return "no such op"
	}
	op := &g.Ops[cmd.Op]
	if cmd.Kind != program.KindOf(op) {
		return fmt.Sprintf("a %s does not execute a %s", cmd.Kind, op.Kind)
	}
	if len(cmd.Inputs) != len(op.Inputs) || len(cmd.Outputs) != len(op.Outputs) {
		return fmt.Sprintf("not the operands of %s", op.Name)
	}
	if none := cmd.ScratchBytes == 0; cmd.ScratchBytes < 0 || cmd.ScratchBytes > graph.MaxBytes ||
		none != (cmd.Scratch == program.Nowhere) || !none && c.misplaced(cmd.Scratch) {
		return fmt.Sprintf("scratch of %d bytes at %v", cmd.ScratchBytes, cmd.Scratch)
	}
	begins := func(t graph.TensorID, a program.Address) program.Address {
		return program.Address{Region: a.Region, Offset: a.Offset - g.Tensors[t].Offset} // of its storage
	}
	for i, t := range op.Inputs {
		if c.misplaced(begins(t, cmd.Inputs[i])) {
			return fmt.Sprintf("input %d is not at an aligned place of the arena", i)
		}
	}
	made := len(op.Outputs) == 0
	for i, t := range op.Outputs {
		fresh := g.Fresh(op.ID, i)
		if fresh && cmd.Outputs[i] == program.Nowhere {
			continue
		}
		made = true
		if c.misplaced(begins(t, cmd.Outputs[i])) {
			return fmt.Sprintf("output %d is not at an aligned place of the arena", i)
		}
		for j, in := range op.Inputs {
			if !fresh && g.Tensors[in].Storage == g.Tensors[t].Storage &&
				begins(in, cmd.Inputs[j]) != begins(t, cmd.Outputs[i]) {
				return fmt.Sprintf("output %d is updated in place, and not where input %d is", i, j)
			}
		}
	}
	if !made {
		return "it makes nothing"
	}
	return ""
}
