package draft

import (
	"time"

	"tensile/scheduler"
)

// Remedy is one way to lower the footprint of a job's peak slot, whatever it costs.
type Remedy struct {
	Gap      *Gap
	Kind     scheduler.Kind // Swap or Recompute
	Drop, In int            // for a swap: the storage is then away in the slots Drop+1 to In
	Cost     time.Duration  // that the job is expected to lose

	send, fetch stretch // link time that a swap takes
}

// overhead is what every copy costs the job beside the link time: an event and a wait.
const overhead = time.Microsecond

// Apply carries a remedy out. After a recomputation, which inserts a step, all other remedies must be found again.
func (d *Draft) Apply(r Remedy) {
	if r.Kind == recompute {
		d.recompute(r)
		return
	}
	d.book(r.send, r.fetch)
	if r.Gap.kind != swap {
		r.Gap.send, r.Gap.fetch, r.Gap.copied = r.send.from, r.fetch.from, r.send.from < r.send.to
	}
	d.set(r.Gap, swap, r.Drop, r.In)
	r.Gap.cost = r.Cost
}

// SwapAt returns the swap of a gap that frees at least the given slot. The copy out may use the time before the slot,
// the copy in the time after it, where their lanes are free. The job stalls for what they need beyond that, but no
// longer than the copies take: a backlog on a lane is paid once. A gap that is already swapped is widened.
func (d *Draft) SwapAt(x *Gap, slot int) Remedy {
	out, fetch := d.out.Time(d.g.Storages[x.storage].Bytes), d.fetchTime(x)
	if d.clean(x) {
		out = 0
	}
	r := Remedy{Gap: x, Kind: swap}
	if x.kind == swap {
		r.Drop, r.In = min(slot-1, x.drop), max(slot, x.in)
		r.Cost = x.cost + min(out, lack(d.end(x.from)+out, d.start(slot))) + min(fetch, lack(d.end(slot),
			d.start(x.to)-fetch))
		return r
	}
	begin, _ := d.outs.earliest(d.end(x.from), never, out)
	r.Drop = min(slot-1, d.firstEndedAt(begin+out, x.from))
	last, ok := d.ins.latestStart(0, d.start(x.to), fetch)
	if !ok {
		last = -fetch
	}
	r.In = max(slot, d.lastEndedBy(last, x.to-1))
	r.Cost = min(out, lack(begin+out, d.start(slot))) + min(fetch, lack(d.end(slot), last)) + 2*overhead
	r.send, r.fetch = stretch{begin, begin + out}, stretch{last, last + fetch}
	return r
}

// lack is how much later than wanted something happens.
func lack(happens, wanted time.Duration) time.Duration { return max(0, happens-wanted) }
