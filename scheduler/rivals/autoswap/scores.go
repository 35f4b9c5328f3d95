package autoswap

import (
	"math"
	"slices"
	"time"

	"tensile/graph"
)

// Score is what variables are ranked by (section IV-B, C).
type Score string

// The scores.
const (
	BO    Score = "bo"    // the mixture of the four others that Bayesian optimisation finds
	DOA   Score = "doa"   // duration of absence
	AOA   Score = "aoa"   // area of absence
	WDOA  Score = "wdoa"  // weighted duration of absence
	SWDOA Score = "swdoa" // submodular weighted duration of absence
)

// basic are the four scores in the order of the mixture's weights (Equation 3).
var basic = [...]Score{AOA, DOA, WDOA, SWDOA}

// Scores lists all scores, the recommended one first.
func Scores() []Score { return []Score{BO, DOA, AOA, WDOA, SWDOA} }

// candidates returns the pauses over a slot of variables larger than a size (IV-A), but those that are picked.
func (it *Iteration) candidates(slot int, smallest graph.Bytes, picked []bool) []int {
	var all []int
	for i := range it.Pauses {
		if p := &it.Pauses[i]; !picked[i] && p.Bytes > smallest && p.crosses(slot, len(it.Took)) {
			all = append(all, i)
		}
	}
	return all
}

// scored are candidates with their scores, in the order of basic.
type scored struct {
	pauses []int
	scores [len(basic)][]float64
}

// score gives candidates their scores under a load.
func (it *Iteration) score(pauses []int, load []graph.Bytes) *scored {
	s := &scored{pauses: pauses}
	areas := it.areas(pauses, load)
	submodular := it.submodular(pauses, slices.Clone(areas))
	for k, i := range pauses {
		p := &it.Pauses[i]
		doa := float64(it.absence(p))
		aoa := float64(doa * float64(p.Bytes))
		if doa < 0 {
			aoa = doa / float64(p.Bytes) // "the product of the inverse of variable size and DOA"
		}
		for which, value := range [...]float64{aoa, doa, areas[k].float(), submodular[k].float()} {
			s.scores[which] = append(s.scores[which], value)
		}
	}
	return s
}

// absence is the duration of absence: the time between the accesses less that of the copies. It may be negative.
func (it *Iteration) absence(p *Pause) time.Duration {
	return it.start(p.To) - it.end(p.From) - p.Send - p.Fetch
}

// areas returns for each pause the area below a load between the accesses (WDOA).
func (it *Iteration) areas(pauses []int, load []graph.Bytes) []area {
	n := len(it.Took)
	before := make([]area, 2*n+1) // per unrolled slot: the area before it
	for slot := range 2 * n {
		before[slot+1] = before[slot].plus(areaOf(load[slot%n], it.Took[slot%n]))
	}
	all := make([]area, len(pauses))
	for k, i := range pauses {
		p := &it.Pauses[i]
		all[k] = before[p.To].minus(before[p.From+1])
	}
	return all
}

// submodular selects the pause of the largest area, takes its variable off the load, and so on to the last: each
// pause's score is its area when it is selected (SWDOA, figure 6). It overwrites the areas.
//
// What a selection takes off the area of another pause is the variable's bytes times the time in which both are away.
func (it *Iteration) submodular(pauses []int, areas []area) []area {
	took := it.tookBefore()
	scores := make([]area, len(pauses))
	left := make([]int, len(pauses)) // places in pauses
	for k := range left {
		left[k] = k
	}
	for len(left) > 0 {
		best := 0
		for at, k := range left {
			if areas[k].compare(areas[left[best]]) > 0 {
				best = at
			}
		}
		k := left[best]
		scores[k] = areas[k]
		left = slices.Delete(left, best, best+1)
		x := &it.Pauses[pauses[k]]
		for _, other := range left {
			y := &it.Pauses[pauses[other]]
			areas[other] = areas[other].minus(areaOf(x.Bytes, overlap(x, y, len(it.Took), took)))
		}
	}
	return scores
}

// tookBefore returns per unrolled slot what the slots before it take.
func (it *Iteration) tookBefore() []time.Duration {
	n := len(it.Took)
	before := make([]time.Duration, 2*n+1)
	for slot := range 2 * n {
		before[slot+1] = before[slot] + it.Took[slot%n]
	}
	return before
}

// overlap is how long two variables are away together in an iteration.
func overlap(x, y *Pause, n int, took []time.Duration) (sum time.Duration) {
	for _, shift := range [...]int{-n, 0, n} { // y in the iteration before, the same, the next
		from, to := max(x.From+1, y.From+1+shift), min(x.To, y.To+shift)
		if from < to {
			sum += took[to] - took[from]
		}
	}
	return sum
}

// standardise brings scores to mean 0 and deviation 1; equal ones to 0.
func standardise(scores []float64) []float64 {
	var mean, square float64
	n := float64(len(scores))
	for _, s := range scores {
		mean += s / n
	}
	for _, s := range scores {
		square += float64((s-mean)*(s-mean)) / n
	}
	deviation := math.Sqrt(square)
	all := make([]float64, len(scores))
	for i, s := range scores {
		if deviation > 0 {
			all[i] = (s - mean) / deviation
		}
	}
	return all
}

// order returns the candidates by a weighed sum of their standardised scores (Equation 3), highest first; among equals
// the larger, then the first.
func (s *scored) order(it *Iteration, weights []float64) []int {
	sums := make([]float64, len(s.pauses))
	for which, w := range weights {
		if w == 0 {
			continue
		}
		for k, x := range standardise(s.scores[which]) {
			sums[k] += float64(w * x)
		}
	}
	places := make([]int, len(s.pauses))
	for k := range places {
		places[k] = k
	}
	slices.SortStableFunc(places, func(a, b int) int {
		switch x, y := &it.Pauses[s.pauses[a]], &it.Pauses[s.pauses[b]]; {
		case sums[a] != sums[b]:
			if sums[a] > sums[b] {
				return -1
			}
			return 1
		case x.Bytes != y.Bytes:
			if x.Bytes > y.Bytes {
				return -1
			}
			return 1
		}
		return 0
	})
	for at, k := range places {
		places[at] = s.pauses[k]
	}
	return places
}

// weightsOf returns the weights of one of the four scores.
func weightsOf(s Score) []float64 {
	weights := make([]float64, len(basic))
	weights[slices.Index(basic[:], s)] = 1
	return weights
}
