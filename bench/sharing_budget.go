package bench

import (
	"errors"
	"slices"
	"time"

	"tensile/executor"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models/task"
	"tensile/observe/report"
)

// errLost says that a job did an iteration twice, left one out, or went Home.
var errLost = errors.New("an iteration was lost at a change of the budget")

// budgetPhase is what was measured of jobs under one of the budgets that follow each other.
type budgetPhase struct {
	percent    int
	gap        float64 // ms an iteration waits for memory, on average
	throughput float64
	iterations int
}

// zicoBudgets has the budget of two NASNet fall from 70 % of the memory to 50 %, rise again, and then rise to all. The
// batch is the largest with which an arena takes at most 45 %.
func zicoBudgets(b *sharingBench) (*sharingResult, error) {
	n, err := b.within(zicoSmall, trained{model: "nasnet-mobile", optimizer: autodiff.SGD{}, copies: 2},
		percent(zicoSmall, 45))
	if err != nil {
		return nil, err
	}
	r := &sharingResult{}
	all := make(map[string][]budgetPhase)
	ways := []string{byZico, byGates}
	for _, way := range ways {
		s, err := b.scene("zico-10", zicoSmall, percent(zicoSmall, 100), n)
		if err != nil {
			return nil, err
		}
		phases, curve, err := s.budgets(way, 70, 50, 70, 100)
		if err != nil {
			return nil, err
		}
		all[way] = phases
		r.curves = append(r.curves, *curve)
		for _, p := range phases {
			s.capacity = s.paged(percent(zicoSmall, p.percent))
			row := SharingRow{Figure: s.figure, Device: zicoSmall, Batch: s.batches(),
				Demand: float64(s.arenas) / float64(s.capacity), Measure: "ms that an iteration waits", Value: p.gap,
				ShareRow: ShareRow{Jobs: s.set.Jobs[0], Sharing: way, Capacity: s.capacity, Least: s.least, Gate: p.gap,
					Alternating: p.throughput, EOR: 1 / p.throughput,
					MSRAll: 1 - float64(s.capacity)/float64(s.arenas)}}
			r.rows = append(r.rows, row)
		}
	}
	for k, way := range ways {
		for i := range all[way] {
			row := &r.rows[k*len(all[way])+i]
			row.Gates, row.Paper = pointer(all[byGates][i].gap), pointer([]float64{0, 140, 0, 0}[i])
		}
	}
	return r, nil
}

// budgets trains the jobs in a way under budgets that follow each other, in percent of the device's memory, each for as
// many iterations of every job as are measured. The first two after a change are left out.
func (s *scene) budgets(way string, percents ...int) (phases []budgetPhase, curve *SharingCurve, err error) {
	const warm = 2
	each := s.options.Iterations + warm
	d := s.device()
	reports := make([][]*executor.Report, len(s.tasks))
	h := executor.NewHost(d, func(e executor.Event) {
		switch {
		case e.Report != nil:
			i := slices.IndexFunc(s.tasks, func(t task.Task) bool { return t.Name == e.Job })
			reports[i] = append(reports[i], e.Report)
		case e.Ended != nil && e.Ended.Err != nil:
			err = e.Ended.Err
		case e.Refused != nil:
			err = e.Refused
		}
	})
	sharing := s.sharing(way)
	h.Share(sharing)
	for i, t := range s.tasks {
		h.Submit(executor.SpecOf(t, 1<<30, func(int, float32) {}), s.programs[i])
	}
	run := &sharedRun{holds: sharing.Lease.(*recorder).holds}
	var first time.Duration
	for number, percent := range percents {
		capacity := s.paged(s.options.Facts.Memory * graph.Bytes(percent) / 100)
		h.Capacity(capacity, int64(number))
		from := make([]int, len(reports))
		for i, r := range reports {
			from[i] = len(r)
		}
		done := func() bool {
			for i, r := range reports {
				if len(r)-from[i] < each {
					return false
				}
			}
			return true
		}
		for err == nil && !done() {
			_, err = h.Poll(s.ctx)
		}
		if err != nil {
			h.Close()
			return nil, nil, err
		}
		p := budgetPhase{percent: percent}
		var gap time.Duration
		for i, r := range reports {
			r = r[from[i]+warm:]
			for _, one := range r {
				gap += one.Gate
			}
			p.iterations += len(r)
			p.throughput += float64(s.solo[i]) * float64(len(r)-1) / float64(r[len(r)-1].End-r[0].End)
		}
		p.gap = report.Milliseconds(gap) / float64(p.iterations)
		phases = append(phases, p)
		if number == 0 {
			first = reports[0][each-4].End
		}
	}
	lost := 0
	for _, r := range reports {
		for i := range r {
			if r[i].Iteration != i || r[i].Left != r[0].Left {
				lost++
			}
		}
	}
	if lost > 0 {
		err = errLost
	}
	run.first = first
	s.ways[way] = run
	c := s.drawn(way, 1)
	last := reports[0][len(reports[0])-1].End
	c.Name, c.Panel.For = "zico-10", last-first
	c.Panel.Name = way + ": the budget is 70 % of the memory, then 50 %, 70 % and all of it"
	if e := h.Close(); err == nil {
		err = e
	}
	return phases, &c, err
}
