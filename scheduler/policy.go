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
// *OverBudgetError.
func Schedule(r Request) (Result, error) {
	for i := range r.Jobs {
		if err := r.Jobs[i].check(); err != nil {
			return Result{}, err
		}
	}
	for _, p := range policies {
		if p.Name == r.Policy {
			return r.balanced(p.Policy)
		}
	}
	return Result{}, fmt.Errorf("unknown policy %q: known are %s", r.Policy, strings.Join(Policies(), ", "))
}

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
