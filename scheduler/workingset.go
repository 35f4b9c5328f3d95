package scheduler

import (
	"fmt"
	"slices"
	"strings"

	"tensile/graph"
	"tensile/plan/program"
)

// WorkingSet is the largest memory that a single step of a job needs.
type WorkingSet struct {
	Op    graph.OpID
	Bytes graph.Bytes // storages and scratch, each rounded up to the alignment
}

// WorkingSetOf returns the largest working set of a job's ops, each with the variant that needs the least scratch: no
// plan is below it.
func WorkingSetOf(j Job, align graph.Bytes) WorkingSet { return j.workingSet(align, false) }

// FirstWorkingSetOf is WorkingSetOf with the first variant of every op: for methods that take no others.
func FirstWorkingSetOf(j Job, align graph.Bytes) WorkingSet { return j.workingSet(align, true) }

func (j *Job) workingSet(align graph.Bytes, first bool) WorkingSet {
	var largest WorkingSet
	for op := range j.Graph.Ops {
		need := RoundUp(j.scratch(op, first), align)
		for _, s := range j.Graph.Touches(graph.OpID(op)) {
			need += RoundUp(j.Graph.Storages[s].Bytes, align)
		}
		if need > largest.Bytes {
			largest = WorkingSet{graph.OpID(op), need}
		}
	}
	return largest
}

// scratch is what the first variant of an op needs, or the least that one of them needs.
func (j *Job) scratch(op int, first bool) graph.Bytes {
	said := j.Graph.Scratch(graph.OpID(op), false)
	if j.Variants == nil {
		return said
	}
	least := j.Variants[op][0].Scratch
	for _, v := range j.Variants[op] {
		if !first {
			least = min(least, v.Scratch)
		}
	}
	return max(said, least)
}

// WorkingSets sums the working sets of the request's jobs and names the largest of each, for an error's line. Of jobs
// that share memory the largest counts, and is named alone.
func (r *Request) WorkingSets() (sum graph.Bytes, why string) { return r.workingSets(WorkingSetOf) }

// FirstWorkingSets is WorkingSets with the first variant of every op.
func (r *Request) FirstWorkingSets() (sum graph.Bytes, why string) {
	return r.workingSets(FirstWorkingSetOf)
}

func (r *Request) workingSets(of func(Job, graph.Bytes) WorkingSet) (sum graph.Bytes, why string) {
	var words []string
	for _, j := range r.Jobs {
		w := of(j, r.Align)
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
	return r.checkWorkingSets(WorkingSetOf)
}

// CheckFirstWorkingSets is CheckWorkingSets for a method that takes the first variant of every op.
func (r *Request) CheckFirstWorkingSets() (sum graph.Bytes, err error) {
	return r.checkWorkingSets(FirstWorkingSetOf)
}

func (r *Request) checkWorkingSets(of func(Job, graph.Bytes) WorkingSet) (sum graph.Bytes, err error) {
	sum, why := r.workingSets(of)
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
