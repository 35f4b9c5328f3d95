package policies

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/policies/none"
	"tensile/scheduler/policies/paper"
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

// All returns the table of all policies of this module, in the order in which they are listed.
func All() Table {
	return Table{
		{"none-all", none.All, nil},
		{"none-live", none.Live, nil},
		{"tensile", tensile.Plan, tensile.Options{}},
		{"tensile-paper", paper.Plan, paper.Options{}},
	}
}

// Names returns the names of all policies of this module.
func Names() []string { return All().Names() }

// Names returns the names of the table's policies.
func (t Table) Names() []string {
	names := make([]string, len(t))
	for i, row := range t {
		names[i] = row.Name
	}
	return names
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
	i := slices.IndexFunc(t, func(row Row) bool { return row.Name == r.Policy })
	if i < 0 {
		known := strings.Join(t.Names(), ", ")
		return scheduler.Result{}, fmt.Errorf("unknown policy %q: known are %s", r.Policy, known)
	}
	if !t.takes(r.Options.Own) {
		return scheduler.Result{}, fmt.Errorf("options of type %T: no policy has such options", r.Options.Own)
	}
	return t[i].schedule(r, w)
}

// schedule decides by the row's policy, within the budget of host memory. If the policy finds nothing because it may
// not swap more, it is asked what it would need.
func (row *Row) schedule(r scheduler.Request, w scheduler.Watch) (scheduler.Result, error) {
	denied := false
	result, err := draft.Open(r, w, func(s *draft.Session) (scheduler.Result, error) {
		defer func() { denied = s.Denied() }()
		return balanced(s, row.Policy)
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
			Why: fmt.Sprintf("the plans of policy %s that fit the device take that", r.Policy)}
		result = scheduler.Result{Work: result.Work}
	}
	return result, err
}

// takes reports whether own is nil or the options of one of the table's policies.
func (t Table) takes(own any) bool {
	return own == nil || slices.ContainsFunc(t, func(row Row) bool {
		return row.Options != nil && reflect.TypeOf(row.Options) == reflect.TypeOf(own)
	})
}
