package draft

import (
	"math/rand/v2"
	"testing"
	"time"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/jobtest"
)

// naive plans swaps as SwapFreely does, and simulates everything again for each decision: the footprint from the
// accesses slot by slot, candidates by a look at all gaps, link time from a list of what is booked.
type naive struct {
	d         *Draft // gaps, times and sizes; never decided
	outs, ins *slowLane
	away      map[*Gap]placed
	ranges    map[*Gap][2]int // where a gap may still be away; gone: it was swapped or cannot be
	tried     map[*Gap]bool   // in vain, in this round
	rounds    int
	kept      []graph.Bytes   // per slot, if nothing is decided
	wrote     map[[2]int]bool // by storage and slot
}

func newNaive(d *Draft) *naive {
	n := &naive{d: d, outs: &slowLane{period: d.period}, ins: &slowLane{period: d.period}, away: map[*Gap]placed{},
		ranges: map[*Gap][2]int{}, tried: map[*Gap]bool{}}
	n.observe()
	var arrived time.Duration
	for _, x := range d.gaps {
		if x.Arrival() {
			took := d.in.Time(d.g.Storages[x.storage].Bytes)
			n.ins.book(arrived, took)
			arrived += took
		} else if d.bytes[x.storage] >= d.small {
			n.ranges[x] = [2]int{x.from + 1, x.to - 1}
		}
	}
	if d.style.OneChannel {
		n.outs = n.ins
	}
	for _, s := range d.g.Storages {
		if s.Role == graph.Output {
			last := 0
			for slot := range d.steps {
				if n.wrote[[2]int{int(s.ID), slot}] {
					last = slot
				}
			}
			at, _ := n.outs.earliest(d.end(last), never, d.out.Time(s.Bytes))
			n.outs.book(at, d.out.Time(s.Bytes))
		}
	}
	return n
}

// observe notes, slot by slot, who touches and writes what, and what is on the device if nothing is decided.
func (n *naive) observe() {
	d := n.d
	n.kept, n.wrote = make([]graph.Bytes, len(d.steps)), map[[2]int]bool{}
	first, last := map[graph.StorageID]int{}, map[graph.StorageID]int{}
	for slot, step := range d.steps {
		n.kept[slot] = scheduler.RoundUp(d.scratch[step.Op], d.align)
		for _, s := range d.g.Touches(step.Op) {
			if _, ok := first[s]; !ok {
				first[s] = slot
			}
			last[s] = slot
		}
		for _, w := range d.g.Writes(step.Op) {
			n.wrote[[2]int{int(w.Storage), slot}] = true
		}
	}
	for s, from := range first {
		to := last[s]
		if role := d.g.Storages[s].Role; role.Persistent() {
			from, to = 0, len(d.steps)-1
		} else if role == graph.Input {
			from = 0
		}
		for slot := from; slot <= to; slot++ {
			n.kept[slot] += d.bytes[s]
		}
	}
}

// peak adds up what is on the device in each slot.
func (n *naive) peak() (at int, highest graph.Bytes) {
	count := len(n.d.steps)
	for slot, sum := range n.kept {
		for x, p := range n.away {
			if p.drop < slot && slot <= p.in || p.drop < slot+count && slot+count <= p.in {
				sum -= n.d.bytes[x.storage]
			}
		}
		if sum > highest {
			at, highest = slot, sum
		}
	}
	return at, highest
}

// clean looks back from a gap to the last step that wrote its storage, and for a swap on the way.
func (n *naive) clean(x *Gap) bool {
	d := n.d
	count := len(d.steps)
	role := d.g.Storages[x.storage].Role
	writes := func(slot int) bool { return n.wrote[[2]int{int(x.storage), slot}] }
	if role == graph.Output {
		last := 0
		for slot := range count {
			if writes(slot) {
				last = slot
			}
		}
		if x.from >= last {
			return true
		}
	}
	for back := x.from; back > x.from-count && (back >= 0 || role.Persistent()); back-- {
		if writes((back + count) % count) {
			return false
		}
		for y := range n.away {
			if y.storage == x.storage && y != x && (y.to%count == (back+count)%count) {
				return true
			}
		}
	}
	return role.Persistent() || role == graph.Input
}

func (n *naive) fit(x *Gap, at int, anywhere bool) (placed, bool) {
	d := n.d
	bytes := d.g.Storages[x.storage].Bytes
	p := placed{drop: x.from, send: d.end(x.from), fetchTakes: d.in.Time(bytes)}
	wanted, back := d.start(at), d.end(at)
	if anywhere {
		wanted, back = d.start(x.to), 0
	}
	if !n.clean(x) {
		p.sendTakes = d.out.Time(bytes)
	}
	if p.sendTakes > d.period || p.fetchTakes > d.period {
		return p, false
	}
	for from := d.end(x.made); ; {
		if d.style.LateOut {
			from = max(from, d.end(x.from))
		}
		ok := true
		if p.sendTakes > 0 {
			if p.send, ok = n.outs.earliest(from, wanted, p.sendTakes); !ok {
				return p, false
			}
			for p.drop = x.from; d.end(p.drop) < p.send+p.sendTakes; p.drop++ {
			}
		}
		if n.outs == n.ins && p.sendTakes > 0 {
			n.outs.book(p.send, p.sendTakes)
		}
		earliest := max(p.send+p.sendTakes, back)
		for _, by := range []time.Duration{d.start(x.to) - d.slack(x.to), d.start(x.to)} {
			p.fetch, ok = by, earliest <= by
			if p.fetchTakes > 0 {
				p.fetch, ok = n.ins.latest(earliest, by, p.fetchTakes)
			}
			if ok {
				break
			}
		}
		if n.outs == n.ins && p.sendTakes > 0 {
			n.outs.release(p.send, p.sendTakes)
			if !ok { // begin where what is booked next ends
				next := never
				for _, b := range n.outs.booked {
					if shift := map[bool]time.Duration{true: d.period}[p.send < 0]; b.from >= p.send+shift {
						next = min(next, b.from-shift)
					}
				}
				from = next
				continue
			}
		}
		if !ok {
			return p, false
		}
		for p.in = x.to - 1; p.in >= 0 && d.end(p.in) > p.fetch; p.in-- {
		}
		return p, anywhere || p.drop < at && at <= p.in
	}
}

// best is the gap at the peak that is tried next.
func (n *naive) best(at int) *Gap {
	d := n.d
	count := len(d.steps)
	var best *Gap
	for _, x := range d.gaps {
		r, ok := n.ranges[x]
		if !ok || n.tried[x] || !(r[0] <= at && at <= r[1] || r[0] <= at+count && at+count <= r[1]) || !n.may(x) {
			continue
		}
		better := best == nil
		if !better {
			for _, c := range [][2]int64{{int64(d.bytes[x.storage]), int64(d.bytes[best.storage])},
				{int64(x.to - x.from), int64(best.to - best.from)},
				{int64(best.from), int64(x.from)}, {int64(best.storage), int64(x.storage)}} {
				if c[0] != c[1] {
					better = c[0] > c[1]
					break
				}
			}
		}
		if better {
			best = x
		}
	}
	return best
}

func (n *naive) may(x *Gap) bool {
	if n.d.limit < 0 {
		return true
	}
	swapped := map[graph.StorageID]bool{}
	for y := range n.away {
		swapped[y.storage] = true
	}
	return swapped[x.storage] || len(swapped) < n.d.limit
}

func (n *naive) try(x *Gap, at int) {
	if !(x.from < at && at < x.to) {
		at += len(n.d.steps)
	}
	if p, ok := n.fit(x, at, false); ok {
		n.outs.book(p.send, p.sendTakes)
		n.ins.book(p.fetch, p.fetchTakes)
		n.away[x] = p
		delete(n.ranges, x)
	} else if p, ok := n.fit(x, x.from+1, true); ok && p.drop < p.in {
		n.ranges[x], n.tried[x] = [2]int{p.drop + 1, p.in}, true
	} else {
		delete(n.ranges, x)
	}
}

func naiveSwaps(jobs []*naive, target graph.Bytes) {
	done := make([]bool, len(jobs))
	for {
		var sum graph.Bytes
		for _, n := range jobs {
			_, peak := n.peak()
			sum += peak
		}
		if sum <= target {
			return
		}
		best, job := (*Gap)(nil), 0
		for i, n := range jobs {
			if done[i] {
				continue
			}
			at, _ := n.peak()
			x := n.best(at)
			if x == nil {
				if n.rounds++; len(n.tried) > 0 && n.rounds <= 8 {
					for y := range n.ranges { // those that were not reached in this round stay behind
						if !n.tried[y] {
							delete(n.ranges, y)
						}
					}
					clear(n.tried)
					x = n.best(at)
				}
			}
			if x == nil {
				done[i] = true
			} else if best == nil || int64(n.d.bytes[x.storage])*int64(jobs[job].d.job.Worth()) >
				int64(jobs[job].d.bytes[best.storage])*int64(n.d.job.Worth()) {
				best, job = x, i
			}
		}
		if best == nil {
			return
		}
		at, _ := jobs[job].peak()
		jobs[job].try(best, at)
	}
}

// randomJobs returns a session of random jobs and a random style.
func randomJobs(rng *rand.Rand, count int) (*Session, Style) {
	r := jobtest.New(rng, count)
	style := Style{LateOut: rng.IntN(3) == 0, OneChannel: rng.IntN(3) == 0}
	return opened(r), style
}

// unaligned returns a session of a random job whose storages take what they hold.
func unaligned(rng *rand.Rand) (*Session, Style) {
	s, style := randomJobs(rng, 1)
	s.Request.Align = 4
	return opened(s.Request), style
}

// opened returns the session of a request that nobody stops.
func opened(r scheduler.Request) (s *Session) {
	_, err := Open(r, scheduler.Watch{}, func(it *Session) (scheduler.Result, error) {
		s = it
		return scheduler.Result{}, nil
	})
	if err != nil {
		panic(err)
	}
	return s
}

// checkDecisions compares every decision of the fast planner with those of the naive one.
func checkDecisions(t testing.TB, seed uint64) (swaps int) {
	rng := rand.New(rand.NewPCG(seed, 51))
	s, style := randomJobs(rng, 1+rng.IntN(2))
	order := GraphOrder
	if rng.IntN(2) == 0 {
		order = EarlyUpdates
	}
	if seed%4 == 0 {
		for i := range s.Request.Jobs {
			j := &s.Request.Jobs[i]
			for range j.Graph.Ops {
				j.Slack = append(j.Slack, time.Duration(rng.IntN(3000)))
			}
		}
	}
	fast := s.Drafts(order, style)
	var slow []*naive
	for _, d := range s.Drafts(order, style) {
		slow = append(slow, newNaive(d))
	}
	target := SumOfPeaks(fast) * graph.Bytes(rng.IntN(100)) / 100
	SwapFreely(fast, target)
	naiveSwaps(slow, target)
	for i, d := range fast {
		at, bytes := d.Peak()
		if slot, want := slow[i].peak(); slot != at || want != bytes {
			t.Fatalf("seed %d: job %d has its peak of %d at %d, the naive planner %d at %d", seed, i, bytes, at, want,
				slot)
		}
		for k, x := range d.gaps {
			p, away := slow[i].away[slow[i].d.gaps[k]]
			if x.Arrival() {
				continue
			}
			if (x.kind == swap) != away || away && (x.drop != p.drop || x.in != p.in || x.copied && x.send != p.send ||
				x.fetch != p.fetch) {
				t.Fatalf("seed %d: job %d, gap of storage %d from %d to %d: %+v, the naive planner %v %+v", seed, i,
					x.storage,
					x.from, x.to, *x, away, p)
			}
			if away {
				swaps++
			}
		}
	}
	return swaps
}

func TestSameDecisions(t *testing.T) {
	swaps := 0
	for seed := range uint64(4000) {
		swaps += checkDecisions(t, seed)
	}
	t.Logf("%d swaps", swaps)
	if swaps < 10000 {
		t.Errorf("only %d swaps", swaps)
	}
}

func FuzzSameDecisions(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { checkDecisions(t, seed) })
}
