package bench

import "time"

// What runs are compared by. Few iterations say nothing: some are cold, and a machine's other work weighs too much.
const (
	leastIterations = 10 // that an overhead is worked out for
	leastBlock      = 4  // iterations, of which the first is cold
	mostBlocks      = 8
)

// Blocks divides the iterations of a run that is compared with another. Both train a block in turns. It returns after how
// many iterations each block ends.
func Blocks(iterations int) []int {
	n := max(1, min(iterations/leastBlock, mostBlocks))
	ends := make([]int, n)
	for i := range ends {
		ends[i] = iterations * (i + 1) / n
	}
	return ends
}

// spread is a ratio over all blocks of two runs, and the least and the largest of one block.
type spread struct{ value, low, high float64 }

// everyJob stands for all jobs of a run together.
const everyJob = -1

// overhead is the time of a run's iterations over that of the vanilla run, of one job or of everyJob. The first iteration
// of a block, after Home, is left out on both sides. nil: too few iterations were trained or reported.
func (r *Run) overhead(vanilla *Run, job int) *spread {
	if r.iterations() < leastIterations || r.iterations() != vanilla.iterations() {
		return nil
	}
	var s spread
	var planned, plain time.Duration
	from := 0
	for _, to := range Blocks(r.iterations()) {
		a, b := r.block(job, from, to), vanilla.block(job, from, to)
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

// iterations is how many every job has trained.
func (r *Run) iterations() int {
	least := r.Jobs[0].Iterations
	for _, j := range r.Jobs {
		least = min(least, j.Iterations)
	}
	return least
}

// block is the mean time of the iterations from to to but for the first, of a job, or of that which takes longest; 0 if one
// was not reported at all.
func (r *Run) block(job, from, to int) time.Duration {
	if job != everyJob {
		return r.Jobs[job].Watched.mean(from+1, to)
	}
	var longest time.Duration
	for i := range r.Jobs {
		longest = max(longest, r.block(i, from, to))
	}
	return longest
}

// mean is that of the iterations [from, to) that were reported.
func (w *Watched) mean(from, to int) time.Duration {
	var sum time.Duration
	n := 0
	for i := from; i < min(to, len(w.walls)); i++ {
		if w.walls[i] > 0 {
			sum += w.walls[i]
			n++
		}
	}
	return sum / time.Duration(max(1, n))
}
