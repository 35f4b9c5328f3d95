package draft

import (
	"cmp"
	"slices"

	"tensile/graph"
	"tensile/scheduler"
)

// boundary stands for the time between two iterations where a slot is asked for.
const boundary = -1

// wrapped stands for the rank of a gap that is picked for the boundary.
const wrapped = -1

// Beside says what one of the other jobs may need above its base while this job is between two iterations: 0, the
// default, if jobs share no memory. A draft then needs its peak, or its base and that.
func (d *Draft) Beside(rest graph.Bytes) { d.beside = rest }

// Base returns how much stays on the device from one iteration to the next.
func (d *Draft) Base() graph.Bytes { return d.base }

// LeastBase returns how much of the base is left when all storages have left between two iterations that may, and that
// swaps for a target look at.
func (d *Draft) LeastBase(target graph.Bytes) graph.Bytes {
	least, small := d.base, min(d.small, target/smallest)
	for _, x := range d.gaps {
		if d.wrapping(x) && d.bytes[x.storage] >= small && d.MaySwap(x) {
			least -= d.bytes[x.storage]
		}
	}
	return least
}

// High returns how much the draft needs, and where: at its peak, or at the Boundary with what others need beside it.
func (d *Draft) High() (at int, bytes graph.Bytes) {
	at, bytes = d.Peak()
	if between := d.base + d.beside; between > bytes {
		return boundary, between
	}
	return at, bytes
}

// LeastTogether is the least memory in which jobs that share it can run: each keeps its base, and one at a time has the
// rest of its peak.
func LeastTogether(jobs []*Draft) graph.Bytes {
	var bases, rest graph.Bytes
	for _, d := range jobs {
		_, peak := d.Peak()
		bases, rest = bases+d.base*d.copies, max(rest, peak-d.base)
	}
	return bases + rest
}

// Needed is what drafts of all jobs, or of all groups, need by what is decided: the sum of their peaks, or, where they
// share memory, LeastTogether.
func (s *Session) Needed(jobs []*Draft) graph.Bytes {
	if s.Request.Together {
		return LeastTogether(jobs)
	}
	return SumOfPeaks(jobs)
}

// findBase adds up what stays from one iteration to the next.
func (d *Draft) findBase() {
	d.base = 0
	for i := range d.g.Storages {
		if d.g.Storages[i].Role.Persistent() && d.lastUse[i] >= 0 {
			d.base += d.bytes[i]
		}
	}
	for _, x := range d.gaps {
		if d.between(x) {
			d.base -= d.bytes[x.storage]
		}
	}
}

// wrapping reports whether a gap lies over the boundary.
func (d *Draft) wrapping(x *Gap) bool {
	return x.from >= 0 && x.to >= len(d.steps) && !x.dies
}

// between reports whether a gap has its storage away between two iterations.
func (d *Draft) between(x *Gap) bool {
	n := len(d.steps)
	return x.kind == swap && d.wrapping(x) && x.drop < n && x.in >= n-1
}

// coveringSlot is Covers, also of the boundary: the slot is then one beside it, and the gap one that does not free it
// yet.
func (d *Draft) coveringSlot(x *Gap, at int) (slot int, ok bool) {
	if at != boundary {
		return d.Covers(x, at)
	}
	return min(len(d.steps), x.to-1), d.wrapping(x) && !d.between(x)
}

// wraps returns those of some gaps that lie over the boundary, in their order.
func (d *Draft) wraps(gaps []*Gap) []*Gap {
	var all []*Gap
	for _, x := range gaps {
		if d.wrapping(x) {
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b *Gap) int { return cmp.Compare(d.bytes[b.storage], d.bytes[a.storage]) })
	return all
}

// largestWrap returns the largest gap that can be tried for the boundary, nil if there is none.
func (p *Picker) largestWrap() *Gap {
	for len(p.wraps) > 0 {
		p.meter.count(1)
		if x := p.wraps[0]; x.kind == keep && p.MaySwap(x) {
			return x
		}
		p.wraps = p.wraps[1:]
	}
	return nil
}

// tryBetween swaps a gap over the boundary if that costs no time and the storage is then away there.
func (d *Draft) tryBetween(x *Gap) bool {
	n := len(d.steps)
	for _, at := range [2]int{n, n - 1} { // one slot beside the boundary is enough
		if x.from < at && at < x.to {
			if p, ok := d.fit(x, at, false); ok {
				d.carry(x, p)
				return true
			}
		}
	}
	return false
}

// mayRelax reports whether a swap that begins or ends at other slots leaves the base as it is, where that counts.
func (d *Draft) mayRelax(x *Gap, drop, in int) bool {
	if d.beside == 0 || !d.between(x) {
		return true
	}
	y := *x
	y.drop, y.in = drop, in
	return d.between(&y)
}

// share says how low arenas are packed at least: see Place.
func (p *placing) share() {
	jobs := p.result.Jobs
	p.enough = make([]graph.Bytes, len(jobs))
	spare := max(0, p.Request.Budget-p.result.SlotPeak) / graph.Bytes(max(1, len(jobs)))
	left := p.Request.Budget // above the bases
	bases := make([]graph.Bytes, len(jobs))
	if p.Request.Together {
		for i := range jobs {
			for _, s := range jobs[i].Plan.Entry {
				bases[i] += p.wirings[i].bytes[s]
			}
			bases[i] += p.page() // where it ends within one
			left -= bases[i]
		}
	}
	for i := range jobs {
		p.enough[i] = jobs[i].Footprint.Peak + spare
		if p.Request.Together {
			p.enough[i] = max(jobs[i].Footprint.Peak, bases[i]+left)
		}
	}
}

// page is the unit in which jobs share memory.
func (s *Session) page() graph.Bytes { return max(1, s.Request.Align, s.Request.Page) }

// need adds up what the packed plans need of the device.
func (p *placing) need() {
	r := &p.result
	if !p.Request.Together {
		r.Least = r.Arena
		return
	}
	var bases, rest graph.Bytes
	for i := range r.Jobs {
		j := &r.Jobs[i]
		j.Base = baseOf(j, p.Request.Jobs[i].Graph, p.page())
		bases, rest = bases+j.Base, max(rest, p.headroom(i))
	}
	r.Together, r.Least = true, bases+rest
}

// headroom is what job i needs above its base.
func (p *placing) headroom(i int) graph.Bytes {
	j := &p.result.Jobs[i]
	return scheduler.RoundUp(j.Layout.Arena, p.page()) - j.Base
}

// tallest reports whether no job needs more above its base than job i.
func (p *placing) tallest(i int) bool {
	for other := range p.result.Jobs {
		if p.headroom(other) > p.headroom(i) {
			return false
		}
	}
	return true
}

// baseOf is what the pages take on which something of a placed plan lies between two iterations.
func baseOf(j *scheduler.Scheduled, g *graph.Graph, page graph.Bytes) graph.Bytes {
	var pages []stretchOfPages
	for _, s := range j.Plan.Entry {
		at := j.Layout.Offsets[j.Layout.Stays.Entry[s]]
		if bytes := g.Storages[s].Bytes; bytes > 0 {
			pages = append(pages, stretchOfPages{at / page, (at+bytes-1)/page + 1})
		}
	}
	slices.SortFunc(pages, func(a, b stretchOfPages) int { return cmp.Compare(a.from, b.from) })
	var count, end graph.Bytes
	for _, x := range pages {
		if from := max(end, x.from); from < x.to {
			count, end = count+x.to-from, x.to
		}
	}
	return count * page
}

// stretchOfPages is pages [from, to).
type stretchOfPages struct{ from, to graph.Bytes }
