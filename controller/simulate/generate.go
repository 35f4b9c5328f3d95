package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Kind is what a job may be: a network of package workload, and its batch.
type Kind struct {
	Model string
	Batch int
}

// Mix are the kinds of jobs of traces that do not say what they train: TENSILE's five networks and two of words, at
// batches with which one to five of them fill a device of 48 GiB.
var Mix = []Kind{{"vgg16", 32}, {"inceptionv3", 32}, {"inceptionv4", 32}, {"resnet50", 64}, {"densenet121", 32},
	{"bert", 8}, {"resnet18", 64}}

// Generator makes up a trace.
type Generator struct {
	Jobs    int
	Seed    uint64
	Gap     time.Duration // between two arrivals, in the mean: they are a Poisson process
	Fewest  int           // iterations of the shortest jobs
	Most    int           // of the longest
	Tail    float64       // exponent of the Pareto distribution of lengths between these two: the less, the longer
	Tenants int           // jobs belong to one of so many, each as often as the others
	Mix     []Kind        // that jobs are of, each as often as the others
}

// Check returns an error that says which field cannot be, by the name of its flag.
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

// Trace makes up arrivals, equal ones for equal generators.
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
