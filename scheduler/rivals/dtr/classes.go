package dtr

import (
	"slices"
	"time"

	"tensile/graph"
)

// classes are disjoint sets of evicted storages with the sums of their costs. They merge and are never split: what
// comes back takes its cost along, and what it linked stays linked (appendix of the paper, E*-equivalence).
type classes struct {
	parent []int
	sum    []time.Duration
}

// add makes a class of one.
func (c *classes) add(cost time.Duration) int {
	c.parent, c.sum = append(c.parent, len(c.parent)), append(c.sum, cost)
	return len(c.parent) - 1
}

// find returns the class that a member is in.
func (c *classes) find(x int) int {
	for c.parent[x] != x {
		c.parent[x] = c.parent[c.parent[x]]
		x = c.parent[x]
	}
	return x
}

// merge joins two classes: the younger into the older one.
func (c *classes) merge(x, y int) {
	x, y = c.find(x), c.find(y)
	if x == y {
		return
	}
	x, y = min(x, y), max(x, y)
	c.parent[y] = x
	c.sum[x] += c.sum[y]
}

// leave takes the cost of a member out of its class.
func (c *classes) leave(x int, cost time.Duration) { c.sum[c.find(x)] -= cost }

// join puts a storage that was evicted into a class with its evicted neighbours.
func (r *runtime) join(id graph.StorageID) {
	s := &r.storages[id]
	s.class = r.classes.add(s.cost)
	for _, list := range [2][]graph.StorageID{s.parents, s.children} {
		for _, n := range list {
			if k := r.storages[n].class; k >= 0 {
				r.classes.merge(s.class, k)
			}
		}
	}
}

// classSum is the sum over the classes of a storage's evicted neighbours, each once.
func (r *runtime) classSum(s *storage) (sum time.Duration) {
	r.roots = r.roots[:0]
	for _, list := range [2][]graph.StorageID{s.parents, s.children} {
		for _, n := range list {
			if k := r.storages[n].class; k >= 0 {
				if root := r.classes.find(k); !slices.Contains(r.roots, root) {
					r.roots = append(r.roots, root)
					sum += r.classes.sum[root]
				}
			}
		}
	}
	r.count(len(s.parents) + len(s.children))
	return sum
}
