// Package each divides a budget among jobs for methods that know of one job alone.
package each

import (
	"errors"
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// Method plans job i of a session by itself, within its part of the budget. A *scheduler.OverBudgetError says by how
// much Part.Capacity is too little: by Need less Budget.
type Method func(i int, part Part) (*plan.Plan, error)

// Part is what a job has of the budget for itself.
type Part struct {
	Bytes graph.Bytes // for its arena
	// Capacity is for what is on the device in a slot, storages and scratch as aligned: Bytes, or less where plans for
	// more have not packed into that.
	Capacity graph.Bytes
}

// Plan plans the jobs by a method that knows of one job alone, and packs the plans. Each job has its working set, and
// of what is left as much as goes by what it needs more than that without a plan; what is left beyond that is divided
// evenly. Without a budget a job has what it needs without a plan. Equal jobs are planned once.
//
// If the method refuses a part, the job needs that much at least, and the rest is divided again. If a plan does not
// pack into its part, the method is asked again with less capacity: by as much as it was too high, and by a few more
// thousandths of the part each time; if it cannot do with less, the job needs as much as it packed into. The jobs are
// refused when what they need at least is together above the budget, or after a bounded number of such rounds.
//
// The error is a *scheduler.OverBudgetError, whose Need is what the plans pack into that need least; or the method's
// own.
func Plan(s *draft.Session, method Method) (scheduler.Result, error) {
	if err := NoSwapLimit(s); err != nil {
		return scheduler.Result{}, err
	}
	return PlanUnswapped(s, method)
}

// PlanUnswapped is Plan for a method that swaps nothing: it is within any max swap rate.
func PlanUnswapped(s *draft.Session, method Method) (scheduler.Result, error) {
	r := &s.Request
	if _, err := r.CheckWorkingSets(); err != nil {
		return scheduler.Result{}, err
	}
	s.Stage(scheduler.Planning)
	d := divide(s, method)
	for {
		refused, err := d.ask()
		if err != nil {
			return scheduler.Result{}, err
		}
		if refused != nil {
			if r.Together || !d.share() {
				return d.planLeast(refused)
			}
			continue
		}
		result, err := d.place()
		if err != nil || r.Budget == 0 || result.Least <= r.Budget {
			return result, err
		}
		if !d.tighten(&result) {
			return scheduler.Result{}, &scheduler.OverBudgetError{Need: result.Least, Budget: r.Budget,
				Reason: fmt.Sprintf("what policy %s leaves packs into that; policy tensile goes lower", r.Policy)}
		}
		s.Stage(scheduler.Planning)
	}
}

// NoSwapLimit returns an error if a job has a max swap rate: for policies that have no such limit.
func NoSwapLimit(s *draft.Session) error {
	for i := range s.Request.Jobs {
		if j := &s.Request.Jobs[i]; j.MaxSwapRate > 0 {
			return fmt.Errorf("job %s: policy %s has no limit of swaps: leave its max swap rate out", j.Name,
				s.Request.Policy)
		}
	}
	return nil
}

// division is a budget as it is divided among jobs.
type division struct {
	*draft.Session
	method Method
	claims []claim
	round  int // of packing
	rounds int // at most
}

// claim is what a group of equal jobs has and needs, each of them.
type claim struct {
	// jobs are the jobs that the claim is for, which are equal.
	jobs []int
	// part is what each of them gets of the budget.
	part Part
	// live is what one needs without a plan, in bytes.
	live graph.Bytes
	// margin is by how much its capacity is below the part, in bytes.
	margin graph.Bytes
	// floor is the least capacity that the method may do with, as far as is known, in bytes.
	floor graph.Bytes
	// need is the least part that it may do with, as far as is known, in bytes.
	need graph.Bytes
	// raised is how often need was raised.
	raised int

	// plan is the plan; nil: it was refused, or was not made yet.
	plan *plan.Plan
	// planned is the part that the plan was made for.
	planned Part
}

// raiseNeed notes that a job needs more than was known. It reports false if that was so too often: a method need not
// keep to what it said.
func (c *claim) raiseNeed(need graph.Bytes) bool {
	const most = 4
	c.need = need
	c.raised++
	return c.raised <= most
}

// divide divides the budget for the first time. Jobs that share memory have their peaks one at a time: each has what
// the others leave that keep their parameters and states.
func divide(s *draft.Session, method Method) *division {
	const rounds = 8
	d := &division{Session: s, method: method, rounds: rounds}
	left := s.Request.Budget
	bases := make([]graph.Bytes, len(s.Groups()))
	for k, equal := range s.Groups() {
		j := s.Request.Jobs[equal[0]]
		unplanned := s.Draft(equal[0], draft.FirstSteps(draft.GraphOrder(j.Graph)), draft.Style{})
		_, live := unplanned.Peak()
		set := scheduler.WorkingSetOf(j, s.Request.Align).Bytes
		d.claims = append(d.claims, claim{jobs: equal, live: live, floor: set, need: set})
		bases[k] = unplanned.Base()
		left -= bases[k] * graph.Bytes(len(equal))
	}
	if !s.Request.Together || s.Request.Budget == 0 {
		d.share()
		return d
	}
	for k := range d.claims {
		c := &d.claims[k]
		c.setPart(max(c.need, left+bases[k]))
	}
	return d
}

// setPart sets a job's part.
func (c *claim) setPart(part graph.Bytes) { c.part = Part{part, max(c.floor, part-c.margin)} }

// share divides the budget by what is known. It reports false if the jobs need more.
func (d *division) share() bool {
	jobs := graph.Bytes(len(d.Request.Jobs))
	left, wants := d.Request.Budget, graph.Bytes(0)
	for k := range d.claims {
		c := &d.claims[k]
		n := graph.Bytes(len(c.jobs))
		left, wants = left-n*c.need, wants+n*c.missing()
	}
	if left < 0 && d.Request.Budget > 0 {
		return false
	}
	for k := range d.claims {
		c := &d.claims[k]
		switch {
		case d.Request.Budget == 0:
			c.setPart(c.need + c.missing())
		case left < wants:
			c.setPart(c.need + draft.Portion(c.missing(), left, wants))
		default:
			c.setPart(c.need + c.missing() + (left-wants)/jobs)
		}
	}
	return true
}

// missing is what a job without a plan needs beyond the least.
func (c *claim) missing() graph.Bytes { return max(0, c.live-c.need) }

// ask has the jobs planned whose parts are new. If the method refuses some of them, what these need is noted and the
// last refusal is returned.
func (d *division) ask() (refused *scheduler.OverBudgetError, err error) {
	for k := range d.claims {
		c := &d.claims[k]
		if c.plan != nil && c.planned == c.part {
			continue
		}
		over, err := d.askFor(c)
		if err != nil {
			return nil, err
		}
		if over == nil {
			continue
		}
		if d.Request.Budget == 0 || !c.raiseNeed(max(c.need, c.floor)) {
			return nil, over // it does not keep to what it says
		}
		refused = over
	}
	return refused, nil
}

// askFor has a job planned. If the method refuses, the floor is raised to what it needs.
func (d *division) askFor(c *claim) (*scheduler.OverBudgetError, error) {
	c.plan = nil
	made, err := d.method(c.jobs[0], c.part)
	if over, ok := errors.AsType[*scheduler.OverBudgetError](err); ok && over.Need > over.Budget {
		c.floor = c.part.Capacity + over.Need - over.Budget
		return over, nil
	} else if err != nil {
		return nil, err
	}
	c.plan, c.planned = made, c.part
	return nil, nil
}

// place packs the plans.
func (d *division) place() (scheduler.Result, error) {
	r := &d.Request
	plans := make([]*plan.Plan, len(r.Jobs))
	for k := range d.claims {
		for _, i := range d.claims[k].jobs {
			p := *d.claims[k].plan
			p.Job, p.Epoch, p.Policy = r.Jobs[i].Name, r.Jobs[i].Epoch, r.Policy
			plans[i] = &p
		}
	}
	d.round++
	result, err := d.Place(plans)
	result.Rounds = d.Rounds()
	return result, err
}

// tighten gives jobs whose plans are above their parts less capacity, or, where they can do with no less, a larger
// part. It reports false if there is nothing left to try.
func (d *division) tighten(result *scheduler.Result) bool {
	lowered, raised := false, false
	for k := range d.claims {
		c := &d.claims[k]
		arena := result.Jobs[c.jobs[0]].Layout.Arena
		over := arena - c.part.Bytes
		if d.Request.Together {
			over = result.Least - d.Request.Budget
		}
		switch {
		case over <= 0:
		case c.part.Capacity > c.floor && d.round < d.rounds:
			over = max(over, c.part.Bytes*graph.Bytes(d.round)/512)
			c.part.Capacity = max(c.floor, c.part.Capacity-over)
			c.margin, lowered = c.part.Bytes-c.part.Capacity, true
		case !d.Request.Together && c.raiseNeed(arena):
			c.margin, raised = arena-c.part.Capacity, true
		}
	}
	if raised {
		d.rounds = max(d.rounds, d.round+4)
		return d.share()
	}
	return lowered
}

// planLeast plans for as little as the jobs need at least, which is above the budget by what the method says, and
// returns what that packs into as an error.
func (d *division) planLeast(refused *scheduler.OverBudgetError) (scheduler.Result, error) {
	r := &d.Request
	need, why := graph.Bytes(0), make([]string, len(d.claims))
	for k := range d.claims {
		c := &d.claims[k]
		for range 2 { // its floor may not be known yet
			if r.Together && c.plan != nil {
				break
			}
			c.part = Part{c.floor, c.floor}
			over, err := d.askFor(c)
			if err != nil && !errors.Is(err, scheduler.ErrNoPlan) {
				return scheduler.Result{}, err
			}
			if over == nil {
				break
			}
		}
		need += c.floor * graph.Bytes(len(c.jobs))
		why[k] = fmt.Sprintf("%s for job %s", c.floor, r.Jobs[c.jobs[0]].Name)
		if n := len(c.jobs); n > 1 {
			why[k] += fmt.Sprintf(" and each of %d like it", n-1)
		}
	}
	if !slices.ContainsFunc(d.claims, func(c claim) bool { return c.plan == nil }) {
		result, err := d.place()
		if err != nil || result.Least <= r.Budget {
			return result, err
		}
		need = result.Least
	}
	err := &scheduler.OverBudgetError{Need: need, Budget: r.Budget, Reason: refused.Reason}
	if len(r.Jobs) > 1 && !r.Together {
		err.Reason = fmt.Sprintf("policy %s needs at least %s; policy tensile goes lower", r.Policy,
			scheduler.Abridge(why))
	}
	return scheduler.Result{}, err
}
