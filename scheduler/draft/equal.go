package draft

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/scheduler"
)

// Groups returns the request's jobs in groups of equal ones, in the order of the first of each. They may differ in name
// and epoch, but in nothing that plans depend on. Equal jobs get equal plans.
func (s *Session) Groups() [][]int { return s.groups }

// Group begins a draft that stands for the jobs of a group: what it needs counts once for each of them.
func (s *Session) Group(group int, steps []Step, style Style) *Draft {
	d := s.Draft(s.groups[group][0], steps, style)
	d.copies = graph.Bytes(len(s.groups[group]))
	return d
}

// Ungroup returns a draft per job from those of the groups. Nothing can be decided in them together from then on.
func (s *Session) Ungroup(groups []*Draft) []*Draft {
	jobs := make([]*Draft, len(s.Request.Jobs))
	for g, d := range groups {
		for _, i := range s.groups[g] {
			jobs[i] = d.Clone()
			jobs[i].job, jobs[i].copies = &s.Request.Jobs[i], 1
		}
	}
	return jobs
}

// equals groups jobs that differ in nothing that their plans depend on, in the order of the first ones.
func equals(jobs []scheduler.Job) [][]int {
	var groups [][]int
	of := make(map[*graph.Graph][]int) // groups of each graph
	for i := range jobs {
		j := &jobs[i]
		known := of[j.Graph]
		k := slices.IndexFunc(known, func(g int) bool { return interchangeable(&jobs[groups[g][0]], j) })
		if k < 0 {
			of[j.Graph] = append(known, len(groups))
			groups = append(groups, []int{i})
			continue
		}
		groups[known[k]] = append(groups[known[k]], i)
	}
	return groups
}

// interchangeable reports whether two jobs of a graph may swap their plans.
func interchangeable(a, b *scheduler.Job) bool {
	same := func(a, b []time.Duration) bool {
		return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
	}
	return a.Worth() == b.Worth() && a.SwapLimit() == b.SwapLimit() && a.Last == b.Last &&
		a.Least == b.Least && a.Held == b.Held && a.OnHost == b.OnHost &&
		same(a.Latency, b.Latency) && same(a.Slack, b.Slack) &&
		slices.EqualFunc(a.Variants, b.Variants, slices.Equal[[]scheduler.Variant])
}
