package draft

import (
	"cmp"
	"slices"
	"time"
)

// Replay returns how long an iteration takes when steps wait for nothing but copies: a copy begins when its lane is
// free and the step that it follows has ended, a step when what it uses has arrived and what is dropped before it has
// left. Where copies are not booked exactly, that can be far longer than the planned times say.
func (d *Draft) Replay() time.Duration {
	const rounds = 3 // iterations, until what reaches from one into the next repeats
	events := d.events()
	n := len(d.steps)
	d.meter.count(rounds * (n + len(events)))
	var now, out, in, period time.Duration // the ends of the last step and copies, and of the last iteration
	outs, ins := &out, &in
	if d.oneChannel() {
		ins = outs
	}
	left, arrived := make([]time.Duration, len(d.gaps)), make([]time.Duration, len(d.gaps))
	for range rounds {
		next, begin := events, now
		for slot := range n {
			for ; len(next) > 0 && int(next[0].slot) == slot && next[0].kind <= arrives; next = next[1:] {
				if e := &next[0]; e.kind == leaves {
					now = max(now, left[e.gap])
				} else {
					now = max(now, arrived[e.gap])
				}
			}
			now += d.latency[d.steps[slot].Op]
			for ; len(next) > 0 && int(next[0].slot) == slot; next = next[1:] {
				if e := &next[0]; e.kind == sends {
					*outs = max(*outs, now) + e.takes
					left[e.gap] = *outs
				} else {
					*ins = max(*ins, now, left[e.gap]) + e.takes
					arrived[e.gap] = *ins
				}
			}
		}
		period = now - begin
	}
	return period
}

// copyEvent is what a copy of a gap's swap has to do with a slot.
type copyEvent struct {
	slot  int32
	kind  int8
	rank  int32 // among those of a kind
	gap   int32
	takes time.Duration // sends and fetches
}

// The kinds of events, the first two before the slot's step, the others behind it.
const (
	leaves  int8 = iota // the step waits until the storage has left
	arrives             // the step waits until the storage is there
	sends
	fetches
)

// events lists what copies have to do with slots, folded into one iteration, in their order.
func (d *Draft) events() []copyEvent {
	n := len(d.steps)
	var all []copyEvent
	add := func(slot int, kind int8, rank, gap int, takes time.Duration) {
		all = append(all, copyEvent{int32((slot + n) % n), kind, int32(rank), int32(gap), takes})
	}
	for i, x := range d.gaps {
		if x.kind != swap {
			continue
		}
		size := d.g.Storages[x.storage].Bytes
		if !d.clean(x) {
			add(x.from, sends, x.drop, i, d.out.Time(size))
			add(x.drop+1, leaves, 0, i, 0)
		}
		if x.dies {
			continue
		}
		add(x.in, fetches, x.to, i, d.in.Time(size))
		add(x.to, arrives, 0, i, 0)
	}
	d.meter.count(4 * len(all))
	slices.SortFunc(all, func(a, b copyEvent) int {
		return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.kind, b.kind), cmp.Compare(a.rank, b.rank),
			cmp.Compare(a.gap, b.gap))
	})
	return all
}
