package proof

import (
	"errors"
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/plan/program"
)

// The kinds of problems that CheckGroups finds.
var (
	ErrGroups = errors.New("malformed groups")
	ErrPages  = errors.New("a page that is not held")
)

// CheckGroups proves groups of a program that Check accepts, without trust in what made them. It carries out Prologue,
// Body, Body and Epilogue in list order, with a snapshot section Prologue, Body, Body, Snapshot, Snapshot, Body and
// Epilogue as well as Prologue, Snapshot and Epilogue, while a job holds the pages of one group after the other. In
// prologue and epilogue and between two iterations it holds Base. For every byte of the arena CheckGroups keeps since
// when the job has held its page, and when it was used last.
//
//   - Pages have a size, and sets of them are well formed and within the arena.
//   - The groups of a section are its commands in list order, none is empty, and the first and the last need Base.
//   - Every byte that a command uses lies on a page that is held.
//   - From a use of a byte to the next one, if that is a read, its page is held without a break: what a page held that
//     was given back is lost.
//
// A longer run has nothing new. Between a use and the read that follows it lies the end of a section, its begin, or
// a whole section that does not use the byte, and in these walks each section ends before each that may follow it.
func CheckGroups(p *program.Program, d *program.Groups) error {
	c := &groupChecker{checker: &checker{p: p, g: p.Graph, last: p.Graph.LastVersions()}, d: d}
	if c.form(); len(c.problems) == 0 {
		c.divide()
		if body, snapshot := &p.Body, &p.Snapshot; len(snapshot.Commands) == 0 {
			c.train(body, body)
		} else {
			c.train(body, body, snapshot, snapshot, body)
			c.train(snapshot)
		}
	}
	return errors.Join(c.problems...)
}

// groupChecker carries out sections by groups.
type groupChecker struct {
	*checker
	d *program.Groups

	bounds []graph.Bytes // of the arena, ascending; cell i lies between bounds i and i+1
	cells  []holding
	turns  []turn // so far
}

// holding is what is known of bytes that every command uses as a whole or not at all, and every group likewise needs.
type holding struct {
	since int // the turn since which their page has been held without a break, counted from 1; 0: it is not held
	used  int // the turn of their last use, 0: none
}

// turn is a time in which a job holds the same pages.
type turn struct {
	section string
	group   int // of the section; -1: none, the job holds Base
}

func (t turn) String() string {
	if t.group < 0 {
		return fmt.Sprintf("%s (Base)", t.section)
	}
	return fmt.Sprintf("%s group %d", t.section, t.group)
}

// form checks what does not depend on the accesses of commands.
func (c *groupChecker) form() {
	d, arena := c.d, c.p.Arena
	if d.Page <= 0 {
		c.say("groups", ErrGroups, "pages of %d bytes", d.Page)
		return
	}
	limit := int(arena / d.Page)
	if arena%d.Page > 0 {
		limit++
	}
	c.pages("Base", d.Base, limit)
	for _, s := range []*program.Section{&c.p.Body, &c.p.Snapshot} {
		name, groups, next := c.nameOf(s), d.Of(c.p, s), 0
		for i, g := range groups {
			where := turn{name, i}
			if g.From != next || g.To <= g.From || g.To > len(s.Commands) {
				c.say(where, ErrGroups, "commands [%d, %d), want some from %d on, of %d", g.From, g.To, next,
					len(s.Commands))
			}
			c.pages(where, g.Need, limit)
			if outer := i == 0 || i == len(groups)-1; outer && !contains(g.Need, d.Base) {
				c.say(where, ErrPages, "the first and the last group need Base, this one lacks its pages %v",
					d.Base.Without(g.Need))
			}
			next = g.To
		}
		if next != len(s.Commands) {
			c.say(name, ErrGroups, "%d groups end with %d commands, the section has %d", len(groups), next,
				len(s.Commands))
		}
	}
}

// pages checks that a set of pages is well formed and within the arena.
func (c *groupChecker) pages(where any, pages program.Pages, limit int) {
	if !wellFormed(pages, limit) {
		c.say(where, ErrGroups, "%v is no ascending set of pages among the arena's %d", pages, limit)
	}
}

// wellFormed reports whether p is a set of pages as the type demands, all from 0 to below limit.
func wellFormed(p program.Pages, limit int) bool {
	end := -1
	for _, r := range p {
		if r.From <= end || r.To <= r.From {
			return false
		}
		end = r.To
	}
	return end <= limit
}

// contains reports whether all pages of q are in p. Both are well formed, or there are problems already.
func contains(p, q program.Pages) bool {
	for _, r := range q {
		if !slices.ContainsFunc(p, func(s program.PageRange) bool { return s.From <= r.From && r.To <= s.To }) {
			return false
		}
	}
	return true
}

// divide divides the arena by everything that a command uses or a group needs.
func (c *groupChecker) divide() {
	for _, section := range c.p.Sections() {
		for i := range section.Commands {
			for _, u := range c.uses(&section.Commands[i], 0) {
				if c.p.Regions[u.at.Region] == program.Arena {
					c.bounds = append(c.bounds, u.at.Offset, u.at.Offset+u.size)
				}
			}
		}
	}
	mark := func(pages program.Pages) {
		for _, r := range pages {
			c.bounds = append(c.bounds, c.start(r.From), c.start(r.To))
		}
	}
	mark(c.d.Base)
	for _, g := range slices.Concat(c.d.Body, c.d.Snapshot) {
		mark(g.Need)
	}
	slices.Sort(c.bounds)
	c.bounds = slices.Compact(c.bounds)
	c.cells = make([]holding, len(c.bounds))
}

// start returns the first byte of a page.
func (c *groupChecker) start(page int) graph.Bytes { return graph.Bytes(page) * c.d.Page }

// cellsOf returns the cells of a range whose ends are bounds, from the first one up to the second.
func (c *groupChecker) cellsOf(from, to graph.Bytes) (int, int) {
	first, _ := slices.BinarySearch(c.bounds, from)
	end, _ := slices.BinarySearch(c.bounds, to)
	return first, end
}

// train carries out a stay away from Home with some iterations, unless there are problems already.
func (c *groupChecker) train(iterations ...*program.Section) {
	if len(c.problems) > 0 {
		return
	}
	clear(c.cells)
	c.turns = c.turns[:0]
	p := c.p
	c.turn("prologue", -1, c.d.Base)
	c.commands(&p.Prologue, "prologue", 0, len(p.Prologue.Commands))
	for _, s := range iterations {
		name := c.nameOf(s)
		for i, g := range c.d.Of(p, s) {
			c.turn(name, i, g.Need)
			c.commands(s, name, g.From, g.To)
		}
		c.turn("after a "+name, -1, c.d.Base)
	}
	c.turn("epilogue", -1, c.d.Base)
	c.commands(&p.Epilogue, "epilogue", 0, len(p.Epilogue.Commands))
}

// turn has the job hold other pages. It asks none of the operations on Pages, by which groups are made and pages given
// back: a mistake of theirs is no mistake of the proof.
func (c *groupChecker) turn(section string, group int, pages program.Pages) {
	c.turns = append(c.turns, turn{section, group})
	i := 0
	for _, r := range pages {
		from, to := c.cellsOf(c.start(r.From), c.start(r.To))
		for ; i < from; i++ {
			c.cells[i].since = 0
		}
		for ; i < to; i++ {
			if c.cells[i].since == 0 {
				c.cells[i].since = len(c.turns)
			}
		}
	}
	for ; i < len(c.cells); i++ {
		c.cells[i].since = 0
	}
}

// commands makes the accesses of commands in the present turn.
func (c *groupChecker) commands(s *program.Section, name string, from, to int) {
	for i := from; i < to; i++ {
		cmd := &s.Commands[i]
		uses := c.uses(cmd, 0)
		for k := range uses {
			if c.p.Regions[uses[k].at.Region] == program.Arena {
				c.use(place{c.checker, name, i, cmd}, &uses[k])
			}
		}
	}
}

// use makes one access. Of all that is wrong with it it tells the first.
func (c *groupChecker) use(where place, u *use) {
	now := len(c.turns)
	from, to := c.cellsOf(u.at.Offset, u.at.Offset+u.size)
	told := false
	for i := from; i < to; i++ {
		x := &c.cells[i]
		page := c.bounds[i] / c.d.Page
		switch {
		case told:
		case x.since == 0:
			told = true
			c.say(c.turns[now-1], ErrPages, "page %d, where %s has %s", page, where, c.name(u.storage))
		case !u.write && x.used < x.since:
			told = true
			c.say(c.turns[x.since-2], ErrPages, "page %d, with content of %s from %s that %s reads in %s", page,
				c.name(u.storage), c.turns[x.used-1], where, c.turns[now-1])
		}
		x.used = now
	}
}
