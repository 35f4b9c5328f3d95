package proof

import (
	"tensile/graph"
	"tensile/plan/program"
)

// use is one access of a command to a whole storage, or to scratch.
type use struct {
	at         program.Address
	size       graph.Bytes
	write      bool
	storage    graph.StorageID // nothing: content does not matter, and is none after a write
	generation int
}

// useAll makes the accesses of a command.
func (c *checker) useAll(where place, cmd *program.Command, iteration int, at program.Point) {
	uses := c.uses(cmd, iteration)
	for i := range uses {
		u := &uses[i]
		switch {
		case !c.fits(u):
			c.say(where, ErrBounds, "%d bytes at %d of region %d", u.size, u.at.Offset, u.at.Region)
		case disjoint(uses[:i], u):
			c.use(where, u, at)
		default:
			c.say(where, ErrContent, "two operands of it share bytes at %s %d", c.p.Regions[u.at.Region], u.at.Offset)
		}
	}
}

// uses lists the accesses of a command in an iteration: reads first, then writes. The next call overwrites the list.
func (c *checker) uses(cmd *program.Command, iteration int) []use {
	of := func(at program.Address, s graph.StorageID, version int, write bool) use {
		return use{at, c.g.Storages[s].Bytes, write, s, c.generation(s, version, iteration)}
	}
	switch cmd.Kind {
	case program.Kernel, program.Reduce:
		return c.kernelUses(cmd, of)
	case program.Out:
		return []use{of(cmd.Device, cmd.Storage, cmd.Version, false), of(cmd.Host, cmd.Storage, cmd.Version, true)}
	case program.In:
		return []use{of(cmd.Host, cmd.Storage, cmd.Version, false), of(cmd.Device, cmd.Storage, cmd.Version, true)}
	case program.Load:
		return []use{of(cmd.Host, cmd.Storage, 0, true)}
	case program.Read:
		return []use{of(cmd.Host, cmd.Storage, cmd.Version, false)}
	case program.Save:
		return []use{of(cmd.Device, cmd.Storage, 0, false), of(cmd.Snapshot, cmd.Storage, 0, true)}
	case program.Keep:
		return []use{of(cmd.Host, cmd.Storage, 0, false), of(cmd.Snapshot, cmd.Storage, 0, true)}
	case program.Poison:
		return []use{{at: cmd.Device, size: cmd.Bytes, write: true, storage: nothing}}
	}
	return nil
}

func (c *checker) kernelUses(cmd *program.Command, of func(program.Address, graph.StorageID, int, bool) use) []use {
	g := c.g
	op := &g.Ops[cmd.Op]
	reads, writes := c.reads[:0], c.writes[:0]
	add := func(t graph.TensorID, a program.Address, version int, write bool) {
		tensor := g.Tensors[t]
		a.Offset -= tensor.Offset
		u := of(a, tensor.Storage, version, write)
		if write {
			writes = append(writes, u)
		} else {
			reads = append(reads, u)
		}
	}
	for i, t := range op.Inputs {
		add(t, cmd.Inputs[i], g.Tensors[t].Version, false)
	}
	for i, t := range op.Outputs {
		if cmd.Outputs[i] == program.Nowhere {
			continue
		}
		add(t, cmd.Outputs[i], g.Tensors[t].Version, true)
	}
	if cmd.ScratchBytes > 0 {
		writes = append(writes, use{at: cmd.Scratch, size: cmd.ScratchBytes, write: true, storage: nothing})
	}
	reads = append(reads, writes...)
	c.reads, c.writes = reads, writes
	return reads
}

// generation numbers the contents that a storage ever has: persistent ones go on counting where the last iteration
// ended, others start again in each.
func (c *checker) generation(s graph.StorageID, version, iteration int) int {
	if c.g.Storages[s].Role.Persistent() {
		return iteration*c.last[s] + version
	}
	return iteration*(c.last[s]+1) + version
}

// disjoint reports whether u shares no byte with an operand of another storage in the same command.
func disjoint(others []use, u *use) bool {
	for i := range others {
		o := &others[i]
		same := o.storage == u.storage && o.at == u.at && o.storage != nothing
		if !same && (o.write || u.write) && o.at.Region == u.at.Region &&
			o.at.Offset < u.at.Offset+u.size && u.at.Offset < o.at.Offset+o.size {
			return false
		}
	}
	return true
}

// fits reports whether a use lies in its region. Sizes are those of storages, or checked.
func (c *checker) fits(u *use) bool {
	r := u.at.Region
	return 0 <= r && int(r) < len(c.sizes) && 0 <= u.at.Offset && u.at.Offset <= c.sizes[r]-u.size
}

// use makes one access: it must come after every access that it conflicts with, and a read must find its content.
func (c *checker) use(where place, u *use, at program.Point) {
	cells := c.bytes.span(u.at, u.size)
	if other, what := c.order.unordered(&cells, u.write, at); what != "" {
		c.say(where, ErrRace, "%s of %s may come before the %s at %s:%d of the same bytes",
			access(u.write), c.name(u.storage), what, c.p.StreamName(other.Stream), other.Count)
	}
	if u.write {
		cells.fill(cell{storage: u.storage, generation: u.generation, base: u.at.Offset, write: at})
		return
	}
	if u.storage != nothing {
		if x := cells.findOther(u.storage, u.generation, u.at.Offset); x != nil {
			c.sayContent(where, x, u.storage, u.generation)
		}
	}
	cells.read(at)
}

func (c *checker) name(s graph.StorageID) string {
	if s == nothing {
		return "scratch"
	}
	return c.g.Storages[s].Name
}
