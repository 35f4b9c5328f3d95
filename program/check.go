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
	ErrCommand = errors.New("malformed command")
	ErrPlan    = errors.New("not what the plan says")
)

// Check proves a program without trust in Compile. It carries out Prologue, Body, Body and Epilogue in list order, and
// Prologue and Epilogue alone, since a job may be told to stop before its first body. For every byte of all regions it
// keeps who used it last and what it holds.
//
//   - Every command is of a kind that its section has, on a stream of its kind's unit, and within its regions at
//     aligned places. Loads are of inputs, reads of outputs. An update in place writes where it reads. No copy is held
//     for longer than the plan's iteration.
//   - The kernels of the body are the steps of the plan, in its order: ops, variants, outputs wanted and scratch.
//   - Every wait names an earlier command, so the list can be carried out under any timing.
//   - Two uses of the same bytes, one of them a write, are ordered by streams and waits (vector clocks), so every
//     execution gives the results of the list order.
//   - In list order every command finds the content that it reads: the right version, of the right iteration, whole.
//   - Every output's last version is handed to the job in every body.
//   - After the epilogue the host slots of persistent storages hold their newest version: Home.
//
// The third body is like the second: the waits are the same and so is the state after a body. One body is like two:
// what the epilogue reads is written in every body, or never.
//
// The meaning of waits is that of Lanes, which devices use too. The graph must be valid. The program must not be
// changed afterwards.
func Check(p *Program) (Proven, error) {
	if err := checkTables(p); err != nil {
		return Proven{}, fmt.Errorf("program: %w", err)
	}
	c := newChecker(p)
	c.train(2)
	for _, s := range p.Graph.Storages {
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
	if len(c.problems) > 0 {
		return Proven{}, errors.Join(c.problems...)
	}
	return Proven{p}, nil
}

// checkTables checks what does not depend on commands.
func checkTables(p *Program) error {
	if p.Plan == nil || p.Graph == nil {
		return fmt.Errorf("%w: there is no plan or no graph", ErrPlan)
	}
	if p.Align <= 0 || p.Arena < 0 || p.Arena > graph.MaxTotal || p.Arena%p.Align != 0 ||
		p.Host < 0 || p.Host > graph.MaxTotal {
		return fmt.Errorf("%w: an arena of %d bytes aligned to %d, %d bytes of the host", ErrBounds, p.Arena, p.Align,
			p.Host)
	}
	if slices.ContainsFunc(p.Streams, func(u Unit) bool { return u >= Units }) {
		return fmt.Errorf("%w: streams of %v, a unit is one up to %v", ErrCommand, p.Streams, Units-1)
	}
	if sorted := slices.Sorted(slices.Values(p.Regions)); !slices.Equal(sorted, []Memory{Arena, HostMemory}) {
		return fmt.Errorf("%w: regions of %v, want %v and %v once each", ErrBounds, p.Regions, Arena, HostMemory)
	}
	return nil
}

// checker carries out sections. Its parts are in files of their own: what a command must be in itself
// (check_form.go), what comes after what (check_order.go), which bytes a command uses (check_use.go), and what they
// hold (check_bytes.go).
type checker struct {
	g     *graph.Graph
	p     *Program
	last  []int
	slots []Address     // of storages on the host; at an offset of -1 where the plan has none
	sizes []graph.Bytes // per region
	limit time.Duration // that a copy may be held

	order checkOrder
	bytes checkBytes

	reads, writes []use // of the present command, for kernelUses

	problems []error
}

func newChecker(p *Program) *checker {
	g := p.Graph
	c := &checker{g: g, p: p, last: g.LastVersions(), slots: make([]Address, len(g.Storages)), limit: p.Plan.Length()}
	hosts, _ := SlotsOf(g, p.Plan)
	host := Region(slices.Index(p.Regions, HostMemory))
	for s := range g.Storages {
		c.slots[s] = Address{host, hosts[s]}
	}
	for _, m := range p.Regions {
		c.sizes = append(c.sizes, [Memories]graph.Bytes{Arena: p.Arena, HostMemory: p.Host}[m])
	}
	c.bytes = c.newBytes()
	c.reset()
	return c
}

// reset brings the job Home: host slots of persistent storages hold their content, nothing else holds any, and nothing
// was issued.
func (c *checker) reset() {
	c.order = newCheckOrder(c.p.Streams)
	c.bytes.forget()
	for _, s := range c.g.Storages {
		if s.Role.Persistent() {
			cells := c.bytes.span(c.slots[s.ID], s.Bytes)
			cells.fill(cell{storage: s.ID, base: c.slots[s.ID].Offset})
		}
	}
}

// train carries out a stay away from Home with a number of bodies.
func (c *checker) train(bodies int) {
	p := c.p
	home := "epilogue"
	if bodies == 0 {
		home = "epilogue without a body"
	}
	c.section(&p.Prologue, "prologue", 0, true)
	for i := range bodies {
		c.section(&p.Body, "body", i, i == 0)
	}
	c.section(&p.Epilogue, home, bodies, true)
	if len(c.problems) > 0 {
		return
	}
	for _, s := range c.g.Storages {
		if !s.Role.Persistent() {
			continue
		}
		cells, newest := c.bytes.span(c.slots[s.ID], s.Bytes), bodies*c.last[s.ID]
		if x := cells.other(s.ID, newest, c.slots[s.ID].Offset); x != nil {
			c.sayContent(fmt.Sprintf("end after %d bodies", bodies), x, s.ID, newest)
		}
	}
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
	cmd     *Command
}

func (p place) String() string {
	return fmt.Sprintf("%s command %d (%s %s)", p.section, p.index, p.c.p.Streams[p.cmd.Stream], p.c.subject(p.cmd))
}

func (c *checker) subject(cmd *Command) string {
	if cmd.Kind == Kernel {
		return c.g.Ops[cmd.Op].Name
	}
	return fmt.Sprintf("%s %s", cmd.Kind, c.g.Storages[cmd.Storage].Name)
}

func (c *checker) section(s *Section, name string, iteration int, drain bool) {
	run := c.order.lanes.Start(s, iteration, drain)
	counts := make([]int, len(c.p.Streams))
	slot := 0
	for i := range s.Commands {
		cmd := &s.Commands[i]
		if flaw := c.flaw(cmd); flaw != "" {
			c.say(fmt.Sprintf("%s command %d", name, i), ErrCommand, "%s: %+v", flaw, *cmd)
			return
		}
		where := place{c, name, i, cmd}
		switch {
		case s == &c.p.Prologue && cmd.Kind != In, s == &c.p.Epilogue && cmd.Kind != Out:
			c.say(where, ErrCommand, "no such command belongs in a %s", name)
		case cmd.Kind == Kernel:
			c.step(where, cmd, slot)
			slot = cmd.Slot + 1
		}
		at := c.after(where, run, cmd)
		counts[cmd.Stream]++
		c.useAll(where, cmd, iteration, at)
	}
	if s == &c.p.Body && slot != len(c.p.Plan.Steps) {
		c.say(name, ErrPlan, "the kernels end before step %d of %d", slot, len(c.p.Plan.Steps))
	}
	if !slices.Equal(counts, s.Counts) {
		c.say(name, ErrCommand, "counts %v, has %v", s.Counts, counts)
	}
}

// step checks that a kernel is what the plan says of a slot.
func (c *checker) step(where place, cmd *Command, slot int) {
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
		if step.Want.Has(i) == (a == Nowhere) {
			c.say(where, ErrPlan, "output %d is at %v, step %d is %+v", i, a, slot, *step)
		}
	}
}
