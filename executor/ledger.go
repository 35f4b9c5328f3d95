package executor

import (
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/program"
)

// ledger holds back programs that need more memory than their job has until others have given theirs back. A job
// counts with the larger of its arena and of the one that it was granted.
type ledger struct {
	budget  graph.Bytes // 0: no limit
	arenas  map[string]graph.Bytes
	granted map[string]graph.Bytes
	waiting []request // in the order in which they came
}

type request struct {
	job    string
	proven program.Proven
	arena  graph.Bytes // that it needs
}

func newLedger(budget graph.Bytes) *ledger {
	return &ledger{budget: budget, arenas: map[string]graph.Bytes{}, granted: map[string]graph.Bytes{}}
}

// ask puts a job's next program in line, in place of one that still waits.
func (l *ledger) ask(r request) error {
	if l.budget > 0 && r.arena > l.budget {
		return fmt.Errorf("job %s: its plan needs an arena of %s, the budget is %s", r.job, r.arena, l.budget)
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(old request) bool { return old.job == r.job })
	l.waiting = append(l.waiting, r)
	return nil
}

// grant returns the programs that may be applied now: those that shrink, and those for which there is room.
func (l *ledger) grant() []request {
	var granted []request
	l.waiting = slices.DeleteFunc(l.waiting, func(r request) bool {
		before := l.granted[r.job]
		l.granted[r.job] = r.arena
		if r.arena > max(l.arenas[r.job], before) && l.budget > 0 && l.sum() > l.budget {
			l.granted[r.job] = before
			return false
		}
		granted = append(granted, r)
		return true
	})
	return granted
}

// reserved records that a job has an arena of this size; 0 when it has ended.
func (l *ledger) reserved(job string, arena graph.Bytes) { l.arenas[job] = arena }

// sum is what all jobs count with.
func (l *ledger) sum() graph.Bytes {
	var sum graph.Bytes
	for job, granted := range l.granted {
		sum += max(granted, l.arenas[job])
	}
	return sum
}

// end gives a job's memory back.
func (l *ledger) end(job string) {
	l.waiting = slices.DeleteFunc(l.waiting, func(r request) bool { return r.job == job })
	delete(l.arenas, job)
	delete(l.granted, job)
}
