package capuchin

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/scheduler/rivals/each"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/rivals/replay"
)

// Plan is Capuchin. Where reports follow, the first plan is that of passive mode, the next one is made from the report
// of it, and those after that have in-triggers that were late earlier. Without reports, or for a job that had none yet,
// or where a passive plan does not pack into the budget, the iteration that is observed is the predicted one.
func Plan(s *draft.Session) (scheduler.Result, error) {
	r := &s.Request
	if _, err := r.CheckFirstWorkingSets(); err != nil {
		return scheduler.Result{}, err
	}
	seen := make([]*observation, len(r.Jobs))
	for i := range r.Jobs {
		seen[i] = observationOf(s, i)
	}
	if result, ok, err := feedBack(s, seen); ok || err != nil {
		return result, err
	}
	first := r.Reports
	for _, o := range seen {
		first = first && o == nil
	}
	if first {
		result, err := LRU(s)
		if _, over := errors.AsType[*scheduler.OverBudgetError](err); !over {
			result.Again = err == nil && swaps(r, &result)
			return result, err
		}
	}
	result, err := each.Plan(s, func(i int, part each.Part) (*plan.Plan, error) {
		return guidedWithin(s, i, part.Capacity, seen[i].latencies(&r.Jobs[i]), false)
	})
	if !scheduler.OptionsOf[Options](r).NoRecompute {
		other, otherErr := each.Plan(s, func(i int, part each.Part) (*plan.Plan, error) {
			return guidedWithin(s, i, part.Capacity, seen[i].latencies(&r.Jobs[i]), true)
		})
		if otherErr == nil && (err != nil || predicted(s, &other) < predicted(s, &result)) {
			result, err = other, nil
		}
	}
	if passive, passiveErr := LRU(s); passiveErr == nil && (err != nil ||
		predicted(s, &passive) < predicted(s, &result)) {
		result, err = passive, nil
	}
	if err == nil {
		result.Again = swaps(r, &result) && !follows(seen, &result)
	}
	return result, err
}

// follows reports whether the jobs follow these very plans.
func follows(seen []*observation, result *scheduler.Result) bool {
	for i, o := range seen {
		if p := result.Jobs[i].Plan; o == nil || !slices.Equal(o.Plan.Steps, p.Steps) ||
			!slices.Equal(o.Plan.Moves, p.Moves) {
			return false
		}
	}
	return true
}

// swaps reports whether a plan has anything leave the device that is used again.
func swaps(r *scheduler.Request, result *scheduler.Result) bool {
	for i := range result.Jobs {
		p := result.Jobs[i].Plan
		if p.Swapped(r.Jobs[i].Graph) > 0 || len(p.Steps) > len(r.Jobs[i].Graph.Ops) {
			return true
		}
	}
	return false
}

// predicted sums up what iterations of the jobs are predicted to take, over what their ops take, in parts of a million.
func predicted(s *draft.Session, result *scheduler.Result) (sum int64) {
	for i := range result.Jobs {
		j := &result.Jobs[i]
		s.Count(16 * len(j.Plan.Steps))
		d := program.Durations{Steps: j.Plan.Made}
		d.Out, d.In = s.Links(i)
		c := compile.Compile(s.Request.Jobs[i].Graph, j.Plan, j.Layout, compile.Options{Tick: s.Tick})
		var ops time.Duration
		for _, l := range s.Request.Jobs[i].Latency {
			ops += l
		}
		sum += int64(program.Time(c, d).Iteration * 1_000_000 / max(1, ops))
	}
	return sum
}

// guidedWithin is guided, or a refusal where a single op needs more.
func guidedWithin(s *draft.Session, i int, capacity graph.Bytes, latency []time.Duration, recompute bool) (*plan.Plan,
	error) {
	r := &s.Request
	if w := scheduler.FirstWorkingSetOf(r.Jobs[i], r.Align); w.Bytes > capacity {
		return nil, &scheduler.OverBudgetError{Need: w.Bytes, Budget: capacity,
			Reason: fmt.Sprintf("%s of job %s works on it", r.Jobs[i].Graph.Ops[w.Op].Name, r.Jobs[i].Name)}
	}
	return guided(s, i, capacity, latency, recompute)
}

// guided is the plan of guided execution of a job within a capacity, by what is known of the latencies of its ops. What
// the guide leaves over is evicted passively. Where there is no room for a replay, nothing is recomputed.
func guided(s *draft.Session, i int, capacity graph.Bytes, latency []time.Duration, recompute bool) (*plan.Plan,
	error) {
	f := newFacts(s, i, latency)
	f.capacity = capacity
	o := observe(f)
	o.hybrid(recompute)
	p, err := newMachine(f, o.guide).run()
	if stuck, ok := errors.AsType[stuckError](err); ok {
		if !recompute {
			panic(fmt.Sprintf("capuchin: job %s: %v", f.job.Name, stuck))
		}
		return guided(s, i, capacity, latency, false)
	}
	return p, err
}

// passivePlan is the plan of passive mode of a job within a capacity.
func passivePlan(s *draft.Session, i int, capacity graph.Bytes) (*plan.Plan, error) {
	j := &s.Request.Jobs[i]
	return replay.Plan(j, s.Request.Policy, capacity, s.Request.Align, newLRU(s, len(j.Graph.Storages)))
}
