package program

import (
	"errors"
	"fmt"
	"slices"

	"tensile/graph"
)

// The kinds of problems that Check finds; errors.Is tells them apart.
var (
	ErrRace    = errors.New("unordered uses of the same bytes")
	ErrContent = errors.New("wrong content")
	ErrBounds  = errors.New("outside of the region")
	ErrOrder   = errors.New("wait on a later command")
	ErrForm    = errors.New("malformed command")
)

// Check proves a program without trust in Compile: it carries out Prologue, Body, Body and Epilogue in list order and
// keeps, for every byte of both regions, who used it last and what it holds.
//
//   - Every wait names an earlier command, so the list can be carried out under any timing.
//   - Two uses of the same bytes, one of them a write, are ordered by lanes and waits (vector clocks), so every
//     execution gives the results of the list order.
//   - In list order every command finds the content that it reads: the right version, of the right iteration, whole.
//   - Every output's last version is handed to the job in every body.
//   - After the epilogue the host slots of persistent storages hold their newest version: Home.
//
// The third body is like the second: the waits are the same and so is the state after a body.
func Check(g *graph.Graph, p *Program) error {
	c := newChecker(g, p)
	c.section(&p.Prologue, "prologue", 0)
	c.drain()
	c.section(&p.Body, "body", 0)
	c.section(&p.Body, "body", 1)
	c.drain()
	c.section(&p.Epilogue, "epilogue", 2)
	for _, s := range g.Storages {
		if s.Role.Persistent() && len(c.problems) == 0 {
			c.holds("end", c.span(c.slots[s.ID], s.Bytes), c.slots[s.ID], s.ID, 2*c.last[s.ID])
		}
		if s.Role == graph.Output && !slices.ContainsFunc(p.Body.Commands, func(cmd Command) bool {
			return cmd.Kind == Read && cmd.Storage == s.ID && cmd.Version == c.last[s.ID]
		}) {
			c.say("body", ErrContent, "version %d of output %s is never read", c.last[s.ID], s.Name)
		}
	}
	return errors.Join(c.problems...)
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

	bounds [Regions][]graph.Bytes // ascending; cell i lies between bounds i and i+1
	cells  [Regions][]cell
	clocks [Lanes][]clock
	floor  clock // counts at the last drain
	origin clock // counts where the present section began

	reads, writes []use // of the present command, for kernelUses

	problems []error
}

func newChecker(g *graph.Graph, p *Program) *checker {
	c := &checker{g: g, p: p, last: g.LastVersions(), slots: make([]Address, len(g.Storages))}
	hosts, _ := HostSlots(g)
	mark := func(a Address, size graph.Bytes) {
		if a.Region < Regions && a != Nowhere {
			c.bounds[a.Region] = append(c.bounds[a.Region], a.Offset, a.Offset+size)
		}
	}
	for s := range g.Storages {
		c.slots[s] = Address{HostMemory, hosts[s]}
		mark(c.slots[s], g.Storages[s].Bytes)
	}
	for _, section := range []*Section{&p.Prologue, &p.Body, &p.Epilogue} {
		for i := range section.Commands {
			if cmd := &section.Commands[i]; c.formed(cmd) {
				for _, u := range c.uses(cmd, 0) {
					mark(u.at, u.size)
				}
			}
		}
	}
	for r := range c.bounds {
		slices.Sort(c.bounds[r])
		c.bounds[r] = slices.Compact(c.bounds[r])
		c.cells[r] = slices.Repeat([]cell{{storage: nothing}}, len(c.bounds[r]))
	}
	for _, s := range g.Storages {
		if s.Role.Persistent() {
			fill(c.span(c.slots[s.ID], s.Bytes), cell{storage: s.ID, base: hosts[s.ID]})
		}
	}
	return c
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
		if !g.Fresh(op.ID, i) {
			add(t, cmd.Outputs[i], g.Tensors[t].Version-1, false)
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
	for i := range s.Commands {
		cmd := &s.Commands[i]
		if !c.formed(cmd) {
			c.say(fmt.Sprintf("%s command %d", name, i), ErrForm, "%+v", *cmd)
			return
		}
		where := place{c, name, i, cmd}
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
	if counts != s.Counts {
		c.say(name, ErrForm, "counts %v, has %v", s.Counts, counts)
	}
}

// formed reports whether the ids of a command lead somewhere, a kernel has the operands of its op and finds them in the
// arena, and a copy moves a whole storage between the arena and its host slot.
func (c *checker) formed(cmd *Command) bool {
	g := c.g
	away := func(a Address) bool { return a.Region != Arena }
	switch {
	case cmd.Lane >= Lanes || cmd.Kind > Poison || away(cmd.Device) || away(cmd.Scratch):
		return false
	case cmd.Kind == Kernel:
		return 0 <= cmd.Op && int(cmd.Op) < len(g.Ops) && !slices.ContainsFunc(cmd.Inputs, away) && !slices.ContainsFunc(cmd.Outputs, away) &&
			len(cmd.Inputs) == len(g.Ops[cmd.Op].Inputs) && len(cmd.Outputs) == len(g.Ops[cmd.Op].Outputs)
	case cmd.Storage < 0 || int(cmd.Storage) >= len(g.Storages):
		return false
	}
	return cmd.Bytes == g.Storages[cmd.Storage].Bytes && (cmd.Kind == Poison || cmd.Host == c.slots[cmd.Storage])
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
		count := c.origin[w.Lane] + w.Count
		if count > len(c.clocks[w.Lane]) {
			c.say(where, ErrOrder, "waits for %s, %d issued so far", w, len(c.clocks[w.Lane])-c.origin[w.Lane])
			continue
		}
		if count > 0 {
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
	size := [Regions]graph.Bytes{Arena: c.p.Arena, HostMemory: c.p.Host}
	if u.at.Region >= Regions || u.at.Offset < 0 || u.at.Offset+u.size > size[u.at.Region] {
		c.say(where, ErrBounds, "bytes %d to %d of region %d", u.at.Offset, u.at.Offset+u.size, u.at.Region)
		return false
	}
	return true
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
