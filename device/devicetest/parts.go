package devicetest

import (
	"fmt"
	"math/rand/v2"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/program"
)

// cuts returns the ends of parts into which a section is cut at random, the last one its own.
func cuts(r *rand.Rand, s *program.Section) []int {
	var ends []int
	few := 1 + r.IntN(8)
	for i := 1; i < len(s.Commands); i++ {
		if r.IntN(few) == 0 {
			ends = append(ends, i)
		}
	}
	return append(ends, len(s.Commands))
}

// issueParts issues a section in parts. Between them late may wait, and so do lanes whose commands are not there yet.
func (s *seat) issueParts(p *program.Program, section *program.Section, iteration int, drain bool, ends []int,
	late func()) {
	s.c.t.Helper()
	s.issued = append(s.issued, issue{p, section, iteration, drain})
	from := 0
	for _, to := range ends {
		s.left += to - from
		s.Issue(section, from, to, iteration, drain)
		if from = to; to < len(section.Commands) {
			late()
		}
	}
}

// trainParts issues a program for the iterations [from, to), from Home to Home, with its sections in parts.
func (s *seat) trainParts(r *rand.Rand, p *program.Program, from, to int, late func()) {
	s.c.t.Helper()
	issue := func(section *program.Section, iteration int, drain bool) {
		s.issueParts(p, section, iteration, drain, cuts(r, section), late)
	}
	issue(&p.Prologue, from, true)
	for i := from; i < to; i++ {
		section := &p.Body
		if len(p.Snapshot.Commands) > 0 && i == from+1 {
			section = &p.Snapshot
		}
		issue(section, i, r.IntN(3) == 0)
	}
	issue(&p.Epilogue, to, true)
}

// parts issues sections in parts, cut anywhere, that come at once, when something has ended, or when everything has:
// the order of commands and all bits are as without.
func parts(c *crew) {
	for _, g := range []*graph.Graph{Tiny(), Zoo()} {
		var want finished
		if hasData(c) {
			want = c.run(g, 4, Build(c.t, c.d, g, KeepAll(g), compile.Options{}))
		}
		for seed := range uint64(6) {
			r := rand.New(rand.NewPCG(seed, 2))
			s := c.open(g)
			p := s.load(shuffled(c, g, seed, compile.Options{Poison: seed%2 == 1, Snapshot: seed%3 == 0}))
			taken, err := s.Snapshot()
			if err != nil {
				c.t.Fatal(err)
			}
			s.trainParts(r, p, 0, 4, func() {
				switch r.IntN(4) {
				case 0:
					c.rest()
				case 1:
					c.takeEvents()
				}
			})
			c.wait()
			if hasData(c) {
				compareBits(c.t, fmt.Sprintf("%s in parts, seed %d", g.Name, seed), finished{s.host(), s.feed.outputs},
					want)
			}
			taken.Release()
			s.leave()
		}
	}
	misplaced(c)
}

// misplaced issues parts that do not follow what was issued before.
func misplaced(c *crew) {
	g := Tiny()
	p := Build(c.t, c.d, g, Swapped(g), compile.Options{})
	body, n := &p.Program().Body, len(p.Program().Body.Commands)
	for what, wrong := range map[string]func(s *seat){
		"a first part that is not from 0": func(s *seat) { s.Issue(body, 1, n, 0, false) },
		"a part left out": func(s *seat) {
			s.Issue(body, 0, 2, 0, false)
			s.Issue(body, 3, n, 0, false)
		},
		"a part twice": func(s *seat) {
			s.Issue(body, 0, 2, 0, false)
			s.Issue(body, 1, n, 0, false)
		},
		"another section before this one is whole": func(s *seat) {
			s.Issue(body, 0, 2, 0, false)
			s.Issue(&p.Program().Epilogue, 0, len(p.Program().Epilogue.Commands), 0, true)
		},
		"a part that ends beyond its section": func(s *seat) { s.Issue(body, 0, n+1, 0, false) },
	} {
		s := c.open(g)
		s.load(p)
		c.panics(what, func() { wrong(s) })
		s.leave()
	}
}

// panics reports if nothing panics.
func (c *crew) panics(what string, do func()) {
	c.t.Helper()
	defer func() {
		if recover() == nil {
			c.t.Errorf("%s: no panic", what)
		}
	}()
	do()
}

// takeEvents takes the events that come next, if anything is to end.
func (c *crew) takeEvents() {
	c.t.Helper()
	for _, s := range c.seats {
		if s.left > 0 {
			events, err := c.d.Next(c.t.Context(), nil)
			if err != nil {
				c.t.Fatal(err)
			}
			for _, e := range events {
				c.take(e)
			}
			return
		}
	}
}

// hasData reports whether the device has any.
func hasData(c *crew) bool {
	c.t.Helper()
	s := c.open(Tiny())
	defer s.leave()
	return s.Host(0) != nil
}

// holds trains by many plans with arenas of which only what the groups in flight need is backed, group by group, on a
// device that can do that: content that stays is kept, what comes back is made anew, and all bits are as without.
// Misuse panics, and no memory is left behind.
func holds(c *crew) {
	pager, ok := c.d.(device.Pager)
	if !ok {
		c.t.Skip("this device backs arenas as a whole")
	}
	page := pager.Page()
	if page <= 0 || page%c.d.Align() != 0 {
		c.t.Fatalf("pages of %d bytes: not a multiple of %d", page, c.d.Align())
	}
	g := Paged(page)
	var want finished
	if hasData(c) {
		want = c.run(g, 3, Build(c.t, c.d, g, KeepAll(g), compile.Options{}))
	}
	dropped := 0
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 3))
		proven := shuffled(c, g, seed, compile.Options{Poison: seed%2 == 1})
		d, err := compile.ProveGroups(proven, page, page<<r.IntN(3))
		if err != nil {
			c.t.Fatal(err)
		}
		s := c.open(g)
		h := &holder{seat: s, groups: d.Groups(), job: s.Job.(device.PagedJob)}
		h.hold(nil)
		h.train(r, s.load(proven), 3)
		c.wait()
		if hasData(c) {
			compareBits(c.t, fmt.Sprintf("pages, seed %d", seed), finished{s.host(), s.feed.outputs}, want)
		}
		dropped += h.dropped
		s.leave()
	}
	if dropped < 100 {
		c.t.Errorf("%d pages were given back in all: too few to show much", dropped)
	}
	mishold(c, g, page)
}

// holder has a job hold what its groups in flight need.
type holder struct {
	*seat
	job     device.PagedJob
	groups  *program.Groups
	held    program.Pages
	dropped int
}

func (h *holder) hold(pages program.Pages) {
	h.c.t.Helper()
	h.dropped += h.held.Without(pages).Count()
	if h.held = pages; h.job.Hold(pages) != nil {
		h.c.t.Fatalf("there is no memory for pages %v", pages)
	}
}

// train issues group by group, and some only when all before has ended, so that what it alone needed is given back.
func (h *holder) train(r *rand.Rand, p *program.Program, iterations int) {
	h.c.t.Helper()
	h.hold(h.groups.Base)
	h.issue(p, &p.Prologue, 0, true)
	for i := range iterations {
		if r.IntN(2) == 0 {
			h.c.rest()
			h.hold(h.groups.Base)
		}
		var ends []int
		for _, g := range h.groups.Body {
			ends = append(ends, g.To)
		}
		h.hold(h.held.Union(h.groups.Body[0].Need))
		next := 0
		h.issueParts(p, &p.Body, i, false, ends, func() {
			before := h.groups.Body[next].Need
			next++
			need := h.groups.Body[next].Need
			if r.IntN(2) == 0 {
				h.c.rest()
				h.hold(before.Without(before.Without(need))) // what holds content between the two is among these
				h.hold(need)
			} else {
				h.hold(h.held.Union(need))
			}
		})
	}
	h.c.rest()
	h.hold(h.groups.Base)
	h.issue(p, &p.Epilogue, iterations, true)
}

// mishold holds what cannot be held.
func mishold(c *crew, g *graph.Graph, page graph.Bytes) {
	proven := Build(c.t, c.d, g, KeepAll(g), compile.Options{})
	p := proven.Program()
	all := int((p.Arena + page - 1) / page)
	for what, wrong := range map[string]func(s *seat, j device.PagedJob){
		"a first Hold of an arena that is there": func(s *seat, j device.PagedJob) { s.load(proven); _ = j.Hold(nil) },
		"a first Hold of pages": func(_ *seat, j device.PagedJob) {
			_ = j.Hold(program.Pages{{From: 0, To: 1}})
		},
		"pages beyond the arena": func(s *seat, j device.PagedJob) {
			_ = j.Hold(nil)
			s.load(proven)
			_ = j.Hold(program.Pages{{From: 0, To: all + 1}})
		},
		"pages taken that commands use": func(s *seat, j device.PagedJob) {
			_ = j.Hold(nil)
			s.load(proven)
			_ = j.Hold(program.Pages{{From: 0, To: all}})
			s.feed.mu.Lock() // nothing that uses an input ends meanwhile
			defer s.feed.mu.Unlock()
			s.Issue(&p.Prologue, 0, len(p.Prologue.Commands), 0, true)
			s.Issue(&p.Body, 0, len(p.Body.Commands), 0, false)
			_ = j.Hold(nil)
		},
	} {
		s := c.open(g)
		c.panics(what, func() { wrong(s, s.Job.(device.PagedJob)) })
		s.leave()
	}
}
