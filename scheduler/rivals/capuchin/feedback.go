package capuchin

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/peak"
	"tensile/plan"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// observation is the report of an iteration of a job with a plan of this policy.
type observation struct{ *scheduler.Report }

// observationOf returns the observation of a job; nil: there is none, or it is of another graph.
func observationOf(s *draft.Session, i int) *observation {
	j := &s.Request.Jobs[i]
	if j.Last == nil || len(j.Last.Steps) != len(j.Last.Plan.Steps) ||
		proof.ValidateBy(j.Graph, j.Last.Plan, s.Tick) != nil {
		return nil
	}
	return &observation{j.Last}
}

// latencies are what the ops of a job took, or what is predicted.
func (o *observation) latencies(j *scheduler.Job) []time.Duration {
	latency := make([]time.Duration, len(j.Graph.Ops))
	if o == nil {
		for op := range latency {
			latency[op] = j.Variant(graph.OpID(op), 0).Latency
		}
		return latency
	}
	for slot, step := range o.Plan.Steps {
		latency[step.Op] = o.Steps[slot]
	}
	return latency
}

// isPassive reports whether a plan is one of passive mode: nothing is made again, what is copied in is used by the next
// step, and what is copied out leaves at once.
func (o *observation) isPassive(g *graph.Graph) bool {
	p := o.Plan
	if len(p.Steps) != len(g.Ops) {
		return false
	}
	for n, m := range p.Moves {
		switch {
		case m.Kind == plan.In && !o.onDemand(g, &m):
			return false
		case m.Kind == plan.Out && g.Storages[m.Storage].Role != graph.Output &&
			!slices.ContainsFunc(p.Moves[n:], func(d plan.Move) bool {
				return d.Kind == plan.Drop && d.Storage == m.Storage && d.After == m.After
			}):
			return false
		}
	}
	return true
}

// feedBack has the plans that the jobs follow again, with the in-triggers earlier whose copies came late. It does not
// apply where jobs are still in passive mode, all of them at a time, or where the plans no longer fit.
func feedBack(s *draft.Session, seen []*observation) (result scheduler.Result, ok bool, err error) {
	r := &s.Request
	kept, changed, plans := make([]*plan.Plan, len(seen)), false, make([]*plan.Plan, len(seen))
	guided := false
	for i, o := range seen {
		if o == nil {
			return result, false, nil
		}
		guided = guided || !o.isPassive(r.Jobs[i].Graph)
		p := *o.Plan
		p.Job, p.Epoch, p.Policy = r.Jobs[i].Name, r.Jobs[i].Epoch, r.Policy
		kept[i] = &p
		_, in := s.Links(i)
		var moved bool
		plans[i], moved = o.earlier(s, r.Jobs[i].Graph, &p, func(b graph.Bytes) time.Duration { return in.Time(b) })
		changed = changed || moved
	}
	if !guided {
		return result, false, nil
	}
	for _, try := range [][]*plan.Plan{plans, kept} {
		if result, err = s.Place(try); err != nil {
			return result, false, err
		}
		if result.Rounds = s.Rounds(); r.Budget == 0 || result.Least <= r.Budget {
			result.Again = changed
			return result, true, nil
		}
		changed = false
	}
	return scheduler.Result{}, false, nil
}

// late is the part of its swap time by which an in-trigger is moved ahead when the copy came late.
const late = 20

// earlier returns the plan with the in-triggers moved ahead whose storages were still coming in at their back-accesses,
// by 5 % of the swap time, to an access: not ahead of the copy in before, nor to where the plan's peak would rise. A
// copy in on demand has no in-trigger. One that began when the copy before it ended is late because that one is: the
// first of such a queue is moved in its place.
func (o *observation) earlier(s *draft.Session, g *graph.Graph, p *plan.Plan, takes func(graph.Bytes) time.Duration) (
	*plan.Plan, bool) {
	ends := make([]time.Duration, len(o.Steps)+1) // when the step before each slot ends
	for slot, took := range o.Steps {
		ends[slot+1] = ends[slot] + took
	}
	foot := peak.Of(g, p)
	moved := *p
	moved.Moves = slices.Clone(p.Moves)
	dropped, delays := slices.Repeat([]int{-1}, len(g.Storages)), o.delays(g, takes)
	before, changed := -1, false // the copy in before
	for n := range moved.Moves {
		s.Count(4)
		m := &moved.Moves[n]
		if m.Kind == plan.Drop {
			dropped[m.Storage] = m.After
		}
		if m.Kind != plan.In {
			continue
		}
		if at, by := m.After, delays[*m]; by > 0 {
			to := at
			for to > max(before, dropped[m.Storage], 0) && ends[to+1] > ends[at+1]-by &&
				foot.Slots[to]+g.Storages[m.Storage].Bytes <= foot.Peak {
				foot.Slots[to] += g.Storages[m.Storage].Bytes
				to--
			}
			changed = changed || to < at
			m.After = to
		}
		before = m.After
	}
	plan.Sort(moved.Moves)
	return &moved, changed
}

// delays are by how much in-triggers are to be earlier, per copy in: those at the head of a queue with a late copy.
func (o *observation) delays(g *graph.Graph, takes func(graph.Bytes) time.Duration) map[plan.Move]time.Duration {
	all := make(map[plan.Move]time.Duration)
	var head plan.Move
	var before time.Duration // the end of the copy in before
	for _, c := range o.Copies {
		if c.Kind != plan.In {
			continue
		}
		this := plan.Move{Kind: plan.In, Storage: c.Storage, After: c.After}
		if head.Kind == "" || c.Start > before {
			head = this
		}
		before = c.End
		by := takes(g.Storages[c.Storage].Bytes) / late
		if c.Stall > by && !o.onDemand(g, &this) && !o.onDemand(g, &head) {
			all[head] = max(all[head], by)
		}
	}
	return all
}

// onDemand reports whether a copy in has no in-trigger: the next step uses it.
func (o *observation) onDemand(g *graph.Graph, m *plan.Move) bool {
	next := m.After + 1
	return next < len(o.Plan.Steps) && slices.Contains(g.Touches(o.Plan.Steps[next].Op), m.Storage)
}
