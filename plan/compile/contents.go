package compile

import (
	"tensile/graph"
	"tensile/plan/program"
)

// Content is how long a place of the arena holds something in a section without a break: a storage in one stay, or
// scratch.
type Content struct {
	Storage graph.StorageID // NoStorage: scratch
	Offset  graph.Bytes
	Bytes   graph.Bytes
	Before  bool  // it is there when the section begins
	After   bool  // it is there when the section has ended
	Uses    []int // the commands that write or read it, ascending
}

// Contents lists what the arena holds while a section of a proven program runs; before the prologue and after the
// epilogue that is nothing. Contents that are there at the same time share no bytes, so that the sum of those is never
// above the arena.
func Contents(p *program.Program, s *program.Section) []Content {
	d := &divider{p: p, page: 1}
	for _, s := range []*program.Section{&p.Body, &p.Snapshot, &p.Epilogue} {
		d.follow(s)
	}
	crosses := make(map[spot]bool)
	for _, k := range d.crossing {
		crosses[k] = true
	}
	var all []Content
	latest := make(map[spot]int)
	for i := range s.Commands {
		eachUse(p.Graph, &s.Commands[i], func(u arenaUse) {
			k := spot{u.storage, u.offset}
			at, used := latest[k]
			if used && (!u.write || all[at].Uses[len(all[at].Uses)-1] == i) {
				if uses := &all[at].Uses; (*uses)[len(*uses)-1] != i {
					*uses = append(*uses, i)
				}
				return
			}
			latest[k] = len(all)
			all = append(all, Content{u.storage, u.offset, u.size, !used && !u.write, false, []int{i}})
		})
	}
	for k, i := range latest {
		all[i].After = s != &p.Epilogue && crosses[k]
	}
	for _, k := range d.crossing {
		if _, used := latest[k]; !used && s != &p.Prologue {
			latest[k] = len(all)
			all = append(all, Content{Storage: k.storage, Offset: k.offset, Bytes: p.Graph.Storages[k.storage].Bytes,
				Before: true, After: s != &p.Epilogue})
		}
	}
	return all
}
