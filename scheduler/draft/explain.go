package draft

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/scheduler"
)

// decisions says what was decided and what it is expected to cost. What frees the most bytes times slots comes first.
func (d *Draft) decisions() []scheduler.Decision {
	d.meter.count(2 * len(d.gaps))
	var all []scheduler.Decision
	for _, x := range d.gaps {
		if x.kind == keep || x.from < 0 && x.in < 0 {
			continue
		}
		y := scheduler.Decision{Storage: x.storage, Kind: swap, From: x.from, To: x.to, Freed: x.in - x.drop,
			Cost: x.cost,
			Away: d.start(x.in+1) - d.start(x.drop+1), Reason: "both copies fit into free link time"}
		switch {
		case x.kind == recompute:
			y.Kind, y.To, y.Cost = recompute, x.to+1, d.latency[d.steps[x.to].Op]
			y.Reason = "making it again costs least for what it frees"
		case x.dies:
			y.Reason = "the script holds it, and nothing uses it again: it is not copied back"
		case x.Arrival():
			y.Reason = "it is fetched when it is needed"
		case x.cost > 2*overhead:
			y.Reason = "no copy fits into free link time and this one costs least for what it frees"
		case !x.copied:
			y.Reason = "the host has its content, and the copy back fits into free link time"
		}
		all = append(all, y)
	}
	slices.SortStableFunc(all, func(a, b scheduler.Decision) int {
		return cmp.Compare(d.bytes[b.Storage]*graph.Bytes(b.Freed), d.bytes[a.Storage]*graph.Bytes(a.Freed))
	})
	return all
}

// keptDecisions says why what is on the device at the peak stays there, the largest first.
func (d *Draft) keptDecisions() []scheduler.Decision {
	at, _ := d.Peak()
	var all []scheduler.Decision
	for i := range d.g.Storages {
		d.meter.count(fitSteps)
		s := &d.g.Storages[i]
		last := int(d.lastUse[s.ID])
		if last < 0 || !s.Role.Persistent() && (at > last || s.Role != graph.Input &&
			at < int(d.writes.slotsOf(s.ID)[0])) {
			continue
		}
		y := scheduler.Decision{Storage: s.ID, Kind: keep, From: at, To: at, Reason: "the step at the peak uses it"}
		away := false
		for x := d.head[s.ID]; x != nil; x = x.next {
			if slot, ok := d.Covers(x, at); ok {
				y.From, y.To = x.from, x.to
				away = x.Away(slot)
				y.Reason, y.Cost = d.whyKept(x, slot)
			}
		}
		if !away {
			all = append(all, y)
		}
	}
	slices.SortStableFunc(all, func(a, b scheduler.Decision) int {
		return cmp.Compare(d.bytes[b.Storage],
			d.bytes[a.Storage])
	})
	return all
}

// whyKept says why a gap that covers the peak does not free it, and the lowest cost of freeing it.
func (d *Draft) whyKept(x *Gap, at int) (string, time.Duration) {
	if x.kind != keep {
		return "it is on its way at the peak", 0
	}
	cost := d.SwapAt(x, at).Cost
	instead := fmt.Sprintf("a swap would cost %v", cost.Round(time.Microsecond))
	if again, ok := d.RecomputeAt(x); ok && again.Cost < cost {
		cost = again.Cost
		instead = fmt.Sprintf("making it again would cost %v", cost.Round(time.Microsecond))
	}
	bytes := d.g.Storages[x.storage].Bytes
	out, fetch := d.out.Time(bytes), d.fetchTime(x)
	_, leaves := d.outs.earliest(d.end(x.made), d.start(at), out)
	_, comes := d.ins.latestStart(d.end(at), d.start(x.to), fetch)
	_, fits := d.fit(x, at, false)
	switch {
	case fits && d.bytes[x.storage] < d.small:
		return "it is too small to matter", cost
	case !d.MaySwap(x) && d.underRate():
		return "there is no host memory for it; " + instead, cost
	case !d.MaySwap(x):
		return "as many storages are swapped as the max swap rate allows; " + instead, cost
	case fits:
		return "the peak is as low as is wanted", cost
	case !leaves && !d.clean(x):
		return "no link time is free to copy it out before the peak; " + instead, cost
	case !comes:
		return "no link time is free to fetch it between the peak and its next use; " + instead, cost
	}
	return "the pause is too short for both copies; " + instead, cost
}
