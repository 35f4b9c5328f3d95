package sim

import (
	"time"

	"tensile/graph"
	"tensile/plan/program"
)

// unified is memory of which a part is on the device, and the rest on the host: the pages of all arenas in the order in
// which they came to the device. A kernel that uses pages on the host waits for them: those that came first make room.
// That is what NVIDIA's driver calls LRU: a chunk moves to the tail of its list when pages of it come to the device,
// not when they are used there (open-gpu-kernel-modules, kernel-open/nvidia-uvm/uvm_pmm_gpu.c, "All allocated user
// memory root chunks are tracked in an LRU list").
type unified struct {
	room int  // pages that the device has, less those that are on it
	last page // before the page that came last, behind that which came first
}

// page is one of an arena.
type page struct {
	newer, older *page // on the device; nil: on the host
}

// reserve forgets the pages of a job, and gives it those of an arena, all on the host.
func (d *Device) reserve(j *job, arena graph.Bytes) {
	if d.options.Fault == 0 {
		return
	}
	for i := range j.pages {
		d.unified.evict(&j.pages[i])
	}
	j.pages = make([]page, (arena+d.page-1)/d.page)
}

// evict takes a page from the device, if it is there.
func (u *unified) evict(p *page) {
	if p.newer != nil {
		p.newer.older, p.older.newer = p.older, p.newer
		p.newer, p.older = nil, nil
		u.room++
	}
}

// use brings a page to the device, and reports whether it was on the host.
func (u *unified) use(p *page) (fault bool) {
	if p.newer != nil {
		return false
	}
	if u.room == 0 {
		u.evict(u.last.newer) // the ring closes there
	}
	p.newer, p.older = &u.last, u.last.older
	u.last.older.newer, u.last.older = p, p
	u.room--
	return true
}

// faults brings all that a command uses to the device, and returns for how long it occupies the link with that. A copy
// brings its pages itself.
func (d *Device) faults(j *job, c *program.Command) (takes time.Duration) {
	if d.options.Fault == 0 {
		return 0
	}
	j.program.Ranges(c, func(from, to graph.Bytes) {
		for i := from / d.page; i*d.page < to; i++ {
			if d.unified.use(&j.pages[i]) && c.Kind.Executes() {
				takes += d.options.Fault + d.facts.In.Time(d.page)
			}
		}
	})
	return takes
}
