package checkpoint

import (
	"fmt"
	"math/big"

	"tensile/graph"
	"tensile/peak"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/rivals/replay"
)

// SqrtN is the policy checkpoint: torch.utils.checkpoint.checkpoint_sequential(layers, segments, input) with
// segments = sqrt(n) for n layers, rounded down. All segments but the last have n // segments layers, the last takes
// the remainder. Where the end of a segment's last layer is no place for a cut, the segment goes on to the next that
// is.
func SqrtN(s *draft.Session) (scheduler.Result, error) {
	return planAll(s, func(j *scheduler.Job, n *network) *plan.Plan {
		return write(s, j, n, sqrtN(n))
	})
}

// sqrtN returns the cuts of policy checkpoint.
func sqrtN(n *network) []int {
	if n.layers == 0 {
		return nil
	}
	count := int(isqrt(int64(n.layers), 1))
	size := n.layers / count
	var cuts []int
	next := size // layers in front of the next cut
	for _, place := range n.cuts() {
		if ended := n.ended[place]; ended >= next && next < count*size {
			cuts, next = append(cuts, place), (ended/size+1)*size
		}
	}
	return cuts
}

// Sublinear is the policy of that name: the search of dmlc/mxnet-memonger, search_plan, over the bytes of a segment.
func Sublinear(s *draft.Session) (scheduler.Result, error) {
	return planAll(s, func(j *scheduler.Job, n *network) *plan.Plan { return search(s, j, n) })
}

// search tries segments of more than so many bytes: of any, then twice of the square root of half the product of what
// the plan before keeps and its largest segment; then of six sizes at even distances between the smallest largest
// segment seen and sqrt(2) times the next such root. It returns the plan with the least peak, the earliest of several.
// memonger counts in MB and measures what MXNet allocates; here are bytes and the peak of the slots.
func search(s *draft.Session, j *scheduler.Job, n *network) *plan.Plan {
	const trials = 6
	var best *plan.Plan
	var lowest, smallest graph.Bytes
	try := func(threshold graph.Bytes) (guess graph.Bytes) {
		cuts, saved, largest := byBytes(n, threshold)
		p := write(s, j, n, cuts)
		if f := peak.Of(j.Graph, p); best == nil || f.Peak < lowest {
			best, lowest = p, f.Peak
		}
		if smallest == 0 || largest < smallest {
			smallest = largest
		}
		return graph.Bytes(isqrt(int64(saved), int64(largest/2)))
	}
	threshold := graph.Bytes(0)
	for range 3 {
		threshold = try(threshold)
	}
	step := (graph.Bytes(isqrt(int64(threshold), 2*int64(threshold))) - smallest) / trials
	if step > 0 {
		for k := range graph.Bytes(trials) {
			try(smallest + (k+1)*step)
		}
	}
	return best
}

// byBytes is make_mirror_plan of memonger: it walks along the forward pass, adds up the bytes that are made, and cuts
// at the first place after more than the threshold of them. It also returns how many bytes cross the cuts, and the
// largest sum.
func byBytes(n *network, threshold graph.Bytes) (cuts []int, saved, largest graph.Bytes) {
	var local graph.Bytes
	first, next := 0, 0 // the first layer of the segment, and the next to be added
	for _, place := range n.cuts() {
		for ; next <= place; next++ {
			local += n.made(next, func(life) bool { return true })
		}
		if local <= threshold {
			continue
		}
		for ; first <= place; first++ {
			saved += n.made(first, func(x life) bool { return x.used-1 > place })
		}
		largest, local = max(largest, local), 0
		cuts = append(cuts, place)
	}
	return cuts, saved, largest
}

// made is how many bytes an op of the forward pass makes, of storages with such lives.
func (n *network) made(place int, such func(life) bool) (sum graph.Bytes) {
	op := n.forward[place]
	for i, w := range n.g.Writes(op) {
		if n.g.Fresh(op, i) && such(n.lives[w.Storage]) {
			sum += n.bytes[w.Storage]
		}
	}
	return sum
}

// write returns the plan with these cuts.
func write(s *draft.Session, j *scheduler.Job, n *network, cuts []int) *plan.Plan {
	return replay.Steps(j, s.Request.Policy, n.cut(cuts).steps(s.Count))
}

// planAll plans each job for itself.
func planAll(s *draft.Session, method func(*scheduler.Job, *network) *plan.Plan) (scheduler.Result, error) {
	r := &s.Request
	s.Stage(scheduler.Planning)
	plans := make([]*plan.Plan, len(r.Jobs))
	planned := s.Search(func() {
		for i := range r.Jobs {
			s.Count(8 * len(r.Jobs[i].Graph.Ops))
			plans[i] = method(&r.Jobs[i], newNetwork(&r.Jobs[i], r.Align))
		}
	})
	if !planned {
		return scheduler.Result{}, &scheduler.WorkLimitError{Work: s.Work()}
	}
	result, err := s.Place(plans)
	if err == nil && r.Budget > 0 && result.Least > r.Budget {
		return scheduler.Result{}, &scheduler.OverBudgetError{Need: result.Least, Budget: r.Budget,
			Reason: fmt.Sprintf("policy %s knows no budget; policy tensile does", r.Policy)}
	}
	return result, err
}

// isqrt returns the square root of a product, rounded down.
func isqrt(a, b int64) int64 {
	var x big.Int
	return x.Sqrt(x.Mul(big.NewInt(a), big.NewInt(b))).Int64()
}
