package autoswap

import (
	"fmt"

	"tensile/scheduler/rivals/each"

	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// Plan swaps by AutoSwap, one job at a time. The load limit is the job's part of the budget. Without a budget the load
// is the least that costs no time, or, where the request asks for the lowest, the least that there is.
//
// The paper packs what is left by SmartPool (V). Here the request says how, and search packs by default: SmartPool's
// best fit leaves up to a fifth of a swapped plan empty, for which more would have to be swapped. For the paper's
// combination, give scheduler.Options.Pack "smartpool".
func Plan(s *draft.Session) (scheduler.Result, error) {
	r, o := &s.Request, scheduler.OptionsOf[Options](&s.Request)
	if err := o.check(); err != nil {
		return scheduler.Result{}, err
	}
	return each.Plan(s, func(i int, part each.Part) (*plan.Plan, error) {
		d := s.Draft(i, draft.FirstSteps(s.GraphOrder(i)), draft.Style{})
		it, gaps := OfDraft(d)
		var choice *Choice
		ended := s.Search(func() {
			switch _, least := it.Least(o); {
			case r.Budget == 0 && r.Lowest:
				choice, _ = it.Within(least, o, s.Count)
			case r.Budget == 0:
				choice = it.WithoutOverhead(o, s.Count)
			default:
				choice, _ = it.Within(part.Capacity, o, s.Count)
			}
		})
		switch {
		case !ended && r.Budget > 0:
			return nil, &scheduler.WorkLimitError{Work: s.Work()}
		case !ended:
			choice = &Choice{}
		case choice == nil:
			_, least := it.Least(o)
			return nil, &scheduler.OverBudgetError{Need: r.Budget + least - part.Capacity, Budget: r.Budget,
				Reason: fmt.Sprintf("with all that policy %s swaps, job %s needs %v of it; policy tensile goes lower",
					r.Policy, r.Jobs[i].Name, least)}
		}
		for _, x := range choice.Swaps {
			d.Swap(gaps[x.Pause], x.Drop, x.In)
		}
		return d.Plan(r.Policy), nil
	})
}
