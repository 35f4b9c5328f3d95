package pool

import "slices"

// descent looks for a layout below a limit, depth first: it takes a column of the skyline, tries each block that may
// begin at its floor, and then the case that none does. The choice of the next column decides how soon it sees a dead
// end: it takes the column with the fewest options divided by how often that column has failed before ("dom/wdeg",
// Boussemart et al., 2004). States known to be dead ends are remembered and not entered again.
//
// Left out, as they lead to no better layout: a layout in which a block could sink (the canonical layouts of Moffitt,
// MiniMalloc, ASPLOS 2023); the second of two equal blocks; and states in which some column has less room than what is
// still to come into it. Columns that no block to come has in common are searched on their own.
type descent struct {
	*skyline
	rank  []int32  // of a block: the lower is tried first
	blame []int    // of a column: how often it had no way to go on
	dead  []uint64 // hashes of states with no way to go on, each at its remainder
	fails int      // dead ends that it may still run into
	nodes int      // states that it may still visit
	work  int      // steps after which it gives up
	stop  func() bool
}

// outcome is what became of a part of a search.
type outcome uint8

const (
	deadEnd outcome = iota // there is no layout
	found
	gaveUp // its work is used up
)

// run searches columns [from, to). What it has placed when it found a layout stays.
func (d *descent) run(from, to int32) outcome {
	for from < to && d.columns[from].live == 0 {
		from++
	}
	for from < to && d.columns[to-1].live == 0 {
		to--
	}
	if from == to {
		return found
	}
	if parts := d.parts(from, to); len(parts) > 1 {
		return d.each(parts)
	}
	if d.nodes--; d.nodes < 0 || d.fails < 0 || d.steps > d.work || d.nodes%1024 == 0 && d.stop() {
		return gaveUp
	}
	hash := d.hash(from, to)
	slot := &d.dead[hash%uint64(len(d.dead))]
	if *slot == hash {
		return deadEnd
	}
	out := d.branch(d.choose(from, to), from, to)
	if out == deadEnd {
		*slot = hash
	}
	return out
}

// parts divides columns where no block to come goes over, the narrowest first.
func (d *descent) parts(from, to int32) []Span {
	var parts []Span
	begin := from
	for n := from; n < to; n++ {
		if d.columns[n].cross == 0 && n+1 < to {
			parts = append(parts, Span{int(begin), int(n + 1)})
			begin = n + 1
		}
	}
	d.steps += int(to-from) / 4
	if parts == nil {
		return nil
	}
	parts = append(parts, Span{int(begin), int(to)})
	slices.SortStableFunc(parts, func(a, b Span) int { return (a.To - a.From) - (b.To - b.From) })
	return parts
}

func (d *descent) each(parts []Span) outcome {
	start := d.mark()
	for _, p := range parts {
		if out := d.run(int32(p.From), int32(p.To)); out != found {
			d.rewind(start)
			return out
		}
	}
	return found
}

// branch tries what there is to do at the floor of a column.
func (d *descent) branch(n, from, to int32) outcome {
	start := d.mark()
	floor := d.floors[n]
	blocks := d.candidates(n, nil)
	slices.SortFunc(blocks, func(a, b int32) int { return int(d.rank[a] - d.rank[b]) })
	for i, b := range blocks {
		if !d.rests(b) || d.twin(b, blocks[:i]) {
			continue
		}
		if d.place(b) {
			if out := d.run(from, to); out != deadEnd {
				return out
			}
		} else {
			d.blame[d.full]++
		}
		d.rewind(start)
	}
	if roof := alignUp(d.limit, d.unit); d.columns[n].total < roof-floor {
		if level := d.next(n); level <= roof-d.columns[n].total && d.shut(n, level) {
			if out := d.run(from, to); out != deadEnd {
				return out
			}
		}
		d.rewind(start)
	}
	d.blame[n]++
	d.fails--
	return deadEnd
}

// twin reports whether one of the blocks is the same as b.
func (d *descent) twin(b int32, blocks []int32) bool {
	return slices.ContainsFunc(blocks, func(o int32) bool { return d.blocks[o].same == d.blocks[b].same })
}

// choose returns the column with the fewest options for its failures, among those whose blocks at the floor are flush.
// There always is one: the column of the lowest floor.
func (d *descent) choose(from, to int32) int32 {
	best, bestScore := int32(-1), 0
	for n := from; n < to; n++ {
		c := &d.columns[n]
		if c.live == 0 {
			continue
		}
		ways := 4 * int(c.lowest)
		if c.total < d.limit-d.floors[n] {
			ways += 3
		}
		score := ways << 20 / (30 + d.blame[n])
		if best >= 0 && (score > bestScore || score == bestScore && d.floors[n] >= d.floors[best]) {
			continue
		}
		if d.flush(n) {
			best, bestScore = n, score
		}
	}
	d.steps += int(to-from) / 2
	return best
}

// hash is of all that decides whether the columns can be filled.
func (d *descent) hash(from, to int32) uint64 {
	h := uint64(from)<<32 ^ uint64(to) ^ uint64(d.limit)*0xff51afd7ed558ccd
	for n := from; n < to; n++ {
		c := &d.columns[n]
		x := c.hash + uint64(d.floors[n])*0x9e3779b97f4a7c15 + uint64(c.top)*0xc2b2ae3d27d4eb4f + uint64(n)
		x = (x ^ x>>31) * 0xd6e8feb86659fd93
		h += x ^ x>>32
	}
	d.steps += int(to-from) / 2
	return mixed(h)
}

// mixed spreads the bits of a number over all others, there and back again.
func mixed(h uint64) uint64 {
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

// blockHash stands for a block in the hash of a column.
func blockHash(n int32) uint64 { return mixed(uint64(n)*0x9e3779b97f4a7c15 + 1) }
