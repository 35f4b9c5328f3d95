package draft

import (
	"math/rand/v2"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
)

// slowZeroStall is zeroStall slot by slot: each lane carries what is ready, the earliest first, with a look at every
// gap.
func slowZeroStall(d *Draft) graph.Bytes {
	n := len(d.steps)
	carry := func(l cost.Link, deadline time.Duration, loads map[time.Duration]graph.Bytes) graph.Bytes {
		var sum graph.Bytes
		for _, bytes := range loads {
			sum += bytes
		}
		if l.Rate <= 0 {
			return sum
		}
		lowest := float64(sum)
		for from := range loads { // what is ready before, and then at most what the rate allows
			var before graph.Bytes
			for at, bytes := range loads {
				if at < from {
					before += bytes
				}
			}
			lowest = min(lowest, float64(before)+float64(l.Rate)/1e9*float64(deadline-from))
		}
		return graph.Bytes(lowest)
	}
	latest := func(slot int) time.Duration { // if the iteration ends with what follows from there on
		at := d.period
		for _, step := range d.steps[slot%n:] {
			at -= d.latency[step.Op]
		}
		return at + time.Duration(slot/n)*d.period
	}
	var bound graph.Bytes
	for slot, kept := range d.curve.Slots() { // alignment is 4: sizes are as they are
		outs, ins := map[time.Duration]graph.Bytes{}, map[time.Duration]graph.Bytes{}
		var clean graph.Bytes
		for _, x := range d.gaps {
			at, ok := d.Covers(x, slot)
			if !ok {
				continue
			}
			shift := time.Duration(at/n) * d.period
			if d.clean(x) {
				clean += d.bytes[x.storage]
			} else {
				outs[d.end(x.made)-shift] += d.bytes[x.storage]
			}
			ins[-(latest(x.to) - shift)] += d.bytes[x.storage]
		}
		away := min(clean+carry(d.out, latest(slot), outs), carry(d.in, -d.end(slot), ins))
		bound = max(bound, kept-away)
	}
	return bound
}

// TestZeroStall compares the bound with the slow one, and shows that no plan without a stall is below it.
func TestZeroStall(t *testing.T) {
	var tight, loose, plain graph.Bytes
	for seed := range uint64(1500) {
		s, style := unaligned(rand.New(rand.NewPCG(seed, 63)))
		d := s.Drafts(EarlyUpdates, style)[0]
		_, kept := d.Peak()
		got, want := d.zeroStall(), slowZeroStall(d)
		const rounding = 8
		if got > want || got < want-rounding {
			t.Fatalf("seed %d: bound %d, want %d", seed, got, want)
		}
		SwapFreely([]*Draft{d}, 0)
		_, peak := d.Peak()
		if peak < got {
			t.Fatalf("seed %d: a plan of %d is below the bound of %d", seed, peak, got)
		}
		tight, loose, plain = tight+got, loose+peak, plain+kept
	}
	t.Logf("bound %d, planned %d, kept %d", tight, loose, plain)
	if tight*10 < loose*7 || loose >= plain {
		t.Errorf("bound %d, planned %d, kept %d", tight, loose, plain)
	}
}

// TestZeroStallOfAllPlans tries, on graphs with few gaps, the swaps in every order: none of them is below the bound,
// and in some the best reaches it.
func TestZeroStallOfAllPlans(t *testing.T) {
	tried, reached := 0, 0
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 64))
		s, style := unaligned(rng)
		s.Request.Jobs[0].MaxSwapRate = 0
		base := s.Drafts(GraphOrder, style)[0]
		var gaps []int
		for i, x := range base.gaps {
			if x.kind == keep {
				gaps = append(gaps, i)
			}
		}
		if len(gaps) > 5 {
			continue
		}
		tried++
		bound := base.zeroStall()
		_, lowest := base.Peak()
		permute(gaps, func(order []int) {
			d := s.Drafts(GraphOrder, style)[0]
			for _, i := range order {
				x := d.gaps[i]
				if p, ok := d.fit(x, x.from+1, true); ok && p.drop < p.in {
					d.carry(x, p)
				}
			}
			_, peak := d.Peak()
			lowest = min(lowest, peak)
		})
		if lowest < bound {
			t.Fatalf("seed %d: a plan of %d is below the bound of %d", seed, lowest, bound)
		}
		if lowest == bound {
			reached++
		}
	}
	t.Logf("%d graphs, the bound is reached in %d", tried, reached)
	if tried < 50 || reached < tried/10 {
		t.Errorf("%d graphs, the bound is reached in %d", tried, reached)
	}
}

// permute calls do with every order of the numbers.
func permute(numbers []int, do func([]int)) {
	var step func(k int)
	step = func(k int) {
		if k == len(numbers) {
			do(numbers)
			return
		}
		for i := k; i < len(numbers); i++ {
			numbers[k], numbers[i] = numbers[i], numbers[k]
			step(k + 1)
			numbers[k], numbers[i] = numbers[i], numbers[k]
		}
	}
	step(0)
}
