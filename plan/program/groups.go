package program

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// Group is the commands [From, To) of a section, which a host issues together, and the pages of the arena that it must
// hold from when it issues them until all commands of the section before To have ended: those that the commands use,
// and those with content that was written before and is read after them.
type Group struct {
	From, To int
	Need     Pages
}

// Groups divides the sections of a program that train into groups. A job that holds no page that its groups in flight
// do not need leaves the others to other jobs.
//
// Base are the pages with content over the boundary between two iterations, and those that prologue and epilogue use.
// Prologue and epilogue use no other page, so that they may run while the job holds Base alone. The first and the last
// group of a section need Base.
//
// A command that fills what was dropped with NaN (Options.Poison) uses it like any other.
type Groups struct {
	Page     graph.Bytes // the size of a page
	Base     Pages
	Body     []Group
	Snapshot []Group // none if the program has no such section
}

// Of returns the groups of a section of p; nil for prologue and epilogue, which need Base.
func (d *Groups) Of(p *Program, s *Section) []Group {
	switch s {
	case &p.Body:
		return d.Body
	case &p.Snapshot:
		return d.Snapshot
	}
	return nil
}

// Peak returns the most pages that a group needs, at least those of Base.
func (d *Groups) Peak() int {
	most := d.Base.Count()
	for _, groups := range [][]Group{d.Body, d.Snapshot} {
		for _, g := range groups {
			most = max(most, g.Need.Count())
		}
	}
	return most
}

// Text prints groups for people, a group per line. Commands are counted from 0, as in errors of the proof.
func (d *Groups) Text() string {
	say := func(pages Pages) string {
		n := pages.Count()
		return fmt.Sprintf("%d pages (%s)", n, graph.Bytes(n)*d.Page)
	}
	b := fmt.Appendf(nil, "pages of %s, the most at a time %d\nbase: %s %v\n", d.Page, d.Peak(), say(d.Base), d.Base)
	for i, groups := range [][]Group{d.Body, d.Snapshot} {
		if len(groups) == 0 {
			continue
		}
		b = fmt.Appendf(b, "%s\n", [...]string{"body", "snapshot"}[i])
		for k, g := range groups {
			b = fmt.Appendf(b, "  group %d: commands %d to %d, %s %v\n", k, g.From, g.To-1, say(g.Need), g.Need)
		}
	}
	return string(b)
}

// RestsInFlight returns, per group of a section, the most pages that a job needs from that group on: those of a group,
// and of the groups before it whose copies something in it or after it may still wait for. A job that was promised what
// its groups need one by one has to wait for its own copies, where others have taken the rest.
func RestsInFlight(p *Program, s *Section, groups []Group) []int {
	copied := make([][]int, len(p.Streams)) // per command of a stream: its group
	until := make([]int, len(groups))       // the last group in which something waits for a copy of this one
	for g := range groups {
		for i := groups[g].From; i < groups[g].To; i++ {
			c := &s.Commands[i]
			copied[c.Stream] = append(copied[c.Stream], g)
			for _, w := range c.Waits {
				if w.Count > 0 && p.Streams[w.Stream] != Compute {
					from := copied[w.Stream][w.Count-1]
					until[from] = max(until[from], g)
				}
			}
		}
	}
	rests := make([]int, len(groups))
	var flying []int // groups of which a copy may be in flight
	for g := range groups {
		need := groups[g].Need
		flying = slices.DeleteFunc(flying, func(k int) bool { return until[k] < g })
		for _, k := range flying {
			need = need.Union(groups[k].Need)
		}
		rests[g] = need.Count()
		flying = append(flying, g) // the next one is issued before it has ended
		until[g] = max(until[g], g+1)
	}
	for g := len(groups) - 2; g >= 0; g-- {
		rests[g] = max(rests[g], rests[g+1])
	}
	return rests
}
