// Package queue decides who is next on a device and who gives way: the order of jobs that wait, and what devices owe
// to tenants. It knows of jobs and tenants what it is told in plain values, and changes nothing but a Ledger.
package queue

import (
	"cmp"
	"slices"
	"time"
)

// Job is what the queue knows of a job.
type Job struct {
	// Tenant is the user that the job belongs to. "": an administrator.
	Tenant string
	// Priority is at least 1.
	Priority int
	// Since is when the job was enqueued, since the Unix epoch.
	Since time.Duration
	// Gang is the number of the gang of a replica. 0: the job is no replica.
	Gang int64
	// GaveWay says that the job had the device and gave way to another.
	GaveWay bool
}

// Line is what the order of jobs depends on beside the jobs.
type Line struct {
	Now time.Duration
	// Aging is the time in which the rank of a job that waits rises by one.
	Aging time.Duration
	// Shares are those of tenants.
	Shares Shares
	// Active is how many jobs of each tenant are planned for. It counts only where there are shares.
	Active map[string]int
}

// Rank is the priority of a queued job, which rises by one with each Aging. So only jobs of higher priority that came
// soon after it ever overtake it, and nobody starves.
func (l *Line) Rank(j Job) int64 { return int64(j.Priority) + int64(max(0, l.Now-j.Since)/l.Aging) }

// Sort orders queued jobs by rank, those of equal rank as they came. Where there are tenants they take turns, each as
// often as its share says, and those with fewer jobs come first.
func Sort[J any](l *Line, waiting []J, of func(J) Job) {
	type entry struct {
		job    J
		tenant string
		rank   int64
		turn   float64
	}
	entries := make([]entry, len(waiting))
	for i, w := range waiting {
		j := of(w)
		entries[i] = entry{job: w, tenant: j.Tenant, rank: l.Rank(j)}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(b.rank, a.rank) })
	if len(l.Shares) > 0 {
		count := make(map[string]int)
		for i := range entries {
			e := &entries[i]
			count[e.tenant]++
			e.turn = float64(l.Active[e.tenant]+count[e.tenant]) / float64(l.Shares.ShareOf(e.tenant))
		}
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.turn, b.turn) })
	}
	for i, e := range entries {
		waiting[i] = e.job
	}
}

// OneBack are some queued jobs, in their order, of which one of each tenant comes back that gave way, with its peers.
func OneBack[J any](waiting []J, of func(J) Job) []J {
	back := make(map[string]Job)
	return slices.DeleteFunc(waiting, func(w J) bool {
		j := of(w)
		if !j.GaveWay {
			return false
		}
		first, found := back[j.Tenant]
		if !found {
			back[j.Tenant] = j
		}
		return found && (j.Gang == 0 || j.Gang != first.Gang)
	})
}

// Victim is the job that gives way first, by the priorities of all that may: the last of the lowest priority. -1: none
// may.
func Victim(priorities []int) int {
	victim := -1
	for i, p := range priorities {
		if victim < 0 || p <= priorities[victim] {
			victim = i
		}
	}
	return victim
}
