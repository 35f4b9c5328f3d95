package waterwave

import (
	"cmp"
	"slices"
)

// Shape is what Algorithm 1 knows of a job: its node groups, of which the first Grow allocate and the others
// deallocate, and the most pages that it holds.
type Shape struct{ Groups, Grow, Peak int }

// NodeGroup is one of a job: the number of both, from 0.
type NodeGroup struct{ Job, Group int }

// None stands for the node group that a pair lacks.
var None = NodeGroup{-1, -1}

// Pairs returns which node groups of some jobs are issued together, in order: Algorithm 1 of Waterwave, in which the
// two node groups of a pair are the elements of av and dv at one index. Limit and split are pages.
//
// The first job is that with the most node groups. As many node groups of the second job as there is room for beside
// the peak of the first are issued while that one still allocates. All others that allocate go to av, those that
// deallocate to dv; of the last job also to av, up to where dv ends.
//
// Where the lines as printed fail, or say nothing:
//   - A loop that counts in its head does not count in its body again, and line 11 is for the first p node groups.
//   - Room for fewer than no node groups is room for none, and there is none for more than both jobs allocate in.
//   - The node groups of a job keep their order. Line 24 would put one before others that come first, if a job
//     deallocates in fewer of them than it allocates in, and lines 20 and 21 some of the last job beside the one before
//     it. Such a node group is put after them, and places of a vector stay empty.
func Pairs(jobs []Shape, limit, split int) [][2]NodeGroup {
	if len(jobs) == 0 {
		return nil
	}
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[b].Groups, jobs[a].Groups) })
	first := jobs[order[0]]
	p := 0
	if len(order) > 1 {
		p = max(0, min((limit-first.Peak)/max(split, 1)-1, first.Grow, jobs[order[1]].Grow))
	}
	const av, dv = 0, 1
	var pairs [][2]NodeGroup
	offset, idx1, idx2 := first.Grow-p, 0, first.Grow
	for n, id := range order {
		i, after := 0, 0
		put := func(vector int, idx *int) {
			at := max(*idx, after)
			for len(pairs) <= at {
				pairs = append(pairs, [2]NodeGroup{None, None})
			}
			pairs[at][vector] = NodeGroup{id, i}
			*idx, after = at+1, at+1
			i++
		}
		for n == 1 && i < p {
			put(dv, &offset)
		}
		for i < jobs[id].Grow {
			put(av, &idx1)
		}
		for i < jobs[id].Groups {
			if n == len(order)-1 && idx2 > idx1 {
				put(av, &idx1)
			} else {
				put(dv, &idx2)
			}
		}
	}
	return pairs
}
