package draft

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
)

// Plan writes the draft as a plan under a policy's name.
func (d *Draft) Plan(policy string) *plan.Plan {
	d.meter.count(len(d.steps) + 2*len(d.gaps))
	g := d.g
	p := &plan.Plan{Job: d.job.Name, Epoch: d.job.Epoch, Policy: policy, Passes: d.g.Passes,
		Steps: make([]plan.Step, 0, len(d.steps)), Made: make([]time.Duration, 0, len(d.steps))}
	for _, s := range d.steps {
		step := plan.Step{Op: s.Op, Variant: d.variant[s.Op], Scratch: d.scratchOf(s)}
		if s.Want >= 0 && d.pure[s.Op] { // what updates in place makes all its outputs
			step.Want = outputsIn(g, s.Op, s.Want)
		}
		p.Steps = append(p.Steps, step)
		p.Made = append(p.Made, d.latency[s.Op])
	}
	b := builder{Draft: d, resident: make([]bool, len(g.Storages)),
		moves: make([]ranked, 0, len(g.Storages)+len(d.gaps))}
	for i := range g.Storages {
		s := &g.Storages[i]
		b.resident[s.ID] = s.Role.Persistent() && d.lastUse[s.ID] >= 0
		b.endLives(s)
	}
	for _, x := range d.gaps {
		b.gap(x)
	}
	p.Moves = b.sorted()
	if d.style.Waits {
		waitForCopies(p)
	}
	for s, resident := range b.resident {
		if resident {
			p.Entry = append(p.Entry, graph.StorageID(s))
		}
	}
	return p
}

// waitForCopies has the step after each copy out wait for it, and the next iteration for all copies.
func waitForCopies(p *plan.Plan) {
	last := len(p.Steps) - 1
	p.Steps[last].Join = true
	for i := range p.Moves {
		if m := &p.Moves[i]; m.Kind == plan.Out || m.Kind == plan.In && m.After == last {
			m.Sync = true
		}
	}
}

type builder struct {
	*Draft
	moves    []ranked
	resident []bool // per storage: over the boundary
}

// ranked is a move and its place among those of its kind after the same step: when it is to begin, or where lanes were
// not booked for these steps, the slot in which its effect is needed.
type ranked struct {
	rank    time.Duration
	delay   time.Duration // the pause between the step's end and a copy
	after   int32
	storage graph.StorageID
	kind    int8 // of kinds
}

// kinds are the kinds of moves in the order in which they happen after the same step.
var kinds = [...]plan.MoveKind{plan.Out, plan.Drop, plan.In}

const (
	out int8 = iota
	drop
	fetch
)

func (b *builder) move(k int8, s graph.StorageID, after int, rank time.Duration) {
	b.moves = append(b.moves, ranked{rank: rank, after: int32(after), storage: s, kind: k})
}

// copy adds a copy of a swap that was booked to begin at a time.
func (b *builder) copy(k int8, s graph.StorageID, after int, begin time.Duration) {
	b.move(k, s, after, begin)
	if b.style.Delays {
		b.moves[len(b.moves)-1].delay = b.delay(after, begin)
	}
}

// delay is the pause between the end of a step, the last that has ended by a time, and that time. It is shorter than
// the next step, also where that one waits for an input first: then the copy begins earlier than it was booked. A
// longer delay would be taken to reach beyond the next step.
func (b *builder) delay(after int, begin time.Duration) time.Duration {
	n := len(b.steps)
	next := b.latency[b.steps[(after+1)%n].Op]
	return max(0, min(begin-b.end(after), next-1))
}

// rankOf returns the rank of a copy that begins at a time and whose effect is needed in a slot.
func (b *builder) rankOf(begin time.Duration, slot int) time.Duration {
	if b.exact {
		return begin
	}
	return time.Duration(slot)
}

// endLives drops what does not outlive the iteration after its last use, and copies outputs out where they are made. An
// output that is small beside the peak stays to the end if there are swaps: its copy may have to wait for a long one.
func (b *builder) endLives(s *graph.Storage) {
	last := int(b.lastUse[s.ID])
	if s.Role == graph.Output {
		made := b.writes.slotsOf(s.ID)
		at := int(made[len(made)-1])
		b.move(out, s.ID, at, b.rankOf(b.end(at), last))
		if b.swaps > 0 && b.bytes[s.ID] < b.small {
			last = len(b.steps) - 1
		}
	}
	if x := b.tail[s.ID]; x != nil && x.dies && x.kind == swap {
		return // it has left
	}
	if !s.Role.Persistent() && last >= 0 {
		b.move(drop, s.ID, last, 0)
	}
}

// gap writes the moves of a gap that is not kept, folded back into one iteration.
func (b *builder) gap(x *Gap) {
	if x.kind == keep {
		return
	}
	n := len(b.steps)
	if x.from >= 0 {
		if x.kind == swap && !b.clean(x) {
			b.send(x)
		}
		b.move(drop, x.storage, x.drop%n, 0)
	}
	if x.kind != swap || x.dies {
		return
	}
	// A fetch just before the next iteration begins with it: then the storage is not on the device in between.
	in, to, begin := x.in, x.to, x.fetch
	if in >= n-1 && to >= n {
		in, to, begin = in-n, to-n, begin-b.period
		b.resident[x.storage] = !b.between(x)
	}
	if b.exact && !x.Arrival() {
		b.copy(fetch, x.storage, in, begin)
	} else {
		b.move(fetch, x.storage, in, b.rankOf(begin, to))
	}
}

// send writes the copy out of a swap: where it was booked, or else at once.
func (b *builder) send(x *Gap) {
	if !b.exact {
		b.move(out, x.storage, x.from, time.Duration(x.drop))
		return
	}
	n, at := len(b.steps), x.send
	after := x.from
	switch {
	case at < 0:
		at += b.period
		after = min(b.lastEndedBy(at, n-1), n+x.drop)
	case x.copied:
		after = min(b.lastEndedBy(at, x.drop), x.drop)
	}
	if at >= b.period && after >= n-1 && x.drop >= n { // before the first step of the next iteration, or later in it
		after, at = after-n, at-b.period
	}
	b.copy(out, x.storage, after, at)
}

// sorted brings the moves into the order in which they happen: by step, then out, drop, in, then by rank.
func (b *builder) sorted() []plan.Move {
	count := make([]int32, len(b.steps)+2)
	for i := range b.moves {
		count[b.moves[i].after+2]++
	}
	for i := range count[1:] {
		count[i+1] += count[i]
	}
	ordered := make([]ranked, len(b.moves))
	for _, m := range b.moves {
		ordered[count[m.after+1]] = m
		count[m.after+1]++
	}
	moves := make([]plan.Move, len(ordered))
	for first := 0; first < len(ordered); {
		last := first + 1
		for last < len(ordered) && ordered[last].after == ordered[first].after {
			last++
		}
		slices.SortFunc(ordered[first:last], func(x, y ranked) int {
			return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.rank, y.rank), cmp.Compare(x.storage, y.storage))
		})
		for ; first < last; first++ {
			m := &ordered[first]
			moves[first] = plan.Move{Kind: kinds[m.kind], Storage: m.storage, After: int(m.after), Delay: m.delay}
		}
	}
	return moves
}
