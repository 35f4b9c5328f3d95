package program

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/graph"
)

// The kinds of problems that Check finds; errors.Is tells them apart.
var (
	ErrRace    = errors.New("unordered uses of the same bytes")
	ErrContent = errors.New("wrong content")
	ErrBounds  = errors.New("outside of the region")
	ErrOrder   = errors.New("wait on a later command")
	ErrForm    = errors.New("malformed command")
	ErrPlan    = errors.New("not what the plan says")
)

// Check proves a program without trust in Compile: it carries out Prologue, Body, Body and Epilogue in list order, and Prologue and
// Epilogue alone, since a job may be told to stop before its first body. It keeps, for every byte of both regions, who used it
// last and what it holds.
//
//   - Every command is of a kind that its section has, on the lane of its kind, and within both regions at aligned places. Loads are of
//     inputs, reads of outputs. An update in place writes where it reads. No copy is held for longer than the plan's iteration.
//   - The kernels of the body are the steps of the plan, in its order: ops, variants, outputs wanted and scratch.
//   - Every wait names an earlier command, so the list can be carried out under any timing.
//   - Two uses of the same bytes, one of them a write, are ordered by lanes and waits (vector clocks), so every
//     execution gives the results of the list order.
//   - In list order every command finds the content that it reads: the right version, of the right iteration, whole.
//   - Every output's last version is handed to the job in every body.
//   - After the epilogue the host slots of persistent storages hold their newest version: Home.
//
// The third body is like the second: the waits are the same and so is the state after a body. One body is like two: what the
// epilogue reads is written in every body, or never.
func Check(g *graph.Graph, p *Program) error {
	if p.Plan == nil {
		return fmt.Errorf("program: %w: there is no plan", ErrPlan)
	}
	if p.Align <= 0 || p.Arena < 0 || p.Arena > graph.MaxTotal || p.Arena%p.Align != 0 || p.Host < 0 || p.Host > graph.MaxTotal {
		return fmt.Errorf("program: %w: an arena of %d bytes aligned to %d, %d bytes of the host", ErrBounds, p.Arena, p.Align, p.Host)
	}
	c := newChecker(g, p)
	c.train(2)
	for _, s := range g.Storages {
		if s.Role == graph.Output && !slices.ContainsFunc(p.Body.Commands, func(cmd Command) bool {
			return cmd.Kind == Read && cmd.Storage == s.ID && cmd.Version == c.last[s.ID]
		}) {
			c.say("body", ErrContent, "version %d of output %s is never read", c.last[s.ID], s.Name)
		}
	}
	if len(c.problems) == 0 {
		c.reset()
		c.train(0)
	}
	return errors.Join(c.problems...)
}

// train carries out a stay away from Home with a number of bodies.
func (c *checker) train(bodies int) {
	p := c.p
	home := "epilogue"
	if bodies == 0 {
		home = "epilogue without a body"
	}
	c.section(&p.Prologue, "prologue", 0)
	c.drain()
	for i := range bodies {
		c.section(&p.Body, "body", i)
	}
	c.drain()
	c.section(&p.Epilogue, home, bodies)
	if len(c.problems) > 0 {
		return
	}
	for _, s := range c.g.Storages {
		if s.Role.Persistent() {
			c.holds(fmt.Sprintf("end after %d bodies", bodies), c.span(c.slots[s.ID], s.Bytes), c.slots[s.ID], s.ID, bodies*c.last[s.ID])
		}
	}
}

// nothing is the content of bytes that hold no storage.
const nothing graph.StorageID = -1

// cell is a range of bytes that every command uses as a whole or not at all.
type cell struct {
	storage    graph.StorageID // whose content it holds, or nothing
	generation int             // which one: see checker.generation
	base       graph.Bytes     // where that storage begins
	write      Point
	reads      [Lanes]int
}

type checker struct {
	g     *graph.Graph
	p     *Program
	last  []int
	slots []Address
	most  time.Duration // that a copy may be held

	bounds [Regions][]graph.Bytes // ascending; cell i lies between bounds i and i+1
	cells  [Regions][]cell
	clocks [Lanes][]clock
	floor  clock // counts at the last drain
	origin clock // counts where the present section began

	reads, writes []use // of the present command, for kernelUses

	problems []error
}

func newChecker(g *graph.Graph, p *Program) *checker {
	c := &checker{g: g, p: p, last: g.LastVersions(), slots: make([]Address, len(g.Storages)), most: p.Plan.Length()}
	hosts, _ := HostSlots(g)
	mark := func(a Address, size graph.Bytes) {
		c.bounds[a.Region] = append(c.bounds[a.Region], a.Offset, a.Offset+size)
	}
	for s := range g.Storages {
		c.slots[s] = Address{HostMemory, hosts[s]}
		mark(c.slots[s], g.Storages[s].Bytes)
	}
	for _, section := range []*Section{&p.Prologue, &p.Body, &p.Epilogue} {
		for i := range section.Commands {
			if cmd := &section.Commands[i]; c.flaw(cmd) == "" {
				for _, u := range c.uses(cmd, 0) {
					if c.fits(u) {
						mark(u.at, u.size)
					}
				}
			}
		}
	}
	for r := range c.bounds {
		slices.Sort(c.bounds[r])
		c.bounds[r] = slices.Compact(c.bounds[r])
		c.cells[r] = make([]cell, len(c.bounds[r]))
	}
	c.reset()
	return c
}

// reset brings the job Home: host slots of persistent storages hold their content, nothing else holds any, and nothing was issued.
func (c *checker) reset() {
	for r := range c.cells {
		fill(c.cells[r], cell{storage: nothing})
	}
	for _, s := range c.g.Storages {
		if s.Role.Persistent() {
			fill(c.span(c.slots[s.ID], s.Bytes), cell{storage: s.ID, base: c.slots[s.ID].Offset})
		}
	}
	c.clocks, c.floor = [Lanes][]clock{}, clock{}
}

// generation numbers the contents that a storage ever has: persistent ones go on counting where the last iteration
// ended, others start anew in each.
func (c *checker) generation(s graph.StorageID, version, iteration int) int {
	if c.g.Storages[s].Role.Persistent() {
		return iteration*c.last[s] + version
	}
	return iteration*(c.last[s]+1) + version
}

// use is one access of a command to a whole storage, or to scratch.
type use struct {
	at         Address
	size       graph.Bytes
	write      bool
	storage    graph.StorageID // nothing: content does not matter, and is none after a write
	generation int
}

// uses lists the accesses of a command in an iteration: reads first, then writes. The next call overwrites the list.
func (c *checker) uses(cmd *Command, iteration int) []use {
	of := func(at Address, s graph.StorageID, version int, write bool) use {
		return use{at, c.g.Storages[s].Bytes, write, s, c.generation(s, version, iteration)}
	}
	switch cmd.Kind {
	case Kernel:
		return c.kernelUses(cmd, of)
	case Out:
		return []use{of(cmd.Device, cmd.Storage, cmd.Version, false), of(cmd.Host, cmd.Storage, cmd.Version, true)}
	case In:
		return []use{of(cmd.Host, cmd.Storage, cmd.Version, false), of(cmd.Device, cmd.Storage, cmd.Version, true)}
	case Load:
		return []use{of(cmd.Host, cmd.Storage, 0, true)}
	case Read:
		return []use{of(cmd.Host, cmd.Storage, cmd.Version, false)}
	case Poison:
		return []use{{at: cmd.Device, size: cmd.Bytes, write: true, storage: nothing}}
	}
	return nil
}

func (c *checker) kernelUses(cmd *Command, of func(Address, graph.StorageID, int, bool) use) []use {
	g := c.g
	op := &g.Ops[cmd.Op]
	reads, writes := c.reads[:0], c.writes[:0]
	add := func(t graph.TensorID, a Address, version int, write bool) {
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
		if cmd.Outputs[i] == Nowhere {
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

func (c *checker) say(where any, kind error, format string, args ...any) {
	const most = 20 // one mistake makes many; the first ones tell
	if len(c.problems) < most {
		c.problems = append(c.problems, fmt.Errorf("%s: %w: %s", where, kind, fmt.Sprintf(format, args...)))
	}
}

// place is a command in words, if they are needed.
type place struct {
	c       *checker
	section string
	index   int
	cmd     *Command
}

func (p place) String() string {
	return fmt.Sprintf("%s command %d (%s %s)", p.section, p.index, p.cmd.Lane, p.c.subject(p.cmd))
}

func (c *checker) section(s *Section, name string, iteration int) {
	c.origin = clock(c.counts())
	var counts [Lanes]int
	slot := 0
	for i := range s.Commands {
		cmd := &s.Commands[i]
		if flaw := c.flaw(cmd); flaw != "" {
			c.say(fmt.Sprintf("%s command %d", name, i), ErrForm, "%s: %+v", flaw, *cmd)
			return
		}
		where := place{c, name, i, cmd}
		switch {
		case s == &c.p.Prologue && cmd.Kind != In, s == &c.p.Epilogue && cmd.Kind != Out:
			c.say(where, ErrForm, "no such command belongs in a %s", name)
		case cmd.Kind == Kernel:
			c.step(where, cmd, slot)
			slot = cmd.Slot + 1
		}
		at := c.order(where, cmd)
		counts[cmd.Lane]++
		uses := c.uses(cmd, iteration)
		for i, u := range uses {
			if !c.inside(where, u) {
				continue
			}
			if disjoint(uses[:i], u) {
				c.use(where, u, at)
			} else {
				c.say(where, ErrContent, "two operands of it share bytes at %s %d", [...]string{"arena", "host"}[u.at.Region], u.at.Offset)
			}
		}
	}
	if s == &c.p.Body && slot != len(c.p.Plan.Steps) {
		c.say(name, ErrPlan, "the kernels end before step %d of %d", slot, len(c.p.Plan.Steps))
	}
	if counts != s.Counts {
		c.say(name, ErrForm, "counts %v, has %v", s.Counts, counts)
	}
}

// laneOf is the lane of each kind of command.
var laneOf = [...]Lane{Kernel: Compute, Out: CopyOut, In: CopyIn, Load: Host, Read: Host, Poison: Compute}

// flaw says what is wrong with a command in itself, "" if nothing is: its ids lead somewhere, its lane is that of its kind, a kernel
// has the operands of its op, and anything else is about a whole storage and its host slot.
func (c *checker) flaw(cmd *Command) string {
	switch {
	case int(cmd.Kind) >= len(laneOf):
		return "no such kind"
	case cmd.Lane != laneOf[cmd.Kind]:
		return "on another lane than that of its kind"
	case cmd.Slot < -1 || cmd.Slot >= len(c.p.Plan.Steps) || cmd.Slot < 0 && cmd.Kind == Kernel:
		return "no such slot"
	case cmd.Hold != 0 && cmd.Kind != In && cmd.Kind != Out, cmd.Hold < 0, cmd.Hold > c.most:
		return fmt.Sprintf("held for %v, with %v at most for copies", cmd.Hold, c.most)
	case cmd.Kind == Kernel:
		return c.kernelFlaw(cmd)
	case cmd.Storage < 0 || int(cmd.Storage) >= len(c.g.Storages):
		return "no such storage"
	}
	device := cmd.Kind == Out || cmd.Kind == In || cmd.Kind == Poison
	switch s := &c.g.Storages[cmd.Storage]; {
	case cmd.Bytes != s.Bytes:
		return fmt.Sprintf("about %d bytes of the %d of %s", cmd.Bytes, s.Bytes, s.Name)
	case device && c.misplaced(cmd.Device):
		return "not at an aligned place of the arena"
	case cmd.Kind != Poison && cmd.Host != c.slots[s.ID]:
		return "not at the host slot of " + s.Name
	case cmd.Kind == Load && (s.Role != graph.Input || cmd.Version != 0):
		return fmt.Sprintf("a load of version %d of %s %s", cmd.Version, s.Role, s.Name)
	case cmd.Kind == Read && s.Role != graph.Output:
		return fmt.Sprintf("a read of %s %s", s.Role, s.Name)
	}
	return ""
}

// misplaced reports whether a storage or scratch may not begin at an address.
func (c *checker) misplaced(a Address) bool { return a.Region != Arena || a.Offset%c.p.Align != 0 }

func (c *checker) kernelFlaw(cmd *Command) string {
	g := c.g
	if cmd.Op < 0 || int(cmd.Op) >= len(g.Ops) {
		return "no such op"
	}
	op := &g.Ops[cmd.Op]
	if len(cmd.Inputs) != len(op.Inputs) || len(cmd.Outputs) != len(op.Outputs) {
		return fmt.Sprintf("not the operands of %s", op.Name)
	}
	if none := cmd.ScratchBytes == 0; cmd.ScratchBytes < 0 || cmd.ScratchBytes > graph.MaxBytes ||
		none != (cmd.Scratch == Nowhere) || !none && c.misplaced(cmd.Scratch) {
		return fmt.Sprintf("scratch of %d bytes at %v", cmd.ScratchBytes, cmd.Scratch)
	}
	begins := func(t graph.TensorID, a Address) Address {
		return Address{a.Region, a.Offset - g.Tensors[t].Offset} // of its storage
	}
	for i, t := range op.Inputs {
		if c.misplaced(begins(t, cmd.Inputs[i])) {
			return fmt.Sprintf("input %d is not at an aligned place of the arena", i)
		}
	}
	made := len(op.Outputs) == 0
	for i, t := range op.Outputs {
		fresh := g.Fresh(op.ID, i)
		if fresh && cmd.Outputs[i] == Nowhere {
			continue
		}
		made = true
		if c.misplaced(begins(t, cmd.Outputs[i])) {
			return fmt.Sprintf("output %d is not at an aligned place of the arena", i)
		}
		for j, in := range op.Inputs {
			if !fresh && g.Tensors[in].Storage == g.Tensors[t].Storage && begins(in, cmd.Inputs[j]) != begins(t, cmd.Outputs[i]) {
				return fmt.Sprintf("output %d is updated in place, and not where input %d is", i, j)
			}
		}
	}
	if !made {
		return "it makes nothing"
	}
	return ""
}

// step checks that a kernel is what the plan says of a slot.
func (c *checker) step(where place, cmd *Command, slot int) {
	if cmd.Slot != slot {
		c.say(where, ErrPlan, "a kernel of slot %d where slot %d is next", cmd.Slot, slot)
		return
	}
	step := &c.p.Plan.Steps[slot]
	if cmd.Op != step.Op || cmd.Variant != step.Variant || cmd.ScratchBytes != step.Scratch {
		c.say(where, ErrPlan, "op %d by variant %q with %d bytes of scratch, step %d is %+v", cmd.Op, cmd.Variant, cmd.ScratchBytes, slot, *step)
		return
	}
	for i, a := range cmd.Outputs {
		if step.Want.Has(i) == (a == Nowhere) {
			c.say(where, ErrPlan, "output %d is at %v, step %d is %+v", i, a, slot, *step)
		}
	}
}

func (c *checker) subject(cmd *Command) string {
	if cmd.Kind == Kernel {
		return c.g.Ops[cmd.Op].Name
	}
	return fmt.Sprintf("%s %s", cmd.Kind, c.g.Storages[cmd.Storage].Name)
}

// disjoint reports whether u shares no byte with an operand of another storage in the same command.
func disjoint(others []use, u use) bool {
	for _, o := range others {
		same := o.storage == u.storage && o.at == u.at && o.storage != nothing
		if !same && (o.write || u.write) && o.at.Region == u.at.Region && o.at.Offset < u.at.Offset+u.size && u.at.Offset < o.at.Offset+o.size {
			return false
		}
	}
	return true
}

// order checks the waits of a command and records its clock.
func (c *checker) order(where place, cmd *Command) Point {
	known := c.floor
	if n := len(c.clocks[cmd.Lane]); n > 0 {
		known.join(c.clocks[cmd.Lane][n-1])
	}
	for _, w := range cmd.Waits {
		if w.Lane >= Lanes {
			c.say(where, ErrForm, "waits on lane %d", w.Lane)
			continue
		}
		if issued := len(c.clocks[w.Lane]) - c.origin[w.Lane]; w.Count > issued {
			c.say(where, ErrOrder, "waits for %s, %d issued so far", w, issued)
			continue
		}
		if count := c.origin[w.Lane] + w.Count; w.Count > -len(c.clocks[w.Lane]) && count > 0 {
			known.join(c.clocks[w.Lane][count-1])
		}
	}
	known[cmd.Lane] = len(c.clocks[cmd.Lane]) + 1
	c.clocks[cmd.Lane] = append(c.clocks[cmd.Lane], known)
	return Point{cmd.Lane, known[cmd.Lane]}
}

func (c *checker) counts() [Lanes]int {
	var n [Lanes]int
	for l := range n {
		n[l] = len(c.clocks[l])
	}
	return n
}

// drain lets every lane come to its end.
func (c *checker) drain() { c.floor = clock(c.counts()) }

func (c *checker) inside(where place, u use) bool {
	if !c.fits(u) {
		c.say(where, ErrBounds, "%d bytes at %d of region %d", u.size, u.at.Offset, u.at.Region)
		return false
	}
	return true
}

// fits reports whether a use lies in its region. Sizes are those of storages, or checked.
func (c *checker) fits(u use) bool {
	size := [Regions]graph.Bytes{Arena: c.p.Arena, HostMemory: c.p.Host}
	return u.at.Region < Regions && 0 <= u.at.Offset && u.at.Offset <= size[u.at.Region]-u.size
}

// use makes one access: it must come after every access that it conflicts with, and a read must find its content.
func (c *checker) use(where place, u use, at Point) {
	cells := c.span(u.at, u.size)
	if other, what := c.unordered(cells, u.write, at); what != "" {
		c.say(where, ErrRace, "%s of %s may come before the %s %s of the same bytes", access(u.write), c.name(u.storage), what, other)
	}
	if u.write {
		fill(cells, cell{storage: u.storage, generation: u.generation, base: u.at.Offset, write: at})
		return
	}
	if u.storage != nothing {
		c.holds(where, cells, u.at, u.storage, u.generation)
	}
	for i := range cells {
		cells[i].reads[at.Lane] = max(cells[i].reads[at.Lane], at.Count)
	}
}

// unordered returns an earlier access to cells that conflicts with one and may come after it, and what it is; "" if there
// is none.
func (c *checker) unordered(cells []cell, write bool, at Point) (other Point, what string) {
	known := &c.clocks[at.Lane][at.Count-1]
	for i := range cells {
		x := &cells[i]
		if known[x.write.Lane] < x.write.Count {
			return x.write, access(true)
		}
		if !write {
			continue
		}
		for l, n := range x.reads {
			if known[l] < n && (Lane(l) != at.Lane || n != at.Count) {
				return Point{Lane(l), n}, access(false)
			}
		}
	}
	return Point{}, ""
}

func access(write bool) string {
	if write {
		return "write"
	}
	return "read"
}

func (c *checker) name(s graph.StorageID) string {
	if s == nothing {
		return "scratch"
	}
	return c.g.Storages[s].Name
}

// span returns the cells of a range whose ends are bounds.
func (c *checker) span(a Address, size graph.Bytes) []cell {
	from, _ := slices.BinarySearch(c.bounds[a.Region], a.Offset)
	to, _ := slices.BinarySearch(c.bounds[a.Region], a.Offset+size)
	return c.cells[a.Region][from:to]
}

func fill(cells []cell, content cell) {
	for i := range cells {
		cells[i] = content
	}
}

// holds checks that the cells at a are those of a storage in the given generation.
func (c *checker) holds(where any, cells []cell, a Address, s graph.StorageID, generation int) {
	for i := range cells {
		x := &cells[i]
		if x.storage != s || x.generation != generation || x.base != a.Offset {
			found := "nothing"
			if x.storage != nothing {
				found = fmt.Sprintf("content %d of %s", x.generation, c.g.Storages[x.storage].Name)
			}
			c.say(where, ErrContent, "want content %d of %s, found %s", generation, c.g.Storages[s].Name, found)
			return
		}
	}
}
