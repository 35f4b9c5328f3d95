package compile

import (
	"cmp"
	"slices"

	"tensile/graph"
	"tensile/plan/program"
)

// groups cuts a section.
func (d *divider) groups(h *lifetimes) []program.Group {
	if h.commands == 0 {
		return nil
	}
	c := newCutter(h)
	var groups []program.Group
	from := 0
	for i := range h.commands {
		c.begin(i)
		if i > from && graph.Bytes(c.group-min(c.least, c.now))*d.page >= d.every {
			groups = append(groups, program.Group{From: from, To: i, Need: c.cut()})
			from = i
		}
		c.end(i)
	}
	return append(groups, program.Group{From: from, To: h.commands, Need: c.need()})
}

// cutter goes through the commands of a section and knows the pages of the present group. Its cells are ranges of pages
// that are needed together by every life, or not at all.
type cutter struct {
	bounds           []int // cell i is the pages from bound i to the next one
	users            []int // per cell: lives at the present command
	in               []bool
	fresh            []int  // cells that are in the group only since the present command
	starting, ending []life // still to come

	now   int // pages that the present command needs
	group int // pages that the group needs
	least int // least pages that one of its commands before the present one needs
}

func newCutter(h *lifetimes) *cutter {
	c := &cutter{starting: slices.Clone(h.lives), ending: slices.Clone(h.lives)}
	for _, l := range h.lives {
		c.bounds = append(c.bounds, l.pages.From, l.pages.To)
	}
	slices.Sort(c.bounds)
	c.bounds = slices.Compact(c.bounds)
	c.users, c.in = make([]int, len(c.bounds)), make([]bool, len(c.bounds))
	slices.SortStableFunc(c.starting, func(a, b life) int { return cmp.Compare(a.from, b.from) })
	slices.SortStableFunc(c.ending, func(a, b life) int { return cmp.Compare(a.to, b.to) })
	return c
}

func (c *cutter) size(cell int) int { return c.bounds[cell+1] - c.bounds[cell] }

// begin adds the lives that begin with a command.
func (c *cutter) begin(command int) {
	c.fresh = c.fresh[:0]
	for ; len(c.starting) > 0 && c.starting[0].from == command; c.starting = c.starting[1:] {
		r := c.starting[0].pages
		for i, _ := slices.BinarySearch(c.bounds, r.From); c.bounds[i] < r.To; i++ {
			if c.users[i]++; c.users[i] == 1 {
				c.now += c.size(i)
			}
			if !c.in[i] {
				c.in[i] = true
				c.fresh = append(c.fresh, i)
				c.group += c.size(i)
			}
		}
	}
	if command == 0 {
		c.least = c.now
	}
}

// end goes on to the next command: lives that end with this one are over.
func (c *cutter) end(command int) {
	c.least = min(c.least, c.now)
	for ; len(c.ending) > 0 && c.ending[0].to == command; c.ending = c.ending[1:] {
		r := c.ending[0].pages
		for i, _ := slices.BinarySearch(c.bounds, r.From); c.bounds[i] < r.To; i++ {
			if c.users[i]--; c.users[i] == 0 {
				c.now -= c.size(i)
			}
		}
	}
}

// cut begins a group with the present command and returns the pages of the one that ends before it.
func (c *cutter) cut() program.Pages {
	for _, i := range c.fresh {
		c.in[i] = false
	}
	need := c.need()
	for i := range c.in {
		c.in[i] = c.users[i] > 0
	}
	c.group, c.least = c.now, c.now
	return need
}

// need returns the pages of the group.
func (c *cutter) need() program.Pages {
	var need program.Pages
	for i, in := range c.in {
		switch last := len(need) - 1; {
		case !in:
		case last >= 0 && need[last].To == c.bounds[i]:
			need[last].To = c.bounds[i+1]
		default:
			need = append(need, program.PageRange{From: c.bounds[i], To: c.bounds[i+1]})
		}
	}
	return need
}
