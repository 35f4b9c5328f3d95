package draft

import (
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/peak"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/pool"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler"
)

// Finish writes and packs drafts, with swaps relaxed as far as what they need stays at most at a limit, and no slot of
// a job comes above its part of that; 0: they stay as they are.
func (s *Session) Finish(jobs []*Draft, limit graph.Bytes) (scheduler.Result, error) {
	switch {
	case limit > 0 && s.Request.Together:
		relaxTogether(jobs, limit)
	case limit > 0:
		relax(jobs, limit)
	}
	plans := make([]*plan.Plan, len(jobs))
	for i, d := range jobs {
		plans[i] = d.Plan(s.Request.Policy)
	}
	result, err := s.Place(plans)
	if err != nil {
		return scheduler.Result{}, err
	}
	result.Rounds = s.rounds
	for i, d := range jobs {
		result.Jobs[i].Decisions = d.decisions()
		if s.Request.Explain {
			result.Jobs[i].Decisions = append(result.Jobs[i].Decisions, d.keptDecisions()...)
		}
	}
	return result, nil
}

// relax relaxes the jobs' swaps up to parts of the limit: in proportion to their peaks if it is below the sum of these;
// what it leaves above the peaks goes to each job by its weight.
func relax(jobs []*Draft, limit graph.Bytes) {
	var weights graph.Bytes
	for _, d := range jobs {
		weights += graph.Bytes(d.job.Worth())
	}
	sum := SumOfPeaks(jobs)
	for _, d := range jobs {
		_, peak := d.Peak()
		if limit < sum {
			d.relax(Portion(peak, limit, sum))
		} else {
			d.relax(peak + (limit-sum)*graph.Bytes(d.job.Worth())/weights)
		}
	}
}

// relaxTogether relaxes the swaps of jobs that share memory, each up to what the others' bases leave of the limit.
func relaxTogether(jobs []*Draft, limit graph.Bytes) {
	for _, d := range jobs {
		limit -= d.base
	}
	for _, d := range jobs {
		d.relax(d.base + limit)
	}
}

// nearly is the part of its peak by which a packed plan may be higher where no budget asks for less.
const nearly = 128

// Place validates and packs a plan per job and sums them up. Each is packed until it is no higher than its peak and an
// even share of what the budget leaves above all peaks, or, where jobs share memory, than the others' bases allow; if
// that is not enough for all, each as low as it gets. It sets Plan.Graph. The result may be over the budget, and its
// jobs have no Decisions: those are what Finish adds, from drafts. An invalid plan is a mistake of the policy: Place
// panics.
func (s *Session) Place(plans []*plan.Plan) (scheduler.Result, error) {
	s.stage(scheduler.Packing)
	s.rounds++
	p := &placing{Session: s, twins: s.firstEquals(plans), lowered: make(map[int]*program.Placement)}
	for i := range plans {
		p.add(i, plans[i])
	}
	p.share()
	for i := range plans {
		if err := p.pack(i); err != nil {
			return scheduler.Result{}, err
		}
	}
	p.need()
	for i := range plans {
		if err := p.packLower(i); err != nil {
			return scheduler.Result{}, err
		}
		p.need()
	}
	return p.result, nil
}

// placing is the packing of a set of plans.
type placing struct {
	*Session
	result  scheduler.Result
	twins   []int
	enough  []graph.Bytes              // per job: an arena of no more need not be packed lower
	lowered map[int]*program.Placement // by twin
}

// add validates the plan of job i and adds its footprint.
func (p *placing) add(i int, made *plan.Plan) {
	made.Graph = p.digests[i]
	var f peak.Footprint
	if twin := p.twins[i]; twin != i {
		f = p.result.Jobs[twin].Footprint
	} else {
		g := p.Request.Jobs[i].Graph
		p.meter.count(8 * (len(made.Steps) + len(made.Moves)))
		if err := proof.ValidateBy(g, made, p.meter.tick); err != nil {
			panic(fmt.Sprintf("scheduler: %v\n%s", err, made.Text(g)))
		}
		f = peak.OfStays(g, made, plan.StaysBy(g, made, p.meter.tick))
	}
	host := p.host(i, made)
	p.result.Jobs = append(p.result.Jobs, scheduler.Scheduled{Plan: made, Footprint: f, Host: host})
	p.result.SlotPeak, p.result.Host = p.result.SlotPeak+f.Peak, p.result.Host+host
}

// host is what job i has on the host under a plan.
func (p *placing) host(i int, made *plan.Plan) graph.Bytes {
	w := p.wirings[i]
	size := w.home + p.Request.Jobs[i].OnHost
	seen := make([]bool, len(w.spills))
	for _, m := range made.Moves {
		if m.Kind == plan.Out && !seen[m.Storage] {
			seen[m.Storage] = true
			size += w.spills[m.Storage]
		}
	}
	return size
}

// pack packs the plan of job i until it is no higher than its peak and its spare bytes.
func (p *placing) pack(i int) error {
	j := &p.result.Jobs[i]
	enough := min(p.Request.Budget, p.enough[i])
	if p.Request.Budget == 0 && p.Request.Lowest {
		enough = j.Footprint.Peak + j.Footprint.Peak/nearly
	}
	if twin := p.twins[i]; twin != i {
		j.Layout = p.result.Jobs[twin].Layout
	} else if err := p.packUntil(i, enough); err != nil {
		return err
	}
	p.result.Arena += j.Layout.Arena
	return nil
}

// packLower packs the plan of job i as low as it gets, if that may help.
func (p *placing) packLower(i int) error {
	j := &p.result.Jobs[i]
	if p.result.Least <= p.Request.Budget || p.Request.Budget == 0 || j.Layout.Arena > p.enough[i] ||
		j.Layout.Arena == j.Layout.Load || p.Request.Together && !p.tallest(i) {
		return nil
	}
	p.result.Arena -= j.Layout.Arena
	if lower := p.lowered[p.twins[i]]; lower != nil {
		j.Layout = lower
	} else if err := p.packUntil(i, 0); err != nil {
		return err
	}
	p.lowered[p.twins[i]] = j.Layout
	p.result.Arena += j.Layout.Arena
	return nil
}

// packUntil packs the plan of job i until it is no higher than enough.
func (p *placing) packUntil(i int, enough graph.Bytes) (err error) {
	j := &p.result.Jobs[i]
	o := pool.Options{Method: p.Request.Options.Pack, Enough: int64(enough), Stop: func() bool {
		if p.meter.stop != nil && p.meter.stop(p.meter.steps) {
			panic(workStopped{})
		}
		return false
	}}
	place := compile.PlaceBy
	if p.Request.Together {
		place = compile.PlaceAbove
	}
	j.Layout, err = place(p.Request.Jobs[i].Graph, j.Plan, p.Request.Align, o)
	if err == nil {
		p.meter.count(j.Layout.Work)
	}
	return err
}

// firstEquals returns for each plan the first one that moves and executes the same of the same graph, which may be
// itself: both have one footprint and one layout. Copies of a model most often share a few plans.
func (s *Session) firstEquals(plans []*plan.Plan) []int {
	twins := make([]int, len(plans))
	var different []int
	for i, p := range plans {
		k := slices.IndexFunc(different, func(j int) bool {
			q := plans[j]
			s.meter.count(4)
			return s.Request.Jobs[i].Graph == s.Request.Jobs[j].Graph && slices.Equal(p.Moves, q.Moves) &&
				slices.Equal(p.Steps, q.Steps) && slices.Equal(p.Entry, q.Entry)
		})
		if twins[i] = i; k >= 0 {
			twins[i] = different[k]
		} else {
			different = append(different, i)
		}
	}
	return twins
}
