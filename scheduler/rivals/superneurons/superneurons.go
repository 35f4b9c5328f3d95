package superneurons

import (
	"errors"
	"fmt"
	"time"

	"tensile/scheduler/rivals/each"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// Options switch parts of the method off, as the paper's figures do. The zero value is the whole method.
type Options struct {
	NoOffload   bool     // leave copies to the host out
	NoCache     bool     // offload and prefetch what convolutions make whether it fits or not, and nothing else (3.3.1)
	NoRecompute bool     // make nothing again
	NoWorkspace bool     // each op takes the variant with the least scratch
	Always      bool     // make again even where everything fits with liveness alone
	Strategy    Strategy // of recomputation
}

// Strategy says how segments are made again.
type Strategy string

// The strategies (3.4).
const (
	CostAware     Strategy = ""       // by segment: speed-centric where that needs no more than l_peak
	SpeedCentric  Strategy = "speed"  // once per segment
	MemoryCentric Strategy = "memory" // for each backward layer
)

// Plan plans each job by itself, within its part of the budget. Without a budget that is what liveness leaves, or,
// where the request asks for it, as little as the method gets by with.
func Plan(s *draft.Session) (scheduler.Result, error) {
	r, o := &s.Request, scheduler.OptionsOf[Options](&s.Request)
	return each.Plan(s, func(i int, part each.Part) (*plan.Plan, error) {
		out, in := s.Links(i)
		m := machine{job: &r.Jobs[i], out: out, in: in, align: r.Align, count: s.Count}
		capacity := part.Capacity
		if r.Budget == 0 && r.Lowest {
			capacity = 0
		}
		study, err := m.study(o, capacity)
		if errors.Is(err, scheduler.ErrNoPlan) {
			study, err = m.study(o, 0) // without a cache more room may take more: what leaves when goes by the clock
			if err == nil && study.Capacity > capacity && r.Budget > 0 {
				err = &scheduler.OverBudgetError{Need: r.Budget + study.Capacity - capacity, Budget: r.Budget,
					Reason: fmt.Sprintf("job %s needs %v of it by policy %s; policy tensile goes lower", m.job.Name,
						study.Capacity, r.Policy)}
			}
		}
		if err != nil {
			return nil, err
		}
		study.Plan.Policy = r.Policy
		return study.Plan, nil
	})
}

// Study is what the method does with one job, before packing.
type Study struct {
	Plan     *plan.Plan // without a digest
	Capacity graph.Bytes
	Extra    int           // layers that are executed again, each time counted (table 1)
	Time     time.Duration // of an iteration, by the method's own clock
	Segments []Segment
}

// Segment is a row of cheap layers that is made again.
type Segment struct {
	First  string // its first op
	Layers int
	Memory bool // memory-centric
}

// Of applies the method to one job that has the link for itself, with so many bytes; 0: as few as it gets by with. The
// error is a *scheduler.OverBudgetError if it needs more.
func Of(j *scheduler.Job, out, in cost.Link, align, capacity graph.Bytes, o Options) (Study, error) {
	m := machine{job: j, out: out, in: in, align: align, count: func(int) {}}
	return m.study(o, capacity)
}

// study plans with a capacity, or with the least that it gets by with if that is 0.
func (m machine) study(o Options, capacity graph.Bytes) (Study, error) {
	n := newNetwork(m.job.Graph, o.Strategy)
	if o.NoRecompute {
		return m.runWithin(newMemory(n, m, o, n.firstSteps()), capacity)
	}
	live, enough := Study{}, false
	if !o.Always {
		alone := o
		alone.NoOffload = true
		var err error
		live, err = m.runWithin(newMemory(n, m, alone, n.firstSteps()), capacity)
		if enough = err == nil; enough && capacity > 0 {
			return live, nil
		}
	}
	steps, extra := n.steps(m.count)
	study, err := m.runWithin(newMemory(n, m, o, steps), capacity)
	if err == nil && enough && live.Capacity <= study.Capacity {
		return live, nil
	}
	study.Extra = extra
	for _, c := range n.chains {
		study.Segments = append(study.Segments, Segment{c.first, c.layers, c.memory})
	}
	return study, err
}

// runWithin goes through the steps with a capacity, or, if that is 0, with as little as lets it through.
func (m machine) runWithin(r *memory, capacity graph.Bytes) (Study, error) {
	r.capacity, r.grows = capacity, capacity == 0
	for {
		before := r.capacity
		if err := r.walk(); err != nil {
			return Study{}, err
		}
		if r.capacity == before {
			break
		}
	}
	if !r.options.NoWorkspace {
		r.choose()
	}
	// What is on the device does not depend on the clock where there is a cache: the second walk differs in the times.
	if !r.options.NoCache && r.overlap() {
		if err := r.walk(); err != nil {
			return Study{}, err
		}
	}
	return Study{Plan: r.plan(""), Capacity: r.capacity, Time: r.now}, nil
}
