package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Kind is what a job may train: a network, and its batch.
type Kind struct {
	Model string
	Batch int
}

// Mix are the kinds of jobs of traces that do not say what they train: the five networks of TENSILE's paper and two of
// words. At these batches, one to five of them fill a device of 48 GiB.
var Mix = []Kind{{"vgg16", 32}, {"inceptionv3", 32}, {"inceptionv4", 32}, {"resnet50", 64}, {"densenet121", 32},
	{"bert", 8}, {"resnet18", 64}}

// Generator makes up a trace.
type Generator struct {
	// Jobs is how many jobs arrive.
	Jobs int
	Seed uint64
	// Gap is the mean time between two arrivals, which are a Poisson process.
	Gap time.Duration
	// Fewest and Most are the iterations of the shortest and the longest jobs.
	Fewest int
	Most   int
	// Tail is the exponent of the Pareto distribution of lengths between Fewest and Most. The smaller it is, the longer
	// are the jobs.
	Tail float64
	// Tenants is how many tenants there are. Each has as many jobs as the others, in the mean.
	Tenants int
	// Mix are the kinds of jobs. Each is as frequent as the others, in the mean.
	Mix []Kind
}

// Check returns an error that names the flag of a field with an impossible value.
func (g Generator) Check() error {
	switch {
	case g.Jobs < 1 || g.Jobs > 1_000_000:
		return fmt.Errorf("--jobs %d: give 1 to 1000000", g.Jobs)
	case g.Gap < 0 || g.Gap > maxTime/time.Duration(g.Jobs):
		return fmt.Errorf("--gap %v: give 0 to %v, with which %d jobs come in ten years", g.Gap,
			maxTime/time.Duration(g.Jobs), g.Jobs)
	case g.Fewest < 1 || g.Most < g.Fewest || g.Most > math.MaxInt32:
		return fmt.Errorf("--iterations %d to %d: give a range from 1 on, such as 100-100000", g.Fewest, g.Most)
	case !(g.Tail > 0 && g.Tail <= 10):
		return fmt.Errorf("--tail %v: give more than 0, up to 10", g.Tail)
	case g.Tenants < 1 || g.Tenants > g.Jobs:
		return fmt.Errorf("--tenants %d: give 1 to as many as there are jobs", g.Tenants)
	case len(g.Mix) == 0:
		return fmt.Errorf("--mix is empty: give networks with batches, such as 'resnet50/64 vgg16/32'")
	}
	return nil
}

// Trace makes up arrivals. Equal generators make equal arrivals.
func (g Generator) Trace() []Arrival {
	rng := rand.New(rand.NewPCG(g.Seed, 0))
	var all []Arrival
	var now time.Duration
	for i := range g.Jobs {
		if i > 0 {
			now = min(maxTime, now+time.Duration(rng.ExpFloat64()*float64(g.Gap)).Round(time.Millisecond))
		}
		k := g.Mix[rng.IntN(len(g.Mix))]
		all = append(all, Arrival{Submit: now, Model: k.Model, Batch: k.Batch, Iterations: g.length(rng.Float64()),
			Tenant: fmt.Sprintf("tenant%d", 1+rng.IntN(g.Tenants))})
	}
	return all
}

// length is the quantile of a Pareto distribution that is cut off at both ends.
func (g Generator) length(quantile float64) int {
	low, high := math.Pow(float64(g.Fewest), -g.Tail), math.Pow(float64(g.Most), -g.Tail)
	n := math.Pow(low-quantile*(low-high), -1/g.Tail)
	return min(g.Most, max(g.Fewest, int(math.Round(n))))
}
