package pool

import (
	"cmp"
	"math/bits"
	"slices"
)

// slacks are how far above its goal a descent aims, in 1/1024 of it.
var slacks = []int64{0, 1, 4, 16, 64, 256}

// descend looks for layouts below one limit after another, by descents that may each visit a little more than the last.
// Each begins at the bottom again, with another order and with what the ones before learnt about which columns are hard.
func descend(s *search) {
	var items []int
	for i := range s.problem.items {
		if !s.problem.items[i].always || len(s.problem.fixed) > 0 {
			items = append(items, i)
		}
	}
	if len(items) == 0 || len(items) > mostItems {
		return
	}
	proves := s.whole == nil && (s.problem.even || len(s.problem.bottom) == 0)
	d := newDescent(s, items)
	nodes := 2*len(items) + 500
	aim := 0
	if s.whole != nil {
		aim = 2
	}
	for round := 0; !s.done(); round++ {
		d.orders(s.problem, round)
		d.limit = min(s.height-1, s.goal()+s.goal()/1024*slacks[aim])
		d.deepest, d.patience, d.step, d.ceiling = 0, creepNodes, 0, s.height-1
		if s.capacity == 0 && round%2 == 0 {
			d.step = s.goal() / creepShare
		}
		d.nodes, d.work = nodes, d.steps+s.steps
		before := d.steps
		out := d.run(0, int32(len(d.columns)))
		s.steps -= d.steps - before + placeSteps*(1+len(d.blocks)/8) // a round costs something even if it ends at once
		switch {
		case out == found:
			d.keep(s)
			aim = max(aim-1, 0)
		case out == deadEnd && proves && d.step == 0:
			s.bound = d.limit + 1
			aim = 0
		case s.capacity > 0:
		case d.limit == s.height-1 || aim == len(slacks)-1:
			aim = 0
		default:
			aim++
		}
		d.rewind(mark{})
		nodes += nodes / 8
		d.remember(nodes)
	}
}

func newDescent(s *search, items []int) *descent {
	d := &descent{skyline: newSkyline(s.problem, items), stop: s.stop}
	d.rank, d.blame = make([]int32, len(d.blocks)), make([]int, len(d.columns))
	d.remember(1 << 11)
	return d
}

// remember makes room for the dead ends among some nodes.
func (d *descent) remember(nodes int) {
	const most = 1 << 20
	if len(d.dead) < most && nodes > len(d.dead)/2 {
		d.dead = make([]uint64, max(4*len(d.dead), 1<<12))
	}
}

// keep hands the layout that a descent has found to the search.
func (d *descent) keep(s *search) {
	offsets := make([]int64, len(s.problem.items))
	var at, height int64
	for _, i := range s.problem.bottom {
		it := &s.problem.items[i]
		at = alignUp(at, it.align)
		offsets[i] = at
		height = max(height, at+it.size)
		at += it.room
	}
	for i := range d.blocks {
		b := &d.blocks[i]
		offsets[b.item] = b.at
		height = max(height, b.at+b.size)
	}
	s.keep(height, offsets)
}

// orders ranks the blocks for a round. After the first few rounds each quantity is off by up to a seventh, by a fixed
// pattern for each round.
func (d *descent) orders(p *problem, round int) {
	type score [2]uint64
	scores := make([]score, len(d.blocks))
	for i := range d.blocks {
		it := &p.items[d.blocks[i].item]
		jitter := uint64(1024)
		if round >= 5 {
			jitter += mixed(uint64(round)<<32+uint64(i)+1)%294 - 147
		}
		slots, size := it.slots*jitter, uint64(it.size)*jitter
		areaHi, areaLo := bits.Mul64(it.area.lo>>10|it.area.hi<<54, jitter)
		area := areaHi<<40 | areaLo>>24
		switch round % 5 {
		case 0:
			scores[i] = score{slots, area}
		case 1:
			scores[i] = score{uint64(it.load), area}
		case 2:
			scores[i] = score{uint64(it.load), slots}
		case 3:
			scores[i] = score{size, slots}
		case 4:
			scores[i] = score{area, slots}
		}
	}
	order := make([]int, len(d.blocks))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(scores[j][0], scores[i][0]), cmp.Compare(scores[j][1], scores[i][1]), cmp.Compare(i, j))
	})
	for at, i := range order {
		d.rank[i] = int32(at)
	}
}
