package pool

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// closeShare says when a pass is near its end: the room that is left for limits is this part of what the best height is
// above the goal.
const closeShare = 8

// The limits of a descent: dead ends, leastFails times its term in the restart sequence of Luby and others, and
// nodes for each of these and for each block. A descent that finds a layout on a hard instance most often runs into
// less than ten dead ends; one that has run into many hardly ever gets out of them, and another order does.
const (
	leastFails    = 10
	nodesPerFail  = 10
	nodesPerBlock = 2
)

// descents are a series of them, below one limit after another. Each begins at the bottom again, with another order and
// with what the ones before learnt about which columns are hard.
//
// A descent with a low limit finds a layout below it far sooner than one that accepts any layout lower than the best.
// So the limits bisect: a pass starts with the goal and continues halfway between the highest limit that failed and the
// best height. When the two are close, any lower layout is accepted. The next pass gives each limit twice as many
// descents.
type descents struct {
	*descent
	round    int
	low      int64 // bytes: in this pass, limits below it were tried in vain; the goal at the begin of a pass
	tries    int   // at this limit
	tryLimit int   // descents that a limit is worth in this pass
	found    bool  // the best layout is, or was, of a descent
	over     bool  // no layout is lower
}

// descend looks for layouts below one limit after another.
func descend(s *search) {
	if s.descents == nil {
		s.descents = newDescents(s)
	}
	if d := s.descents; len(d.blocks) > 0 {
		for !s.done() && !d.over {
			d.next(s)
		}
	}
}

// newDescents are of the items above the strip at the bottom, or of none where they are too many.
func newDescents(s *search) *descents {
	var items []int
	for i := range s.problem.items {
		if _, below := slices.BinarySearch(s.problem.bottom, i); !below {
			items = append(items, i)
		}
	}
	if len(items) > maxItems {
		items = nil
	}
	return &descents{descent: newDescent(s, items), tryLimit: 1}
}

func newDescent(s *search, items []int) *descent {
	d := &descent{skyline: newSkyline(s.problem, items), stop: s.stop}
	d.rank, d.blame = make([]int32, len(d.blocks)), make([]int, len(d.columns))
	d.remember(1 << 11)
	return d
}

// remember makes room for the dead ends among some nodes.
func (d *descent) remember(nodes int) {
	const maxDead = 1 << 20
	if len(d.dead) < maxDead && nodes > len(d.dead)/2 {
		d.dead = make([]uint64, max(4*len(d.dead), 1<<12))
	}
}

// next does one descent.
func (d *descents) next(s *search) {
	if d.order(s.problem, d.round); d.found && d.round%2 == 1 {
		d.follow(s)
	}
	d.round++
	d.aim(s)
	d.tries++
	d.fails = leastFails * luby(d.tries)
	d.nodes = nodesPerBlock*len(d.blocks) + nodesPerFail*d.fails
	d.remember(d.nodes)
	before := d.steps
	d.work = before + s.steps
	out := d.run(0, int32(len(d.columns)))
	if out == deadEnd && s.problem.exact {
		s.bound = d.limit + 1
	}
	d.over = out == deadEnd && d.limit == s.height-1
	if out == found {
		d.keep(s)
		d.found, d.tries = true, 0
	} else if out == deadEnd || d.tries >= d.tryLimit {
		d.low, d.tries = d.limit+1, 0
	}
	d.rewind(mark{})
	for n, blame := range d.blame {
		d.blame[n] = blame - blame/10
	}
	s.steps -= d.steps - before + placeSteps*(1+len(d.blocks)/8) // it costs something even if it ends at once
}

// aim sets the limit of the next descent.
func (d *descents) aim(s *search) {
	goal, best := s.goal(), s.height-1
	if d.low = max(d.low, goal); d.low > best {
		d.low, d.tries = goal, 0
		d.tryLimit = min(2*d.tryLimit, math.MaxInt/2)
	}
	switch room := best - d.low; {
	case d.low == goal:
		d.limit = goal
	case room < (best-goal)/closeShare:
		d.limit = best
	default:
		d.limit = d.low + room/2
	}
}

// keep hands the layout that a descent has found to the search.
func (d *descent) keep(s *search) {
	offsets := make([]int64, len(s.problem.items))
	height := s.problem.strip
	var at int64
	for _, i := range s.problem.bottom {
		offsets[i] = at
		at += s.problem.items[i].room
	}
	for i := range d.blocks {
		b := &d.blocks[i]
		offsets[b.item] = b.at
		height = max(height, b.at+b.size)
	}
	s.keep(height, offsets)
}

// order ranks the blocks for a round. After the first few rounds each quantity is off by up to a seventh, by a fixed
// pattern for each round.
func (d *descent) order(p *problem, round int) {
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
	d.rankBy(func(i, j int) int {
		return cmp.Or(cmp.Compare(scores[j][0], scores[i][0]), cmp.Compare(scores[j][1], scores[i][1]))
	})
}

// follow ranks the blocks by where they stand in the best layout, each up to a seventeenth of its height higher, so
// that the descent looks for a layout like that.
func (d *descents) follow(s *search) {
	scores := make([]int64, len(d.blocks))
	for i := range d.blocks {
		scores[i] = s.offsets[d.blocks[i].item] + s.height/1024*int64(mixed(uint64(d.round)<<32+uint64(i)+1)%61)
	}
	d.rankBy(func(i, j int) int { return cmp.Compare(scores[i], scores[j]) })
}

// rankBy ranks the blocks in an order, equal ones by their numbers.
func (d *descent) rankBy(compare func(i, j int) int) {
	order := make([]int, len(d.blocks))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(compare(i, j), cmp.Compare(i, j)) })
	for at, i := range order {
		d.rank[i] = int32(at)
	}
}

// luby is term n, from 1, of 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... (Luby, Sinclair and Zuckerman, 1993).
func luby(n int) int {
	k := bits.Len(uint(n))
	if n == 1<<k-1 {
		return 1 << (k - 1)
	}
	return luby(n - 1<<(k-1) + 1)
}
