package draft

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
)

// Limits bound what a job's plans need at least, in memory and in time. They hold for the arenas of all plans that
// execute the ops first in one order, in whole and in their first variants, with one job's latencies and at most the
// whole link of the request, in the steady state of program.Time. What a plan does beside that is its own: swaps with
// or without stalls, of any part of a storage; recomputations at any place, of any number of storages.
//
// An iteration that takes eps times vanilla longer gives each direction of the link that much more time (see bounded),
// and has that much time for recomputations. So in each slot there may be away what the links can have carried, and of
// the rest what can be made again in that time: parts of storages, those with the least time per byte first, each at
// the cost of the op that made its content and of none before it. No slot is below what its step works on. The bound
// knows no chains, and every slot has lanes and time for itself: where much is recomputed it is far from what can be
// reached.
//
// It may be above a plan's slot peak, which counts a storage as away once it is dropped, although its bytes lie in the
// arena until its copy out has ended.
type Limits struct {
	b       *bounded
	floor   graph.Bytes // the largest working set
	vanilla time.Duration
	free    time.Duration // that a vanilla iteration leaves for recomputations: it waits for inputs
}

// NewLimits prepares the limits of the plans of a request's job that execute the ops first in the order in which p
// does. It takes n log n, as Peak and EOR do. Once the watch stops them, their error is scheduler.ErrStopped.
func NewLimits(r *scheduler.Request, job int, p *plan.Plan, w scheduler.Watch) (*Limits, error) {
	var l *Limits
	j := &r.Jobs[job]
	s := &Session{Request: scheduler.Request{Jobs: r.Jobs[job : job+1], Out: r.Out, In: r.In, Align: r.Align},
		meter: newMeter(w), shares: []scheduler.Share{{Out: scheduler.Whole, In: scheduler.Whole}}}
	err := s.meter.stoppable(func() {
		s.first = []*chosen{choose(j, nil)}
		s.wirings = []*wiring{newWiring(j.Graph, r.Align, s.meter.tick)}
		d := s.Draft(0, firstSteps(j.Graph, p), Style{})
		l = &Limits{b: d.bounded(newKnapsack(d)), floor: scheduler.WorkingSetOf(*j, 1).Bytes, vanilla: d.period}
		l.free = d.period - d.starts[0]
		for _, step := range d.steps {
			l.free -= d.latency[step.Op]
		}
	})
	return l, err
}

// firstSteps are the first executions of a graph's ops in a plan.
func firstSteps(g *graph.Graph, p *plan.Plan) []Step {
	steps := make([]Step, 0, len(g.Ops))
	ran := make([]bool, len(g.Ops))
	for _, step := range p.Steps {
		if !ran[step.Op] {
			ran[step.Op] = true
			steps = append(steps, Step{Op: step.Op, Want: -1})
		}
	}
	return steps
}

// Vanilla is what an iteration takes in which nothing is swapped or recomputed.
func (l *Limits) Vanilla() time.Duration { return l.vanilla }

// Peak returns the least arena of plans whose iterations take at most 1+eps times as long as vanilla.
func (l *Limits) Peak(eps float64) (bound graph.Bytes, err error) {
	longer := time.Duration(math.Ceil(eps * float64(l.vanilla)))
	bound = l.floor
	err = l.b.meter.stoppable(func() {
		l.b.sweep(func(s *sight) { bound = max(bound, s.kept-l.mostAbsent(s, longer)) })
	})
	return bound, err
}

// mostAbsent is the most that can be away of a slot.
func (l *Limits) mostAbsent(s *sight, longer time.Duration) graph.Bytes {
	return min(s.idle+s.tiny, s.mostAbsent(longer)+s.again.bytesWithin(longer+l.free))
}

// forever is longer than any iteration.
const forever = time.Duration(1) << 50

// EOR returns the least time of plans whose arena is at most the budget, over that of vanilla: 1 at least, and +Inf if
// a step works on more.
func (l *Limits) EOR(budget graph.Bytes) (eor float64, err error) {
	if budget < l.floor {
		return math.Inf(1), nil
	}
	var longer time.Duration
	err = l.b.meter.stoppable(func() { longer = l.longer(budget) })
	return 1 + float64(longer)/float64(max(1, l.vanilla)), err
}

// longer returns by how much iterations are longer at least within a budget that is not below the floor.
func (l *Limits) longer(budget graph.Bytes) (longer time.Duration) {
	l.b.sweep(func(s *sight) {
		fits := func(t time.Duration) bool { return s.kept-l.mostAbsent(s, t) <= budget }
		if fits(longer) {
			return
		}
		high := max(1, 2*longer) // it grows with time: bisect what this slot needs
		for !fits(high) {
			if high *= 2; high > forever {
				return // unless it rounds wrong, at least what the step works on fits
			}
		}
		for longer+1 < high {
			if middle := longer + (high-longer)/2; fits(middle) {
				high = middle
			} else {
				longer = middle
			}
		}
		longer = high
	})
	return longer
}

// knapsack holds what can be made again of what is idle in a slot: the most bytes within a time. Storages lie in the
// order of their time per byte, and two trees of sums over that order are kept as gaps begin and end.
type knapsack struct {
	rank  []int32 // per storage: its place, counted from 1; 0: it cannot be made again
	items []item  // by place
	bytes []graph.Bytes
	times []int64 // in ticks
}

// item is a storage that can be made again. Where an op makes several, each costs the part of its time that it has of
// their bytes: whichever of them are made again together, the op takes no less.
type item struct {
	bytes graph.Bytes
	ticks int64
}

// tick is the part of a nanosecond in which a knapsack counts, so that small storages cost something.
const tick = 1 << 10

func newKnapsack(d *Draft) *knapsack {
	k := &knapsack{rank: make([]int32, d.Storages())}
	made := make([]graph.Bytes, len(d.g.Ops))
	maker := slices.Repeat([]graph.OpID{graph.NoOp}, d.Storages()) // the cheapest of the ops that make a version
	for op := range d.g.Ops {
		for _, s := range d.makes.list(op) {
			made[op] += d.g.Storages[s].Bytes
		}
	}
	ticks := func(s graph.StorageID, op graph.OpID) int64 {
		return int64(float64(d.latency[op]) * tick * float64(d.g.Storages[s].Bytes) / float64(max(1, made[op])))
	}
	var order []graph.StorageID
	for op := range d.g.Ops {
		d.meter.tick(16)
		if !d.pure[op] {
			continue
		}
		for _, s := range d.makes.list(op) {
			if maker[s] == graph.NoOp {
				order = append(order, s)
			}
			if maker[s] == graph.NoOp || ticks(s, graph.OpID(op)) < ticks(s, maker[s]) {
				maker[s] = graph.OpID(op)
			}
		}
	}
	density := make([]float64, d.Storages())
	for _, s := range order {
		density[s] = float64(ticks(s, maker[s])) / float64(max(1, d.g.Storages[s].Bytes))
	}
	slices.SortFunc(order, func(a, b graph.StorageID) int {
		d.meter.tick(2)
		return cmp.Or(cmp.Compare(density[a], density[b]), cmp.Compare(a, b))
	})
	k.items = make([]item, len(order)+1)
	for i, s := range order {
		k.rank[s], k.items[i+1] = int32(i+1), item{d.g.Storages[s].Bytes, ticks(s, maker[s])}
	}
	k.bytes, k.times = make([]graph.Bytes, len(k.items)), make([]int64, len(k.items))
	return k
}

// add puts the storage of a gap in or, by -1, takes it out.
func (k *knapsack) add(x *Gap, sign graph.Bytes) {
	if k == nil || k.rank[x.storage] == 0 || x.Arrival() {
		return
	}
	it := k.items[k.rank[x.storage]]
	for i := int(k.rank[x.storage]); i < len(k.items); i += i & -i {
		k.bytes[i] += sign * it.bytes
		k.times[i] += int64(sign) * it.ticks
	}
}

// bytesWithin returns the most bytes that can be made again in a time: whole storages in order, and a part of the next.
func (k *knapsack) bytesWithin(t time.Duration) graph.Bytes {
	if k == nil {
		return 0
	}
	left := int64(min(t, forever)) * tick
	var sum graph.Bytes
	at, n := 0, len(k.items)
	for step := 1 << 62 >> 1; step > 0; step /= 2 {
		if next := at + step; next < n && k.times[next] <= left {
			at, sum, left = next, sum+k.bytes[next], left-k.times[next]
		}
	}
	if at+1 < n { // it is idle, or the walk would have gone over it
		it := k.items[at+1]
		sum += graph.Bytes(math.Ceil(float64(it.bytes) * float64(left) / float64(max(1, it.ticks))))
	}
	return sum
}
