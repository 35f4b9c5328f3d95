package waterwave

import (
	"time"

	"tensile/device/lease"
)

// nodeGroups is how the groups of a section are cut.
type nodeGroups struct {
	ends  []int           // the group after the last one of each node group
	times []time.Duration // that each is expected to take
	grow  int             // so many of them allocate, the others deallocate
}

// cut cuts the groups of a section, in the order of the list, into node groups: one ends where the pages have grown or
// shrunk by split since it began, and where they are at their peak. Up to there node groups allocate, from there on
// they deallocate. If nothing is known of the groups they are one node group.
func cut(groups []lease.Group, base, split int) nodeGroups {
	if len(groups) == 0 {
		return nodeGroups{ends: []int{1}, times: []time.Duration{0}, grow: 1}
	}
	peak := 0
	for i := range groups {
		if groups[i].Pages > groups[peak].Pages {
			peak = i
		}
	}
	var n nodeGroups
	level, took := base, time.Duration(0)
	for i := range groups {
		after := base // that the job holds when the group is over
		switch {
		case i <= peak:
			after = groups[i].Pages
		case i+1 < len(groups):
			after = groups[i+1].Pages
		}
		took += groups[i].Time
		if last := i == len(groups)-1; max(after-level, level-after) < split && i != peak && !last {
			continue
		}
		n.ends, n.times = append(n.ends, i+1), append(n.times, took)
		if i <= peak {
			n.grow++
		}
		level, took = after, 0
	}
	return n
}

// nodeGroupOf returns the node group that a group is in.
func (n *nodeGroups) nodeGroupOf(group int) int {
	at := 0
	for at < len(n.ends)-1 && n.ends[at] <= group {
		at++
	}
	return at
}
