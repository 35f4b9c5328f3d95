package planner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tensile/graph"
	"tensile/plan/program"
	"tensile/scheduler"
)

// gates plans for jobs that share memory by gates, for the least expected time within the budget. Plans that lose less
// time need more memory, so that jobs wait longer for each other: where jobs leave the device idle, and waiting costs
// them more than a hundredth, plans for smaller budgets are tried too. These are steps of a scale that is the same for
// all budgets, so that a larger budget has the plans of a smaller one to choose from.
func (d Device) gates(ctx context.Context, r scheduler.Request) (*Planned, error) {
	best, capacity, err := d.inPages(ctx, r)
	if err != nil {
		return nil, err
	}
	if best.Expected, err = d.Expect(ctx, best, &r, capacity); err != nil {
		return nil, err
	}
	all := best.Arena + graph.Bytes(len(r.Jobs))*d.page()
	if r.Budget == 0 || len(r.Jobs) == 1 || all <= r.Budget { // nobody waits
		return best, nil
	}
	roomy := *best
	if roomy.Expected, err = d.Expect(ctx, best, &r, all); err != nil {
		return nil, err
	}
	work := best.Work
	for lower := range d.below(r.Budget) {
		if waits := best.WeightedTime(&r) - roomy.WeightedTime(&r); waits <= best.WeightedTime(&r)/100 ||
			work > r.Options.Steps()/tries {
			break
		}
		smaller := r
		smaller.Budget = lower
		p, _, err := d.inPages(ctx, smaller)
		if errors.Is(err, scheduler.ErrNoPlan) {
			continue
		} else if err != nil {
			return nil, err
		}
		work += p.Work
		if p.Expected, err = d.Expect(ctx, p, &r, r.Budget); err != nil {
			return nil, err
		}
		p.PlanTime, p.PackTime, p.Proof = p.PlanTime+best.PlanTime, p.PackTime+best.PackTime, p.Proof+best.Proof
		if p.WeightedTime(&r) < best.WeightedTime(&r) {
			best = p
		} else {
			best.PlanTime, best.PackTime, best.Proof = p.PlanTime, p.PackTime, p.Proof
		}
	}
	return best, nil
}

// tries is the part of the work of planning after which no other budget is tried.
const tries = 30

// below yields the steps of a scale of budgets that lie below one, down to half of it: four of them double one.
func (d Device) below(budget graph.Bytes) func(func(graph.Bytes) bool) {
	const each = 4
	return func(yield func(graph.Bytes) bool) {
		page := d.page()
		top := int(math.Ceil(each * math.Log2(float64(budget)/float64(page))))
		for k := top; k >= max(0, top-each-1); k-- {
			step := graph.Bytes(math.Exp2(float64(k)/each)) * page
			if step < budget && step >= budget/2 && !yield(step) {
				return
			}
		}
	}
}

// page is the unit in which jobs share memory.
func (d Device) page() graph.Bytes { return max(1, d.Page, d.Align) }

// inPages plans until what the jobs need by their programs fits the budget, and returns that, or what they need where
// there is none. Policies reckon with whole pages, too, but pack arenas last: one that ends in another page needs
// another attempt with so much less.
func (d Device) inPages(ctx context.Context, r scheduler.Request) (p *Planned, capacity graph.Bytes, err error) {
	const attempts = 3
	smaller := r
	for range attempts {
		if p, err = Plan(ctx, smaller); err != nil {
			return nil, 0, err
		}
		need := d.page() * graph.Bytes(leastPages(d.coursesOf(p, &r)))
		if capacity = r.Budget; capacity == 0 {
			capacity = max(p.Least, need)
		}
		if need <= capacity {
			return p, capacity, nil
		}
		smaller.Budget = max(1, smaller.Budget-(need-capacity))
	}
	return nil, 0, &scheduler.OverBudgetError{Need: r.Budget + d.page(), Budget: r.Budget,
		Reason: fmt.Sprintf("in whole pages of %s", d.page())}
}

// coursesOf are those of a request's planned jobs. Jobs with equal programs share one.
func (d Device) coursesOf(p *Planned, r *scheduler.Request) []Course {
	all := make([]Course, len(p.Jobs))
	for i := range p.Jobs {
		j := &p.Jobs[i]
		same := func(o scheduler.Scheduled) bool { return j.SameProgram(&o) && j.Out == o.Out && j.In == o.In }
		if k := slices.IndexFunc(p.Jobs[:i], same); k >= 0 {
			all[i] = all[k]
		} else {
			all[i] = d.Course(p.Programs[i].Program(),
				program.Durations{Steps: j.Plan.Made, Out: j.Out, In: j.In})
		}
		all[i].Alone, all[i].Weight = j.Unplanned, r.Jobs[i].Worth()
	}
	return all
}

// leastPages is how many pages jobs need together: their bases and the largest rest.
func leastPages(courses []Course) (pages int) {
	largest := 0
	for i := range courses {
		base := courses[i].Base.Count()
		pages, largest = pages+base, max(largest, courses[i].Peak-base)
	}
	return pages + largest
}
