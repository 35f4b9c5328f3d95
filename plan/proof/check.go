package proof

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan/program"
)

// The kinds of problems that Check finds; errors.Is tells them apart.
var (
	ErrRace    = errors.New("unordered uses of the same bytes")
	ErrContent = errors.New("wrong content")
	ErrBounds  = errors.New("outside of the region")
	ErrWait    = errors.New("wait on a later command")
	ErrCommand = errors.New("malformed command")
	ErrPlan    = errors.New("not what the plan says")
)

// What parts of the work take about, in the steps that a tick is told of.
const (
	tableTicks = 16 // to make a table, per step of the plan
	checkTicks = 64 // to check a command
)

// Check proves a program without trust in what compiled it. It carries out Prologue, Body, Body and Epilogue in list
// order, and Prologue and Epilogue alone, since a job may be told to stop before its first body. With a snapshot
// section it carries out Prologue, Body, Body, Snapshot, Body and Epilogue instead, and Prologue, Snapshot, Body and
// Epilogue as well. For every byte of all regions it keeps who used it last and what it holds.
//
//   - The regions on the host are as large as the slots of the plan, and of a snapshot, together.
//   - Every command is of a kind that its section has, on a stream of its kind's unit, and within its regions at
//     aligned places. Loads are of inputs, reads of outputs. An update in place writes where it reads. No copy is held
//     for longer than the plan's iteration.
//   - The kernels and reductions of the body and of the snapshot are the steps of the plan, in its order: ops,
//     variants, outputs wanted and scratch. There is one stream of the network at most, so that every replica comes to
//     the all-reduces in that order.
//   - Every wait names an earlier command, so the list can be carried out under any timing.
//   - Two uses of the same bytes, one of them a write, are ordered by streams and waits (vector clocks), so every
//     execution gives the results of the list order.
//   - In list order every command finds the content that it reads: the right version, of the right iteration, whole.
//   - Every output's last version is handed to the job in every body and snapshot.
//   - After the epilogue the host slots of persistent storages hold their newest version: Home.
//   - After the snapshot its region holds the content that every persistent storage had when it began. What the
//     epilogue copies is on the device, and what it does not copy is on the host, as after a body.
//
// Bodies are not drained before: they may begin while the prologue goes on. A snapshot begins when the prologue has
// ended, and the epilogue when all has.
//
// The third body is like the second: the waits are the same and so is the state after a body. What uses bytes of the
// prologue is ordered after it in the first body, and a later one has the same waits. One body is like two: what the
// epilogue reads is written in every body, or never. The body after a snapshot and a body is like the one after two
// bodies, since every byte that a snapshot uses and a body writes is written in the first of them.
//
// The meaning of waits is that of Lanes, which devices use too. The graph must be valid. That the plan is valid Check
// does not ask: no device takes a program by it alone.
func Check(p *program.Program) error { return check(p, func(int) {}) }

// check is Check for a caller who may want to stop: tick is told of every few steps of the work, and may panic.
func check(p *program.Program, tick func(steps int)) error {
	if err := checkTables(p); err != nil {
		return fmt.Errorf("program: %w", err)
	}
	c := newChecker(p, tick)
	body, snapshot := &p.Body, &p.Snapshot
	if len(snapshot.Commands) == 0 {
		c.train(body, body)
	} else {
		c.train(body, body, snapshot, body)
		c.train(snapshot, body)
		c.outputs(snapshot)
	}
	c.outputs(body)
	c.train()
	return errors.Join(c.problems...)
}

// outputs checks that an iteration hands every output to the job.
func (c *checker) outputs(section *program.Section) {
	for _, s := range c.g.Storages {
		c.tick(checkTicks)
		if s.Role == graph.Output && !slices.ContainsFunc(section.Commands, func(cmd program.Command) bool {
			return cmd.Kind == program.Read && cmd.Storage == s.ID && cmd.Version == c.last[s.ID]
		}) {
			c.say(c.nameOf(section), ErrContent, "version %d of output %s is never read", c.last[s.ID], s.Name)
		}
	}
}

// checkTables checks what does not depend on commands.
func checkTables(p *program.Program) error {
	if p.Plan == nil || p.Graph == nil {
		return fmt.Errorf("%w: there is no plan or no graph", ErrPlan)
	}
	if p.Align <= 0 || p.Arena < 0 || p.Arena > graph.MaxTotal || p.Arena%p.Align != 0 {
		return fmt.Errorf("%w: an arena of %d bytes aligned to %d", ErrBounds, p.Arena, p.Align)
	}
	_, host := program.SlotsOf(p.Graph, p.Plan)
	saved := graph.Bytes(0)
	if len(p.Snapshot.Commands) > 0 {
		_, saved = program.SnapshotSlots(p.Graph)
	}
	if p.Host != host || p.Saved != saved {
		return fmt.Errorf("%w: %d bytes of the host and %d of the snapshot, want %d and %d", ErrBounds, p.Host, p.Saved,
			host, saved)
	}
	if slices.ContainsFunc(p.Streams, func(u program.Unit) bool { return u >= program.Units }) {
		return fmt.Errorf("%w: streams of %v, a unit is one up to %v", ErrCommand, p.Streams, program.Units-1)
	}
	network := 0
	for _, u := range p.Streams {
		if u == program.Network {
			network++
		}
	}
	if network > 1 {
		return fmt.Errorf("%w: %d streams of the network, which has one order", ErrCommand, network)
	}
	want := []program.Memory{program.Arena, program.HostMemory}
	if len(p.Snapshot.Commands) > 0 {
		want = append(want, program.SnapshotMemory)
	}
	if sorted := slices.Sorted(slices.Values(p.Regions)); !slices.Equal(sorted, want) {
		return fmt.Errorf("%w: regions of %v, want %v once each", ErrBounds, p.Regions, want)
	}
	return nil
}

// checker carries out sections. Its parts are in files of their own: what a command must be in itself
// (check_form.go), what comes after what (check_order.go), which bytes a command uses (check_use.go), and what they
// hold (check_bytes.go).
type checker struct {
	g     *graph.Graph
	p     *program.Program
	last  []int
	slots []program.Address // of storages on the host; at an offset of -1 where the plan has none
	saved []program.Address // of persistent storages in the snapshot; nil without one
	sizes []graph.Bytes     // per region
	limit time.Duration     // that a copy may be held

	order checkOrder
	bytes checkBytes

	reads, writes []use // of the present command, for kernelUses

	problems []error
	tick     func(steps int)
}

func newChecker(p *program.Program, tick func(steps int)) *checker {
	g := p.Graph
	c := &checker{tick: tick, g: g, p: p, last: g.LastVersions(), slots: make([]program.Address, len(g.Storages)),
		limit: p.Plan.Length()}
	hosts, _ := program.SlotsOf(g, p.Plan)
	host := program.Region(slices.Index(p.Regions, program.HostMemory))
	for s := range g.Storages {
		c.slots[s] = program.Address{Region: host, Offset: hosts[s]}
	}
	for _, m := range p.Regions {
		c.sizes = append(c.sizes, [program.Memories]graph.Bytes{program.Arena: p.Arena, program.HostMemory: p.Host,
			program.SnapshotMemory: p.Saved}[m])
	}
	if region := slices.Index(p.Regions, program.SnapshotMemory); region >= 0 {
		slots, _ := program.SnapshotSlots(g)
		for _, offset := range slots {
			c.saved = append(c.saved, program.Address{Region: program.Region(region), Offset: offset})
		}
	}
	c.tick(tableTicks * len(p.Plan.Steps))
	c.bytes = c.newBytes()
	return c
}

// reset brings the job Home: host slots of persistent storages hold their content, nothing else holds any, and nothing
// was issued.
func (c *checker) reset() {
	c.order = newCheckOrder(c.p.Streams)
	c.bytes.forget()
	for _, s := range c.g.Storages {
		c.tick(checkTicks)
		if s.Role.Persistent() {
			cells := c.bytes.span(c.slots[s.ID], s.Bytes)
			cells.fill(cell{storage: s.ID, base: c.slots[s.ID].Offset})
		}
	}
}

// train carries out a stay away from Home with some iterations, unless there are problems already.
func (c *checker) train(iterations ...*program.Section) {
	if len(c.problems) > 0 {
		return
	}
	c.reset()
	p, n := c.p, len(iterations)
	home := "epilogue"
	if n == 0 {
		home = "epilogue without a body"
	}
	c.section(&p.Prologue, "prologue", 0, true)
	for i, s := range iterations {
		c.section(s, c.nameOf(s), i, i == 0 && s == &p.Snapshot)
		if s == &p.Snapshot && len(c.problems) == 0 {
			c.taken(i)
		}
	}
	c.section(&p.Epilogue, home, n, true)
	if len(c.problems) > 0 {
		return
	}
	for _, s := range c.g.Storages {
		c.tick(checkTicks)
		if s.Role.Persistent() {
			c.holds(fmt.Sprintf("end after %d iterations", n), c.slots[s.ID], s.ID, n*c.last[s.ID])
		}
	}
}

// taken checks what a snapshot has left: in its region the content with which the iteration began, on device and host
// the newest content where it is after a body.
func (c *checker) taken(iteration int) {
	copied := make([]bool, len(c.g.Storages)) // by the epilogue
	for i := range c.p.Epilogue.Commands {
		cmd := &c.p.Epilogue.Commands[i]
		if cmd.Kind == program.Out && c.flaw(cmd) == "" && c.fits(&use{at: cmd.Device, size: cmd.Bytes}) {
			copied[cmd.Storage] = true
			c.holds("end of the snapshot, on the device", cmd.Device, cmd.Storage,
				c.generation(cmd.Storage, cmd.Version, iteration+1))
		}
	}
	for _, s := range c.g.Storages {
		if !s.Role.Persistent() {
			continue
		}
		c.holds("end of the snapshot", c.saved[s.ID], s.ID, c.generation(s.ID, 0, iteration))
		if !copied[s.ID] {
			c.holds("end of the snapshot, on the host", c.slots[s.ID], s.ID, c.generation(s.ID, 0, iteration+1))
		}
	}
}

// holds checks that a place holds a storage in a generation.
func (c *checker) holds(where string, at program.Address, s graph.StorageID, generation int) {
	cells := c.bytes.span(at, c.g.Storages[s].Bytes)
	if x := cells.findOther(s, generation, at.Offset); x != nil {
		c.sayContent(where, x, s, generation)
	}
}

func (c *checker) nameOf(s *program.Section) string {
	if s == &c.p.Snapshot {
		return "snapshot"
	}
	return "body"
}

func (c *checker) say(where any, kind error, format string, args ...any) {
	const limit = 20 // one mistake makes many; the first ones tell
	if len(c.problems) < limit {
		c.problems = append(c.problems, fmt.Errorf("%s: %w: %s", where, kind, fmt.Sprintf(format, args...)))
	}
}

// place is a command in words, if they are needed.
type place struct {
	c       *checker
	section string
	index   int
	cmd     *program.Command
}

func (p place) String() string {
	return fmt.Sprintf("%s command %d (%s %s)", p.section, p.index, p.c.p.StreamName(p.cmd.Stream), p.c.subject(p.cmd))
}

func (c *checker) subject(cmd *program.Command) string {
	if cmd.Kind.Executes() {
		return c.g.Ops[cmd.Op].Name
	}
	return fmt.Sprintf("%s %s", cmd.Kind, c.g.Storages[cmd.Storage].Name)
}

func (c *checker) section(s *program.Section, name string, iteration int, drain bool) {
	run := c.order.lanes.Start(s, iteration, drain)
	counts := make([]int, len(c.p.Streams))
	slot := 0
	for i := range s.Commands {
		cmd := &s.Commands[i]
		c.tick(checkTicks)
		if flaw := c.flaw(cmd); flaw != "" {
			c.say(fmt.Sprintf("%s command %d", name, i), ErrCommand, "%s: %+v", flaw, *cmd)
			return
		}
		where := place{c, name, i, cmd}
		switch {
		case s == &c.p.Prologue && cmd.Kind != program.In, s == &c.p.Epilogue && cmd.Kind != program.Out,
			s == &c.p.Body && (cmd.Kind == program.Save || cmd.Kind == program.Keep),
			s != &c.p.Prologue && cmd.Due != 0:
			c.say(where, ErrCommand, "no such command belongs in a %s", name)
		case cmd.Kind.Executes():
			c.step(where, cmd, slot)
			slot = cmd.Slot + 1
		}
		at := c.checkWaits(where, run, cmd)
		counts[cmd.Stream]++
		c.useAll(where, cmd, iteration, at)
	}
	if (s == &c.p.Body || s == &c.p.Snapshot) && slot != len(c.p.Plan.Steps) {
		c.say(name, ErrPlan, "the kernels end before step %d of %d", slot, len(c.p.Plan.Steps))
	}
	if !slices.Equal(counts, s.Counts) {
		c.say(name, ErrCommand, "counts %v, has %v", s.Counts, counts)
	}
}

// step checks that a kernel is what the plan says of a slot.
func (c *checker) step(where place, cmd *program.Command, slot int) {
	if cmd.Slot != slot {
		c.say(where, ErrPlan, "a kernel of slot %d where slot %d is next", cmd.Slot, slot)
		return
	}
	step := &c.p.Plan.Steps[slot]
	if cmd.Op != step.Op || cmd.Variant != step.Variant || cmd.ScratchBytes != step.Scratch {
		c.say(where, ErrPlan, "op %d by variant %q with %d bytes of scratch, step %d is %+v",
			cmd.Op, cmd.Variant, cmd.ScratchBytes, slot, *step)
		return
	}
	for i, a := range cmd.Outputs {
		if step.Want.Has(i) == (a == program.Nowhere) {
			c.say(where, ErrPlan, "output %d is at %v, step %d is %+v", i, a, slot, *step)
		}
	}
}
