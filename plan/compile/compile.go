package compile

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/program"
)

// Options are switches of Compile; the zero value is the recommended setting.
type Options struct {
	Poison bool // fill dropped ranges with NaN, so that a use after a drop shows in the results

	// Tick is told of every few steps of the work, of some nanoseconds each, and may panic: that ends Compile or Prove.
	// nil: nobody is.
	Tick func(steps int)

	Snapshot bool // make a snapshot section, unless the way through Home is predicted to cost less
	// by which it is made and judged; without Steps the latencies that the plan was made for. They change nothing else.
	Durations program.Durations
}

// Compile writes the program of a valid plan at the places of a layout. Plan, layout and graph must belong together;
// proof.Check proves the result.
func Compile(g *graph.Graph, p *plan.Plan, l *program.Placement, o Options) *program.Program {
	out := newCompiler(g, p, l, o).program()
	if !o.Snapshot {
		return out
	}
	best, cost := out, program.TimeHome(out, o.durations(p))
	for _, early := range []bool{true, false} {
		with := newCompiler(g, p, l, o).withSnapshot(early)
		if t := program.TimeSnapshot(with, o.durations(p)); t < cost || t == cost && best == out {
			best, cost = with, t
		}
	}
	return best
}

// durations are those of the options, with the latencies of a plan where they have none.
func (o *Options) durations(p *plan.Plan) program.Durations {
	d := o.Durations
	if len(d.Steps) == 0 {
		d.Steps = p.Made
	}
	if len(d.Steps) == 0 {
		d.Steps = make([]time.Duration, len(p.Steps))
	}
	return d
}

// newCompiler returns one that has written nothing.
func newCompiler(g *graph.Graph, p *plan.Plan, l *program.Placement, o Options) *compiler {
	if o.Tick == nil {
		o.Tick = func(int) {}
	}
	o.Tick(tableTicks * len(p.Steps))
	c := &compiler{g: g, p: p, l: l, options: o, moves: fold(g, p), last: g.LastVersions()}
	c.section = c.newSection()
	c.hosts, c.hostSize = program.SlotsOf(g, p)
	// Waits on the previous body are known once there was one: the second body is the one that repeats.
	c.hostUses = make([]uses, len(g.Storages))
	c.stayUses = make([]*uses, len(l.Stays.Residencies))
	for i := range c.stayUses {
		c.stayUses[i] = new(uses)
	}
	for _, s := range p.Entry {
		r := l.Stays.Entry[s]
		c.device.occupy(l.Offsets[r], l.Offsets[r]+g.Storages[s].Bytes, c.stayUses[r], new(need))
	}
	return c
}

// program writes a program without a snapshot.
func (c *compiler) program() *program.Program {
	out := &program.Program{Graph: c.g, Plan: c.p,
		Streams: []program.Unit{program.Compute, program.CopyOut, program.CopyIn, program.Host,
			entryStream: program.CopyIn},
		Regions: []program.Memory{program.Arena, program.HostMemory}, Arena: c.l.Arena, Align: c.l.Align,
		Host: c.hostSize}
	if c.g.Replicas() > 1 {
		out.Streams = append(out.Streams, program.Network)
	}
	out.Epilogue = c.newSection()
	c.prologue()
	out.Prologue = c.next()
	c.body()
	first := c.next()
	c.body()
	out.Body = c.section
	c.options.Tick(tableTicks * len(c.p.Steps))
	c.epilogue(&out.Epilogue)
	c.options.Tick(tableTicks * len(c.p.Steps))
	for i := range first.Commands {
		for _, w := range first.Commands[i].Waits {
			if w.Stream == entryStream {
				out.Body.Commands[i].Waits = append(out.Body.Commands[i].Waits, w)
			}
		}
	}
	return out
}

// next begins a new section and returns the one that is written.
func (c *compiler) next() program.Section {
	written := c.section
	for s, n := range written.Counts {
		c.origin[s] += n
	}
	c.section = c.newSection()
	return written
}

// streamOf and regionOf are the numbers that Compile gives to streams and regions.
func streamOf(k program.Kind) program.Stream {
	if k == program.Reduce {
		return networkStream
	}
	return program.Stream(k.Unit())
}
func regionOf(m program.Memory) program.Region { return program.Region(m) }

// inArena returns the address of a byte of the arena.
func inArena(offset graph.Bytes) program.Address {
	return program.Address{Region: regionOf(program.Arena), Offset: offset}
}

func (c *compiler) newSection() program.Section {
	n := networkStream
	if c.g.Replicas() > 1 {
		n++
	}
	return program.Section{Counts: make([]int, n)}
}

// What parts of the work take about, in the steps of Options.Tick.
const (
	tableTicks = 16 // to make a table, per step of the plan
	stepTicks  = 64 // to compile a step of the plan and the moves behind it
)

type compiler struct {
	g       *graph.Graph
	p       *plan.Plan
	l       *program.Placement
	options Options
	moves   []folded
	hosts   []graph.Bytes
	last    []int

	hostSize graph.Bytes

	section  program.Section
	origin   need // counts of the sections before
	device   occupancy
	stayUses []*uses // per residency
	hostUses []uses  // per storage
	order    order

	now     []int           // per storage: its residency, or -1
	version []int           // per storage: the version made last
	sync    []program.Point // that the next kernel waits for
	saver   *saver          // of the snapshot section; nil while a body is written
}

// body writes one iteration.
func (c *compiler) body() {
	g := c.g
	c.now = append(c.now[:0], c.l.Stays.Entry...)
	c.version = make([]int, len(g.Storages))
	for _, s := range g.Storages {
		if s.Role == graph.Input {
			c.emit(program.Command{Kind: program.Load, Stream: streamOf(program.Load), Slot: -1, Storage: s.ID,
				Host: c.host(s.ID), Bytes: s.Bytes}, need{})
		}
	}
	c.saver.keep(c)
	moves := c.follow(c.moves, -1)
	for slot, step := range c.p.Steps {
		c.options.Tick(stepTicks)
		c.saver.copyBefore(c, slot)
		c.kernel(slot, step)
		moves = c.follow(moves, slot)
	}
	c.saver.copyBefore(c, len(c.p.Steps))
}

// emit appends a command, with the accesses it makes on the host and the waits that n and those demand.
func (c *compiler) emit(cmd program.Command, n need) program.Point {
	host := &c.hostUses[cmd.Storage]
	switch cmd.Kind {
	case program.Load, program.Out:
		n.toWrite(host)
	case program.In, program.Read, program.Keep:
		n.toRead(host)
	}
	at := c.append(cmd, n)
	switch cmd.Kind {
	case program.Load, program.Out:
		host.wrote(at)
	case program.In, program.Read, program.Keep:
		host.read(at)
	}
	return at
}

// append appends a command that must come after n, and returns its place over all sections.
func (c *compiler) append(cmd program.Command, n need) program.Point {
	cmd.Waits = c.order.waits(cmd.Stream, n, c.origin)
	at := appendTo(&c.section, cmd)
	at.Count += c.origin[at.Stream]
	return at
}

// appendTo appends a command to a section and returns its place there.
func appendTo(s *program.Section, c program.Command) program.Point {
	s.Commands = append(s.Commands, c)
	s.Counts[c.Stream]++
	return program.Point{Stream: c.Stream, Count: s.Counts[c.Stream]}
}

func (c *compiler) host(s graph.StorageID) program.Address {
	return program.Address{Region: regionOf(program.HostMemory), Offset: c.hosts[s]}
}

// settle gives a residency's bytes to it, after everyone who used them before.
func (c *compiler) settle(r int, n *need) {
	u := new(uses)
	c.stayUses[r] = u
	s := c.l.Stays.Residencies[r].Storage
	c.device.occupy(c.l.Offsets[r], c.l.Offsets[r]+c.g.Storages[s].Bytes, u, n)
	c.now[s] = r
}

func (c *compiler) place(s graph.StorageID) program.Address {
	return inArena(c.l.Offsets[c.now[s]])
}

func (c *compiler) kernel(slot int, step plan.Step) {
	g := c.g
	op := &g.Ops[step.Op]
	var n need
	for _, p := range c.sync {
		n.point(p)
	}
	c.sync = c.sync[:0]
	if step.Join {
		for _, s := range [2]program.Stream{streamOf(program.Out), streamOf(program.In)} {
			c.sync = append(c.sync, program.Point{Stream: s, Count: c.section.Counts[s] + c.origin[s]})
		}
	}
	kind := program.KindOf(op)
	cmd := program.Command{Kind: kind, Stream: streamOf(kind), Slot: slot, Op: op.ID, Variant: step.Variant,
		Scratch: program.Nowhere, Storage: -1}
	for _, t := range op.Inputs {
		s := g.Tensors[t].Storage
		n.toRead(c.stayUses[c.now[s]])
		cmd.Inputs = append(cmd.Inputs, c.operand(t))
	}
	for i, t := range op.Outputs {
		s := g.Tensors[t].Storage
		switch r := c.l.Stays.Made[slot][i]; {
		case !step.Want.Has(i):
			cmd.Outputs = append(cmd.Outputs, program.Nowhere)
			continue
		case r >= 0:
			c.settle(r, &n)
		default:
			n.toWrite(c.stayUses[c.now[s]])
		}
		cmd.Outputs = append(cmd.Outputs, c.operand(t))
	}
	scratch := new(uses)
	if step.Scratch > 0 {
		cmd.Scratch, cmd.ScratchBytes = inArena(c.l.Scratch[slot]), step.Scratch
		c.device.occupy(cmd.Scratch.Offset, cmd.Scratch.Offset+step.Scratch, scratch, &n)
	}
	at := c.append(cmd, n)
	scratch.wrote(at)
	for _, t := range op.Inputs {
		c.stayUses[c.now[g.Tensors[t].Storage]].read(at)
	}
	for i, t := range op.Outputs {
		if s := g.Tensors[t].Storage; step.Want.Has(i) {
			c.stayUses[c.now[s]].wrote(at)
			c.version[s] = g.Tensors[t].Version
		}
	}
}

func (c *compiler) operand(t graph.TensorID) program.Address {
	a := c.place(c.g.Tensors[t].Storage)
	a.Offset += c.g.Tensors[t].Offset
	return a
}

// follow writes the leading moves that come after slot and returns the rest.
func (c *compiler) follow(moves []folded, slot int) []folded {
	for len(moves) > 0 && moves[0].After == slot {
		c.move(moves[0])
		moves = moves[1:]
	}
	return moves
}

func (c *compiler) move(m folded) {
	s := m.Storage
	cmd := program.Command{Slot: m.After, Storage: s, Version: c.version[s], Host: c.host(s),
		Bytes: c.g.Storages[s].Bytes, Hold: m.Delay}
	var n need
	compute := streamOf(program.Kernel)
	n.point(program.Point{Stream: compute, Count: c.section.Counts[compute] + c.origin[compute]}) // the trigger
	switch m.Kind {
	case plan.Out:
		c.saver.beforeOut(c, m, &n)
		cmd.Kind, cmd.Stream, cmd.Device = program.Out, streamOf(program.Out), c.place(s)
		n.toRead(c.stayUses[c.now[s]])
		at := c.emit(cmd, n)
		c.stayUses[c.now[s]].read(at)
		c.saver.afterOut(c, m)
		if m.Sync {
			c.sync = append(c.sync, at)
		}
		if c.g.Storages[s].Role == graph.Output && c.version[s] == c.last[s] {
			c.emit(program.Command{Kind: program.Read, Stream: streamOf(program.Read), Slot: m.After, Storage: s,
				Version: c.version[s], Host: c.host(s), Bytes: cmd.Bytes}, need{})
		}
	case plan.Drop:
		r := c.now[s]
		if c.options.Poison {
			cmd.Kind, cmd.Stream = program.Poison, streamOf(program.Poison)
			cmd.Device, cmd.Host = c.place(s), program.Nowhere
			n.toWrite(c.stayUses[r])
			at := c.append(cmd, n)
			c.stayUses[r].wrote(at)
		}
		c.now[s] = -1
	case plan.In:
		c.settle(c.l.Stays.In[m.index], &n)
		cmd.Kind, cmd.Stream, cmd.Device = program.In, streamOf(program.In), c.place(s)
		at := c.emit(cmd, n)
		c.stayUses[c.now[s]].wrote(at)
		if m.Sync {
			c.sync = append(c.sync, at)
		}
	}
}

// used returns, per storage, the first step that touches it or that a move of it follows; the number of steps of those
// that an iteration leaves alone.
func (c *compiler) used() []int {
	used := slices.Repeat([]int{len(c.p.Steps)}, len(c.g.Storages))
	for _, m := range c.p.Moves {
		used[m.Storage] = min(used[m.Storage], m.After)
	}
	for slot, step := range c.p.Steps {
		for _, s := range c.g.Touches(step.Op) {
			used[s] = min(used[s], slot)
		}
	}
	return used
}

// prologue copies the storages of Entry in, those first that the body uses first. Its copies have a stream of their
// own, so that the body's copies in need not come after all of them.
func (c *compiler) prologue() {
	used := c.used()
	entry := slices.Clone(c.p.Entry)
	slices.SortStableFunc(entry, func(a, b graph.StorageID) int { return cmp.Compare(used[a], used[b]) })
	var due time.Duration
	slot := 0
	for _, s := range entry {
		for ; slot < used[s] && slot < len(c.p.Made); slot++ {
			due += c.p.Made[slot]
		}
		r := c.l.Stays.Entry[s]
		at := c.emit(program.Command{Kind: program.In, Stream: entryStream, Slot: -1, Storage: s,
			Bytes: c.g.Storages[s].Bytes, Device: inArena(c.l.Offsets[r]), Host: c.host(s), Due: due}, need{})
		c.stayUses[r].wrote(at)
	}
}

// epilogue copies out what the host does not have at the end of a body. Everything waits for the whole body.
func (c *compiler) epilogue(section *program.Section) {
	for _, s := range c.stale() {
		appendTo(section, program.Command{Kind: program.Out, Stream: streamOf(program.Out), Slot: -1, Storage: s,
			Bytes: c.g.Storages[s].Bytes, Device: inArena(c.l.Offsets[c.l.Stays.Entry[s]]), Host: c.host(s)})
	}
}

// stale lists the storages of Entry that change in an iteration and whose last version is not copied out in it.
func (c *compiler) stale() []graph.StorageID {
	held := make(map[graph.StorageID]int)
	for _, cmd := range c.section.Commands {
		if cmd.Kind == program.Out {
			held[cmd.Storage] = cmd.Version
		}
	}
	var stale []graph.StorageID
	for _, s := range c.p.Entry {
		if version, ok := held[s]; c.last[s] > 0 && (!ok || version != c.last[s]) {
			stale = append(stale, s)
		}
	}
	return stale
}
