package policies

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"tensile/graph"
	"tensile/graph/text"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/policies/none"
	"tensile/scheduler/policies/tensile"
)

// Policy decides for all jobs of a session's request. It returns a plan per job, placed by Session.Place or
// Session.Finish, within the budget; or a *scheduler.OverBudgetError or *scheduler.WorkLimitError. It is called again
// for other shares of the link, and decides the same for equal requests and shares.
type Policy func(*draft.Session) (scheduler.Result, error)

// Table lists policies by name.
type Table []Row

// Row is one policy.
type Row struct {
	Name    string
	Policy  Policy
	Options any // the zero value of its own options, as in scheduler.Options.Own; nil: it has none
}

// core is the table of the policies of this module that are no rivals.
var core = Table{
	{"none-all", none.All, nil},
	{"none-live", none.Live, nil},
	{"tensile", tensile.Plan, tensile.Options{}},
}

var registered Table

// Register adds policies to those of All. It is called when a program begins (package rivals).
func Register(t Table) { registered = append(registered, t...) }

// All returns the table of all policies that this program has, in the order in which they are listed.
func All() Table { return slices.Concat(core, registered) }

// Names returns the names of all policies that this program has.
func Names() []string { return All().Names() }

// Names returns the names of the table's policies.
func (t Table) Names() []string {
	names := make([]string, len(t))
	for i, row := range t {
		names[i] = row.Name
	}
	return names
}

// Check returns an error if a name is of none of them.
func Check(name string) error { return All().Check(name) }

// Check returns an error if a name is of no policy of the table. It suggests those that are near.
func (t Table) Check(name string) error {
	if names := t.Names(); !slices.Contains(names, name) {
		return fmt.Errorf("unknown policy %q:%s tensile plan --help --all lists all", name, text.Suggest(name, names))
	}
	return nil
}

// Schedule decides for all jobs of the request by its policy, one of All. An expected refusal unwraps to
// scheduler.ErrNoPlan and is a *scheduler.OverBudgetError, a *scheduler.OverHostError or a *scheduler.WorkLimitError.
//
// stop is asked every fraction of a millisecond, by the caller's goroutine; once it reports true Schedule returns
// scheduler.ErrStopped. nil: never. Results do not depend on how often it was asked.
func Schedule(r scheduler.Request, stop func() bool) (scheduler.Result, error) {
	var w scheduler.Watch
	if stop != nil {
		w.Stop = func(int64) bool { return stop() }
	}
	return All().Schedule(r, w)
}

// Schedule decides for all jobs of the request by its policy, one of the table.
func (t Table) Schedule(r scheduler.Request, w scheduler.Watch) (scheduler.Result, error) {
	if err := cmp.Or(r.Check(), r.CheckHost()); err != nil {
		return scheduler.Result{}, err
	}
	if err := t.Check(r.Policy); err != nil {
		return scheduler.Result{}, err
	}
	i := slices.IndexFunc(t, func(row Row) bool { return row.Name == r.Policy })
	if !t.accepts(r.Options.Own) {
		return scheduler.Result{}, fmt.Errorf("options of type %T: no policy has such options", r.Options.Own)
	}
	if err := t[i].plansScripts(&r); err != nil {
		return scheduler.Result{}, err
	}
	return t[i].decideWithin(r, w)
}

// plansScripts returns an error if a job is a script's and the policy is made for ops that it knows.
func (row *Row) plansScripts(r *scheduler.Request) error {
	if slices.Contains(core.Names(), row.Name) {
		return nil
	}
	for _, j := range r.Jobs {
		if j.Graph.Opaque() {
			return fmt.Errorf("job %s is a script's, whose ops policy %s does not know: take policy tensile", j.Name,
				row.Name)
		}
	}
	return nil
}

// decideWithin decides within what the budget leaves beside the bytes that jobs hold.
func (row *Row) decideWithin(r scheduler.Request, w scheduler.Watch) (scheduler.Result, error) {
	var held graph.Bytes
	for i := range r.Jobs {
		held += r.Jobs[i].Held
	}
	if held == 0 {
		return row.schedule(r, w)
	}
	budget := r.Budget
	if budget > 0 {
		if r.Budget = budget - held; r.Budget <= 0 {
			sets, why := r.WorkingSets()
			return scheduler.Result{}, &scheduler.OverBudgetError{Need: held + sets, Budget: budget,
				Reason: fmt.Sprintf("jobs hold %s of it; %s", held, why)}
		}
	}
	result, err := row.schedule(r, w)
	if over := (*scheduler.OverBudgetError)(nil); errors.As(err, &over) {
		over.Need, over.Budget = over.Need+held, budget
	}
	if err == nil {
		result.Least += held
	}
	return result, err
}

// schedule decides by the row's policy, within the budget of host memory. If the policy finds nothing because it may
// not swap more, it is asked what it would need.
func (row *Row) schedule(r scheduler.Request, w scheduler.Watch) (scheduler.Result, error) {
	denied := false
	result, err := draft.Open(r, w, func(s *draft.Session) (scheduler.Result, error) {
		defer func() { denied = s.Denied() }()
		return planBalanced(s, row.Policy)
	})
	if denied && errors.Is(err, scheduler.ErrNoPlan) {
		unlimited := r
		unlimited.HostBudget = 0
		work := result.Work
		result, err = row.schedule(unlimited, w)
		result.Work += work
	}
	if err == nil && r.HostBudget > 0 && result.Host > r.HostBudget {
		err = &scheduler.OverHostError{Need: result.Host, Budget: r.HostBudget,
			Reason: fmt.Sprintf("the plans of policy %s that fit the device take that", r.Policy)}
		result = scheduler.Result{Work: result.Work}
	}
	return result, err
}

// accepts reports whether own is nil or the options of one of the table's policies.
func (t Table) accepts(own any) bool {
	return own == nil || slices.ContainsFunc(t, func(row Row) bool {
		return row.Options != nil && reflect.TypeOf(row.Options) == reflect.TypeOf(own)
	})
}
