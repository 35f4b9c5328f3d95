package draft

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
)

// pace is what it takes to keep updates of the parts of a large parameter apart. An update is much faster than the link
// brings what it keeps of the gradients before and takes it away, so that a parameter of several hundred MB that is
// updated in one go has all of that on the device at once, or waits for the link. Its parts can be updated at any time
// from its last use on, since making their gradients again later needs little: what is between two of them gives the
// link the time for one.
type pace struct {
	latency []time.Duration // per op
	out, in cost.Link
}

// spreadAnchors moves the anchors of such updates to later ops, of those before the op first: each comes when the link
// may have copied the state of the one before, or, if there is not as much time before the last op, in even shares of
// what there is. Parts whose gradients had to be kept for that stay where they are.
func (p *pace) spreadAnchors(d *uses, first graph.OpID, anchors []graph.OpID) {
	var parts []graph.OpID // updates that may wait
	var needed time.Duration
	for i := range anchors {
		if update := first + graph.OpID(i); d.overwrittenPart(update) != nil && p.mayWait(d, update, first-1) {
			parts = append(parts, update)
			needed += p.copies(d.g, update)
		}
	}
	if len(parts) == 0 {
		return
	}
	anchor := func(update graph.OpID) *graph.OpID { return &anchors[update-first] }
	slices.SortStableFunc(parts, func(a, b graph.OpID) int { return cmp.Compare(*anchor(a), *anchor(b)) })
	at := *anchor(parts[0])
	var left time.Duration // after at
	for op := at + 1; op < first; op++ {
		left += p.latency[op]
	}
	left = min(left, needed)    // of what is needed
	var now, next time.Duration // since at
	for _, update := range parts {
		for at+1 < first && (at < *anchor(update) || now < next) {
			at++
			now += p.latency[at]
		}
		*anchor(update) = at
		next = max(next, now)
		if needed > 0 {
			next += Portion(p.copies(d.g, update), left, needed)
		}
	}
}

// mayWait reports whether an update can come after a later op at little cost: all that makes its gradient then comes
// there too.
func (p *pace) mayWait(d *uses, update, after graph.OpID) bool {
	gradients := d.gradients(update)
	return len(gradients) == 1 && gradients[0] < after && d.movable(gradients[0], after, update)
}

// copies is how long the slower direction of the link takes for what an update keeps.
func (p *pace) copies(g *graph.Graph, update graph.OpID) time.Duration {
	var state graph.Bytes
	for _, t := range g.Ops[update].Inputs {
		if s := &g.Storages[g.Tensors[t].Storage]; s.Role == graph.State {
			state += s.Bytes
		}
	}
	if state == 0 {
		return 0
	}
	return max(p.out.Time(state), p.in.Time(state))
}
