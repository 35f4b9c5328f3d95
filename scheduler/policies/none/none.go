package none

import (
	"fmt"

	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// Live frees every storage after its last use and moves nothing else.
func Live(s *draft.Session) (scheduler.Result, error) {
	return planUnchanged(s, func(d *draft.Draft) *plan.Plan { return d.Plan(s.Request.Policy) })
}

// All frees nothing before the iteration ends.
func All(s *draft.Session) (scheduler.Result, error) {
	return planUnchanged(s, func(d *draft.Draft) *plan.Plan {
		p := d.Plan(s.Request.Policy)
		for i := range p.Moves {
			if p.Moves[i].Kind == plan.Drop {
				p.Moves[i].After = len(p.Steps) - 1
			}
		}
		plan.Sort(p.Moves)
		return p
	})
}

func planUnchanged(s *draft.Session, write func(*draft.Draft) *plan.Plan) (scheduler.Result, error) {
	r := &s.Request
	var plans []*plan.Plan
	s.Stage(scheduler.Planning)
	for i := range r.Jobs {
		plans = append(plans, write(s.Draft(i, draft.FirstSteps(draft.GraphOrder(r.Jobs[i].Graph)), draft.Style{})))
	}
	result, err := s.Place(plans)
	if err == nil && r.Budget > 0 && result.Least > r.Budget {
		err = &scheduler.OverBudgetError{Need: result.Least, Budget: r.Budget,
			Reason: fmt.Sprintf("policy %s moves nothing; policy tensile does", r.Policy)}
	}
	return result, err
}
