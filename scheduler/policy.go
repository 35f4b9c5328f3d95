package scheduler

import (
	"fmt"
	"slices"
	"strings"

	"tensile/graph"
	"tensile/plan"
)

// Policy turns a request into plans that fit its budget when packed.
type Policy func(Request) (Result, error)

// policies is the table of all policies, in the order in which they are listed.
var policies = []struct {
	Name   string
	Policy Policy
}{
	{"none-all", noneAll},
	{"none-live", noneLive},
	{"tensile", tensile},
	{"tensile-paper", tensilePaper},
}

// Policies returns the names of all policies.
func Policies() []string {
	names := make([]string, len(policies))
	for i, p := range policies {
		names[i] = p.Name
	}
	return names
}

// Schedule decides for all jobs of the request by its policy. An expected no unwraps to ErrNoPlan and is an
// *OverBudgetError or a *WorkLimitError.
//
// stop is asked every fraction of a millisecond, by the caller's goroutine; once it reports true Schedule returns
// ErrStopped. nil: never. Results do not depend on how often it was asked.
func Schedule(r Request, stop func() bool) (result Result, err error) {
	if r.Options.Work < 0 {
		return Result{}, fmt.Errorf("%d steps of planning: give 1 or more, or 0 for %d", r.Options.Work, int64(UsualWork))
	}
	for i := range r.Jobs {
		if err := r.Jobs[i].check(); err != nil {
			return Result{}, err
		}
	}
	for _, p := range policies {
		if p.Name == r.Policy {
			return r.metered(p.Policy, newMeter(stop))
		}
	}
	return Result{}, fmt.Errorf("unknown policy %q: known are %s", r.Policy, strings.Join(Policies(), ", "))
}

// metered runs a policy, with a meter of its own.
func (r *Request) metered(policy Policy, m *meter) (result Result, err error) {
	r.meter = m
	defer func() {
		if p := recover(); p != nil {
			if _, stopped := p.(workStopped); !stopped {
				panic(p)
			}
			result, err = Result{}, ErrStopped
		}
	}()
	result, err = r.balanced(policy)
	if err == nil {
		result.Work, result.Limited = r.meter.steps, r.meter.spent
	}
	return result, err
}

// work is the limit of the request's work, in steps.
func (r *Request) work() int64 {
	if r.Options.Work > 0 {
		return r.Options.Work
	}
	return UsualWork
}

// search does something until the work is used up, and reports whether it came to its end.
func (r *Request) search(do func()) bool { return r.meter.search(r.work(), do) }

// noneLive frees every storage after its last use and moves nothing else.
func noneLive(r Request) (Result, error) {
	return unplanned(r, func(d *draft) *plan.Plan { return d.plan("none-live") })
}

// noneAll frees nothing before the iteration ends.
func noneAll(r Request) (Result, error) {
	return unplanned(r, func(d *draft) *plan.Plan {
		p := d.plan("none-all")
		for i := range p.Moves {
			if p.Moves[i].Kind == plan.Drop {
				p.Moves[i].After = len(p.Steps) - 1
			}
		}
		plan.Sort(p.Moves)
		return p
	})
}

func unplanned(r Request, write func(*draft) *plan.Plan) (Result, error) {
	var plans []*plan.Plan
	r.stage(Planning)
	for i := range r.Jobs {
		plans = append(plans, write(r.draft(i, firstSteps(graphOrder(r.Jobs[i].Graph)))))
	}
	result, err := r.place(plans)
	if err == nil && r.Budget > 0 && result.Arena > r.Budget {
		err = &OverBudgetError{result.Arena, r.Budget, fmt.Sprintf("policy %s moves nothing; policy tensile does", r.Policy)}
	}
	return result, err
}

// workingSets sums the jobs' working sets and names the largest.
func workingSets(r Request) (sum graph.Bytes, why string) {
	var words []string
	for _, j := range r.Jobs {
		w := WorkingSetOf(j, r.Align)
		sum += w.Bytes
		words = append(words, fmt.Sprintf("%s of job %s works on %s", j.Graph.Ops[w.Op].Name, j.Name, w.Bytes))
	}
	return sum, abridged(words)
}

// abridged joins what is said about each of several jobs.
func abridged(words []string) string {
	const shown = 4
	if len(words) > shown {
		words = append(slices.Clone(words[:shown]), fmt.Sprintf("and %d jobs more", len(words)-shown))
	}
	return strings.Join(words, ", ")
}
