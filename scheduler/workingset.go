package scheduler

import (
	"fmt"
	"slices"
	"strings"

	"tensile/graph"
	"tensile/program"
)

// WorkingSet is the largest memory that a single step of a job needs: no plan with the first variant of every op is
// below it.
type WorkingSet struct {
	Op    graph.OpID
	Bytes graph.Bytes // storages and scratch, each rounded up to the alignment
}

// WorkingSetOf returns the largest working set of a job's ops, with their first variants.
func WorkingSetOf(j Job, align graph.Bytes) WorkingSet {
	var largest WorkingSet
	for op := range j.Graph.Ops {
		need := RoundUp(j.scratch(op), align)
		for _, s := range j.Graph.Touches(graph.OpID(op)) {
			need += RoundUp(j.Graph.Storages[s].Bytes, align)
		}
		if need > largest.Bytes {
			largest = WorkingSet{graph.OpID(op), need}
		}
	}
	return largest
}

// scratch is what the first variant of an op needs.
func (j *Job) scratch(op int) graph.Bytes {
	if j.Variants == nil {
		return 0
	}
	return j.Variants[op][0].Scratch
}

// WorkingSets sums the working sets of the request's jobs and names the largest of each, for an error's line. Of jobs
// that share memory the largest counts, and is named alone.
func (r *Request) WorkingSets() (sum graph.Bytes, why string) {
	var words []string
	for _, j := range r.Jobs {
		w := WorkingSetOf(j, r.Align)
		line := fmt.Sprintf("%s of job %s works on %s", j.Graph.Ops[w.Op].Name, j.Name, w.Bytes)
		switch {
		case !r.Together:
			sum, words = sum+w.Bytes, append(words, line)
		case w.Bytes > sum:
			sum, words = w.Bytes, []string{line}
		}
	}
	return sum, Abridge(words)
}

// CheckWorkingSets returns an *OverBudgetError if no plan fits the budget because single steps need more, and the sum
// of the jobs' working sets.
func (r *Request) CheckWorkingSets() (sum graph.Bytes, err error) {
	sum, why := r.WorkingSets()
	if r.Budget > 0 && sum > r.Budget {
		return sum, &OverBudgetError{sum, r.Budget, "the largest steps need it: " + why}
	}
	return sum, nil
}

// HomeOf is what a job has on the host under any plan: the slots of what lives there, and Job.OnHost.
func HomeOf(j Job) graph.Bytes {
	_, kept := program.HostSlots(j.Graph)
	return kept + j.OnHost
}

// CheckHost returns an *OverHostError if no plan fits the budget of host memory, since what lives there needs more.
func (r *Request) CheckHost() error {
	if r.HostBudget == 0 {
		return nil
	}
	var sum graph.Bytes
	var words []string
	for _, j := range r.Jobs {
		home := HomeOf(j)
		sum += home
		words = append(words, fmt.Sprintf("job %s keeps %s there", j.Name, home))
	}
	if sum > r.HostBudget {
		return &OverHostError{sum, r.HostBudget, Abridge(words)}
	}
	return nil
}

// Abridge joins what is said about each of several jobs into a line of bearable length.
func Abridge(words []string) string {
	const shown = 4
	if len(words) > shown {
		words = append(slices.Clone(words[:shown]), fmt.Sprintf("and %d jobs more", len(words)-shown))
	}
	return strings.Join(words, ", ")
}

// RoundUp rounds bytes up to a multiple of align.
func RoundUp(b, align graph.Bytes) graph.Bytes { return (b + align - 1) / align * align }
