package dtr

import (
	"errors"
	"fmt"

	"tensile/scheduler/rivals/each"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/rivals/replay"
)

// Options are the settings of the policy. The zero value is the paper's h_DTR.
type Options struct {
	Heuristic string // DTR, Eq, Local, LRU, Size or MSPS; "": DTR
}

// Plan is the policy dtr, and any heuristic that the request's options name.
func Plan(s *draft.Session) (scheduler.Result, error) {
	o := scheduler.OptionsOf[Options](&s.Request)
	switch o.Heuristic {
	case "":
		return planBy(s, DTR)
	case DTR, Eq, Local, LRU, Size, MSPS:
		return planBy(s, o.Heuristic)
	}
	return scheduler.Result{}, fmt.Errorf("heuristic %q: choose %s, %s, %s, %s, %s or %s", o.Heuristic, DTR, Eq, Local,
		LRU, Size, MSPS)
}

// PlanEq is the policy dtr-eq: the heuristic of the authors' prototype.
func PlanEq(s *draft.Session) (scheduler.Result, error) { return planBy(s, Eq) }

// outOfMemory says that nothing is left to evict.
type outOfMemory struct{ need graph.Bytes }

func (e *outOfMemory) Error() string {
	return fmt.Sprintf("%s are needed at once, with nothing left to evict", e.need)
}

// errThrash says that more time went into repetitions than the ops of the graph take.
var errThrash = errors.New("repetitions take longer than the iteration itself")

// planBy plans each job with a heuristic.
func planBy(s *draft.Session, heuristic string) (scheduler.Result, error) {
	r := &s.Request
	fits := make([]graph.Bytes, len(r.Jobs)) // per job: a capacity that is known to do; 0: none yet
	return each.PlanUnswapped(s, func(i int, part each.Part) (*plan.Plan, error) {
		j, capacity := &r.Jobs[i], part.Capacity
		unplanned := s.Draft(i, draft.FirstSteps(draft.GraphOrder(j.Graph)), draft.Style{})
		_, live := unplanned.Peak()
		if live <= capacity {
			return unplanned.Plan(r.Policy), nil // simrd would pin the batch to the end
		}
		var steps []plan.Step
		var err error
		if !s.Search(func() { steps, err = execute(j, heuristic, capacity, r.Align, s.Count) }) {
			return nil, &scheduler.WorkLimitError{Work: s.Work()}
		}
		if err == nil {
			return replay.Steps(j, r.Policy, steps), nil
		}
		if fits[i] <= capacity {
			fits[i] = sufficientCapacity(s, j, heuristic, capacity, live)
		}
		return nil, &scheduler.OverBudgetError{Need: r.Budget + fits[i] - capacity, Budget: r.Budget,
			Reason: fmt.Sprintf("job %s by policy %s: %v; policy tensile goes lower", j.Name, r.Policy, err)}
	})
}

// execute returns the steps of an iteration within a capacity.
func execute(j *scheduler.Job, heuristic string, capacity, align graph.Bytes, count func(int)) ([]plan.Step, error) {
	r := newRuntime(j, heuristic, capacity, align, count)
	if least := r.leastBound(); least > capacity {
		return nil, &outOfMemory{least}
	}
	if err := r.run(); err != nil {
		return nil, err
	}
	return r.steps, nil
}

// leastBound is a bound of what the runtime needs: what persists, and beside it what one op works on.
func (r *runtime) leastBound() graph.Bytes {
	var most graph.Bytes
	for i := range r.ops {
		need := r.scratch[i]
		for _, s := range r.g.Touches(graph.OpID(i)) {
			if !r.storages[s].persists {
				need += r.storages[s].bytes
			}
		}
		most = max(most, need)
	}
	return r.persist + most
}

// sufficientCapacity is a capacity with which a job fits that one does not do for: the least, to a 16th of what there
// is between them and what the job needs live, with which it does.
func sufficientCapacity(s *draft.Session, j *scheduler.Job, heuristic string, capacity, live graph.Bytes) graph.Bytes {
	r := &s.Request
	low := max(capacity, newRuntime(j, heuristic, capacity, r.Align, s.Count).leastBound()-1)
	high := max(live, low+1)
	for range 4 {
		middle := low + (high-low)/2
		var err error
		if s.Search(func() { _, err = execute(j, heuristic, middle, r.Align, s.Count) }) && err == nil {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
