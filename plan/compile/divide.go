package compile

import (
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/plan/program"
)

// Divide divides a proven program into groups for pages of a size. A group ends before a command with which the pages
// that the group needs would exceed by every bytes or more those that one of its commands alone needs: memory has grown
// or shrunk by so much within it. A group of more than one command thus holds less than every bytes that one of them
// could do without, and with every above all pages of the arena a section is one group. At 0 every is a 32nd of the
// arena, or a page if that is more: most networks have 30 to 150 groups then, whatever their size.
//
// proof.CheckGroups proves the result.
func Divide(p *program.Program, page, every graph.Bytes) *program.Groups {
	if page <= 0 || every < 0 {
		panic(fmt.Sprintf("program: groups for pages of %d bytes, a cut every %d bytes", page, every))
	}
	if every == 0 {
		every = max(page, p.Arena/32)
	}
	d := &divider{p: p, page: page, every: every}
	d.lives()
	return &program.Groups{Page: page, Base: program.PagesOf(slices.Clone(d.base)), Body: d.groups(&d.body),
		Snapshot: d.groups(&d.snapshot)}
}

// divider finds how long each content stays at a place of the arena, by storages and their places: in a proven program
// nobody else writes there between a write and a read that belongs to it.
type divider struct {
	p           *program.Program
	page, every graph.Bytes

	base           []program.PageRange
	crossing       []spot // with content that is read after an iteration boundary
	body, snapshot lifetimes
}

// spot is a place where a storage begins.
type spot struct {
	storage graph.StorageID // NoStorage: scratch, or bytes that are filled with NaN
	offset  graph.Bytes
}

// life is how long pages are needed without a break for one content, or for scratch: from a command to another one,
// both included.
type life struct {
	from, to int
	pages    program.PageRange
}

// lifetimes is the lives of a section.
type lifetimes struct {
	commands int
	lives    []life
	latest   map[spot]int // of each spot the life that began last
}

// lives follows content through all sections.
func (d *divider) lives() {
	p := d.p
	d.body, d.snapshot = d.follow(&p.Body), d.follow(&p.Snapshot)
	d.follow(&p.Epilogue)
	for _, s := range []*program.Section{&p.Prologue, &p.Epilogue} {
		for i := range s.Commands {
			eachUse(p.Graph, &s.Commands[i], func(u arenaUse) { d.base = append(d.base, d.pagesOf(u.offset, u.size)) })
		}
	}
	for _, k := range d.crossing {
		pages := d.pagesOf(k.offset, p.Graph.Storages[k.storage].Bytes)
		d.base = append(d.base, pages)
		for _, h := range []*lifetimes{&d.body, &d.snapshot} {
			last := h.commands - 1
			if i, used := h.latest[k]; used {
				h.lives[i].to = last
			} else if last >= 0 {
				h.lives = append(h.lives, life{0, last, pages})
			}
		}
	}
	for _, h := range []*lifetimes{&d.body, &d.snapshot} {
		for _, r := range program.PagesOf(slices.Clone(d.base)) {
			if last := h.commands - 1; last >= 0 {
				h.lives = append(h.lives, life{0, 0, r}, life{last, last, r})
			}
		}
	}
}

// follow lists the lives of a section, up to its last uses. What it reads and has not written comes from before.
func (d *divider) follow(s *program.Section) lifetimes {
	h := lifetimes{commands: len(s.Commands), latest: make(map[spot]int)}
	for i := range s.Commands {
		eachUse(d.p.Graph, &s.Commands[i], func(u arenaUse) {
			k := spot{u.storage, u.offset}
			at, used := h.latest[k]
			switch {
			case used && (!u.write || h.lives[at].to == i): // goes on, be it by an update in place
				h.lives[at].to = i
				return
			case used || u.write:
				h.lives = append(h.lives, life{i, i, d.pagesOf(u.offset, u.size)})
			default:
				h.lives = append(h.lives, life{0, i, d.pagesOf(u.offset, u.size)})
				d.crossing = append(d.crossing, k)
			}
			h.latest[k] = len(h.lives) - 1
		})
	}
	return h
}

// pagesOf returns the pages that bytes lie in.
func (d *divider) pagesOf(from, size graph.Bytes) program.PageRange {
	return program.PageRange{From: int(from / d.page), To: int((from+size-1)/d.page) + 1}
}
