// Package gang computes what the replicas of a gang do together: after how many iterations they rest, and which
// checkpoint all have.
package gang

import (
	"math"
	"slices"
	"time"
)

// Progress is how far a replica is.
type Progress struct {
	// Begun is how many iterations it has begun at least, or was to rest after.
	Begun int
	// Margin is how many iterations beyond what was begun it was to rest after. 0: it was not to rest.
	Margin int
	// Iteration is the time of an iteration. 0: it is not known.
	Iteration time.Duration
	// Every is the time between two checkpoints, if the replica trains. 0: it takes none by time.
	Every time.Duration
}

// RestPoint is after how many iterations replicas rest, or take a checkpoint: more than any of them has begun. The
// margin beyond that is large enough for them to hear of it in time, and twice the one before if they heard of that too
// late. They seem to hear too late also of a checkpoint that cannot be written; so the margin is at most the iterations
// between two checkpoints.
func RestPoint(replicas []Progress, late bool) (at, margin int) {
	begun, least, wanted, most := 0, 2, 0, math.MaxInt
	for _, r := range replicas {
		begun, wanted = max(begun, r.Begun), max(wanted, r.Margin)
		if r.Iteration == 0 {
			continue
		}
		least = max(least, 2+int(time.Second/r.Iteration))
		if r.Every > 0 {
			most = min(most, int(r.Every/r.Iteration))
		}
	}
	if late {
		wanted *= 2
	}
	margin = max(least, min(wanted, most))
	return begun + margin, margin
}

// Run is a range of checkpoints that a replica has taken one after the other, and still has: the first after From
// iterations, the last after To iterations, and one every so many iterations between them.
type Run struct{ From, To int }

// Checkpoints are those that a replica has, as far as its executor has said.
type Checkpoints []Run

// Contains reports whether there is one after so many iterations, of those that are taken every so many.
func (c Checkpoints) Contains(iteration, every int) bool {
	return slices.ContainsFunc(c, func(r Run) bool {
		return r.To == iteration ||
			r.From <= iteration && iteration < r.To && every > 0 && (r.To-iteration)%every == 0
	})
}

// Add returns them with one more run, which takes the place of those within it.
func (c Checkpoints) Add(r Run) Checkpoints {
	return append(slices.DeleteFunc(c, func(o Run) bool { return r.From <= o.From && o.To <= r.To }), r)
}

// Trim returns the runs that end after more than so many iterations.
func (c Checkpoints) Trim(iteration int) Checkpoints {
	return slices.DeleteFunc(c, func(r Run) bool { return r.To <= iteration })
}

// NewestCommon is after how many iterations the newest checkpoint was taken that all replicas have, at least from.
func NewestCommon(from int, replicas []Checkpoints, every int) int {
	for _, c := range replicas {
		for _, r := range c { // the newest of a run is its last
			lacks := func(o Checkpoints) bool { return !o.Contains(r.To, every) }
			if r.To > from && !slices.ContainsFunc(replicas, lacks) {
				from = r.To
			}
		}
	}
	return from
}
