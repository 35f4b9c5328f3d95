package proof_test

import (
	"slices"

	"tensile/plan/compile"
	"tensile/plan/plantest"
	"tensile/plan/program"
	"tensile/plan/proof"
)

func checkGroups(s subject) error { return proof.CheckGroups(s.c, s.d) }

// groupMutations are mistakes in groups: CheckGroups must see them. Divide makes groups of the fewest pages, so that
// no page of them may be left out; what may be added is in TestMoreThanNeeded.
var groupMutations = []mutation{
	{"page dropped that a command uses", checkGroups, []error{proof.ErrPages}, eachPage(func(s subject,
		at groupAt, page program.Pages) bool {
		return s.uses(at.section, at.group().From, at.group().To).Contains(page)
	})},
	{"page dropped that holds content across", checkGroups, []error{proof.ErrPages}, eachPage(func(s subject,
		at groupAt, page program.Pages) bool {
		inner := 0 < at.i && at.i < len(*at.groups)-1
		return inner && len(page.Without(s.uses(at.section, at.group().From, at.group().To))) > 0
	})},
	{"page dropped from all groups that do not use it", checkGroups, []error{proof.ErrPages}, eachPage(func(s subject,
		at groupAt, page program.Pages) bool {
		dropped := false
		if at.i != 1 && at.i != len(*at.groups)/2 {
			return false // some of its pages will do
		}
		for i := 1; i < len(*at.groups)-1; i++ {
			g := &(*at.groups)[i]
			if g.Need.Contains(page) && !s.uses(at.section, g.From, g.To).Contains(page) {
				dropped, g.Need = true, g.Need.Without(page)
			}
		}
		return dropped
	})},
	{"cut one command later", checkGroups, []error{proof.ErrPages}, eachGroup(func(s subject, at groupAt) bool {
		if at.i+1 == len(*at.groups) || (*at.groups)[at.i+1].To-(*at.groups)[at.i+1].From < 2 {
			return false
		}
		g, next := at.group(), &(*at.groups)[at.i+1]
		g.To, next.From = g.To+1, next.From+1
		return !g.Need.Contains(s.uses(at.section, g.To-1, g.To))
	})},
	{"cut one command earlier", checkGroups, []error{proof.ErrPages}, eachGroup(func(s subject, at groupAt) bool {
		if at.i+1 == len(*at.groups) || at.group().To-at.group().From < 2 {
			return false
		}
		g, next := at.group(), &(*at.groups)[at.i+1]
		g.To, next.From = g.To-1, next.From-1
		return !next.Need.Contains(s.uses(at.section, g.To, g.To+1))
	})},
	{"groups swapped", checkGroups, []error{proof.ErrGroups}, eachGroup(func(_ subject, at groupAt) bool {
		if at.i == 0 {
			return false
		}
		g, before := at.group(), &(*at.groups)[at.i-1]
		*g, *before = *before, *g
		return true
	})},
	{"pages of two groups swapped", checkGroups, []error{proof.ErrPages}, eachGroup(func(_ subject, at groupAt) bool {
		if at.i == 0 {
			return false
		}
		g, before := at.group(), &(*at.groups)[at.i-1]
		g.Need, before.Need = before.Need, g.Need
		return !slices.Equal(g.Need, before.Need)
	})},
	{"Base shrunk", checkGroups, []error{proof.ErrPages}, func(s subject) (bad []subject) {
		s = s.divided()
		for page := range onePage(s.d.Base) {
			b := s.divided()
			b.d.Base = b.d.Base.Without(page)
			bad = append(bad, b)
		}
		return bad
	}},
	{"Base that the first and the last group do not hold", checkGroups, []error{proof.ErrPages},
		eachGroup(func(s subject, at groupAt) bool {
			more := at.group().Need.Without(s.d.Base)
			s.d.Base = s.d.Base.Union(more)
			return len(more) > 0 && slices.ContainsFunc([]int{0, len(*at.groups) - 1}, func(i int) bool {
				return !(*at.groups)[i].Need.Contains(s.d.Base)
			})
		})},
	{"Base out of the first group", checkGroups, []error{proof.ErrPages}, eachGroup(func(s subject, at groupAt) bool {
		at.group().Need = at.group().Need.Without(s.d.Base)
		return at.i == 0 && len(s.d.Base) > 0
	})},
	{"Base out of the last group", checkGroups, []error{proof.ErrPages}, eachGroup(func(s subject, at groupAt) bool {
		at.group().Need = at.group().Need.Without(s.d.Base)
		return at.i == len(*at.groups)-1 && len(s.d.Base) > 0
	})},
	{"group missing", checkGroups, []error{proof.ErrGroups}, eachGroup(func(_ subject, at groupAt) bool {
		*at.groups = slices.Delete(*at.groups, at.i, at.i+1)
		return true
	})},
	{"group missing, and its commands in the one before", checkGroups, []error{proof.ErrPages},
		eachGroup(func(s subject, at groupAt) bool {
			if at.i == 0 {
				return false
			}
			g, before := *at.group(), &(*at.groups)[at.i-1]
			before.To = g.To
			*at.groups = slices.Delete(*at.groups, at.i, at.i+1)
			return !before.Need.Contains(s.uses(at.section, g.From, g.To))
		})},
	{"groups overlapping", checkGroups, []error{proof.ErrGroups}, eachGroup(func(_ subject, at groupAt) bool {
		at.group().From--
		return true
	})},
	{"group without commands", checkGroups, []error{proof.ErrGroups}, eachGroup(func(_ subject, at groupAt) bool {
		g := *at.group()
		g.From = g.To
		*at.groups = slices.Insert(*at.groups, at.i+1, g)
		return true
	})},
	{"group twice", checkGroups, []error{proof.ErrGroups}, eachGroup(func(_ subject, at groupAt) bool {
		*at.groups = slices.Insert(*at.groups, at.i, *at.group())
		return true
	})},
	{"commands in no group", checkGroups, []error{proof.ErrGroups}, eachGroup(func(_ subject, at groupAt) bool {
		at.group().To--
		return true
	})},
	{"group beyond the section", checkGroups, []error{proof.ErrGroups}, eachGroup(func(_ subject, at groupAt) bool {
		at.group().To++
		return at.i == len(*at.groups)-1
	})},
	{"no groups of a section", checkGroups, []error{proof.ErrGroups}, eachGroup(func(_ subject, at groupAt) bool {
		*at.groups = nil
		return at.i == 0
	})},
	{"groups of the other section", checkGroups, []error{proof.ErrGroups, proof.ErrPages},
		eachGroup(func(s subject, at groupAt) bool {
			same := len(s.d.Body) == len(s.d.Snapshot)
			s.d.Body, s.d.Snapshot = s.d.Snapshot, s.d.Body
			return at.i == 0 && !same
		})},
	{"page outside of the arena", checkGroups, []error{proof.ErrGroups}, eachGroup(func(s subject, at groupAt) bool {
		end := int((s.c.Arena + s.d.Page - 1) / s.d.Page)
		at.group().Need = at.group().Need.Union(program.Pages{{From: end, To: end + 1}})
		return true
	})},
	{"page before the arena", checkGroups, []error{proof.ErrGroups}, eachGroup(func(_ subject, at groupAt) bool {
		at.group().Need = at.group().Need.Union(program.Pages{{From: -1, To: 0}})
		return true
	})},
	{"Base outside of the arena", checkGroups, []error{proof.ErrGroups}, eachGroup(func(s subject, at groupAt) bool {
		end := int((s.c.Arena + s.d.Page - 1) / s.d.Page)
		s.d.Base = s.d.Base.Union(program.Pages{{From: end, To: end + 1}})
		return at.i == 0
	})},
	{"pages in no order", checkGroups, []error{proof.ErrGroups}, eachGroup(func(_ subject, at groupAt) bool {
		at.group().Need = slices.Clone(at.group().Need)
		slices.Reverse(at.group().Need)
		return len(at.group().Need) > 1
	})},
	{"pages without a size", checkGroups, []error{proof.ErrGroups}, eachGroup(func(s subject, at groupAt) bool {
		s.d.Page = 0
		return at.i == 0
	})},
	{"pages of half the size", checkGroups, []error{proof.ErrPages}, eachGroup(func(s subject, at groupAt) bool {
		s.d.Page /= 2
		return at.i == 0
	})},
}

// groupAt is a group of a section.
type groupAt struct {
	section *program.Section
	groups  *[]program.Group
	i       int
}

func (at groupAt) group() *program.Group { return &(*at.groups)[at.i] }

// divided returns a copy with groups that may be changed, but for the pages that they list: some ten a section.
func (s subject) divided() subject {
	if s.d == nil {
		s.d = compile.Divide(s.c, max(align, s.c.Arena/40), max(align, s.c.Arena/10))
	}
	d := *s.d
	d.Body, d.Snapshot = slices.Clone(d.Body), slices.Clone(d.Snapshot)
	s.d = &d
	return s
}

// eachGroup returns a mutation that changes one group at a time. change reports whether that makes a mistake.
func eachGroup(change func(s subject, at groupAt) bool) func(subject) []subject {
	return func(s subject) (bad []subject) {
		s = s.divided()
		for section := range 2 {
			for i := 0; ; i++ {
				b := s.divided()
				at := []groupAt{{&b.c.Body, &b.d.Body, i}, {&b.c.Snapshot, &b.d.Snapshot, i}}[section]
				if i == len(*at.groups) {
					break
				}
				if change(b, at) {
					bad = append(bad, b)
				}
			}
		}
		return bad
	}
}

// eachPage returns a mutation that takes one page from one group at a time, if that is one that applies.
func eachPage(applies func(s subject, at groupAt, page program.Pages) bool) func(subject) []subject {
	return func(s subject) (bad []subject) {
		s = s.divided()
		eachGroup(func(b subject, at groupAt) bool {
			for page := range onePage(at.group().Need) {
				c := s.divided()
				own := groupAt{at.section, &c.d.Body, at.i}
				if at.section == &b.c.Snapshot {
					own.groups = &c.d.Snapshot
				}
				if applies(c, own, page) {
					own.group().Need = own.group().Need.Without(page)
					bad = append(bad, c)
				}
			}
			return false
		})(s)
		return bad
	}
}

// onePage yields the pages of a set, each as a set.
func onePage(p program.Pages) func(yield func(program.Pages) bool) {
	return func(yield func(program.Pages) bool) {
		for _, r := range p {
			for n := r.From; n < r.To; n++ {
				if !yield(program.Pages{{From: n, To: n + 1}}) {
					return
				}
			}
		}
	}
}

// uses returns the pages that commands of a section use.
func (s subject) uses(section *program.Section, from, to int) program.Pages {
	var pages program.Pages
	for i := from; i < to; i++ {
		for _, u := range plantest.Spans(s.g, s.c, &section.Commands[i]) {
			if u.Region == program.Region(program.Arena) {
				pages = pages.Union(program.Pages{{From: int(u.From / s.d.Page), To: int((u.To-1)/s.d.Page) + 1}})
			}
		}
	}
	return pages
}
