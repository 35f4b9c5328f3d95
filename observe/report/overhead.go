package report

import (
	"time"

	"tensile/controller/local"
)

// Limits of a comparison. Few iterations say nothing: some are cold, and background load weighs too much.
const (
	minIterations = 10 // below it there is no overhead
	minBlock      = 4  // iterations in a block, of which the first is cold
	maxBlocks     = 8
)

// Blocks divides the iterations of two runs that are compared: they alternate, a block of one and then a block of the
// other. It returns after how many iterations each block ends.
func Blocks(iterations int) []int {
	n := max(1, min(iterations/minBlock, maxBlocks))
	ends := make([]int, n)
	for i := range ends {
		ends[i] = iterations * (i + 1) / n
	}
	return ends
}

// spread is a ratio of two runs over all blocks, with the min and max over single blocks.
type spread struct{ value, low, high float64 }

// everyJob stands for all jobs of a run together.
const everyJob = -1

// overhead is the time of a run's iterations over that of the vanilla run, of one job or of everyJob. The first
// iteration of a block, after Home, is left out on both sides. nil: too few iterations were trained or reported.
func overhead(r, vanilla *local.Run, job int) *spread {
	if iterations(r) < minIterations || iterations(r) != iterations(vanilla) {
		return nil
	}
	var s spread
	var planned, plain time.Duration
	from := 0
	for _, to := range Blocks(iterations(r)) {
		a, b := block(r, job, from, to), block(vanilla, job, from, to)
		if from = to; a <= 0 || b <= 0 {
			continue
		}
		ratio := float64(a) / float64(b)
		if planned == 0 || ratio < s.low {
			s.low = ratio
		}
		s.high = max(s.high, ratio)
		planned, plain = planned+a, plain+b
	}
	if planned == 0 {
		return nil
	}
	s.value = float64(planned) / float64(plain)
	return &s
}

// iterations is how many iterations every job has complete.
func iterations(r *local.Run) int {
	n := r.Jobs[0].Iterations
	for _, j := range r.Jobs {
		n = min(n, j.Iterations)
	}
	return n
}

// block is the mean time of the iterations [from, to) without the first, which is cold: of a job, or for everyJob of
// the job that takes longest; 0 if nothing was reported.
func block(r *local.Run, job, from, to int) time.Duration {
	if job != everyJob {
		return r.Jobs[job].Watched.Mean(from+1, to)
	}
	var longest time.Duration
	for i := range r.Jobs {
		longest = max(longest, block(r, i, from, to))
	}
	return longest
}
