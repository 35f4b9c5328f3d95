package bayes

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Options are the settings of Minimize. The zero value is recommended.
type Options struct {
	Evaluations int         // the most evaluations of the objective; 0: 30
	First       [][]float64 // points that are evaluated first
	Random      int         // random points that follow these, before the process is asked; 0: two per variable
	Seed        uint64
}

// Result is the best point that was evaluated, the first of equals.
type Result struct {
	X           []float64
	Y           float64
	Evaluations int
}

// Objective returns the value at a point, and whether it is good enough to end the search. It must not keep the point.
type Objective func(x []float64) (y float64, enough bool)

// Minimize looks for the least value of an objective in a box: low[i] <= x[i] <= high[i]. It evaluates one point at
// least. It takes O(n^3) time for n evaluations, besides these.
func Minimize(low, high []float64, f Objective, o Options) Result {
	if o.Evaluations <= 0 {
		o.Evaluations = 30
	}
	if o.Random <= 0 {
		o.Random = 2 * len(low)
	}
	s := &search{low: low, high: high, f: f, rng: rand.New(rand.NewPCG(o.Seed, 0))}
	for i := 0; i < o.Evaluations; i++ {
		var x []float64
		switch {
		case i < len(o.First):
			x = s.unit(o.First[i])
		case i < len(o.First)+o.Random:
			x = s.random()
		default:
			x = s.propose()
		}
		if s.evaluate(x) {
			break
		}
	}
	return Result{s.scale(s.points[s.best]), s.values[s.best], len(s.points)}
}

// search is what is known of the objective. Its points are in the unit cube.
type search struct {
	low, high []float64
	f         Objective
	rng       *rand.Rand
	points    [][]float64
	values    []float64
	best      int
}

func (s *search) evaluate(x []float64) (enough bool) {
	y, enough := s.f(s.scale(x))
	s.points, s.values = append(s.points, x), append(s.values, y)
	if y < s.values[s.best] {
		s.best = len(s.values) - 1
	}
	return enough
}

// scale maps a point of the unit cube into the box, unit the other way.
func (s *search) scale(x []float64) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = min(s.high[i], s.low[i]+float64(x[i]*(s.high[i]-s.low[i])))
	}
	return y
}

func (s *search) unit(x []float64) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		if s.high[i] > s.low[i] {
			y[i] = (x[i] - s.low[i]) / (s.high[i] - s.low[i])
		}
	}
	return y
}

func (s *search) random() []float64 {
	x := make([]float64, len(s.low))
	for i := range x {
		x[i] = s.rng.Float64()
	}
	return x
}

// neighbour returns a point some way off another.
func (s *search) neighbour(x []float64, width float64) []float64 {
	y := slices.Clone(x)
	for i := range y {
		y[i] = max(0, min(1, y[i]+float64(width*s.rng.NormFloat64())))
	}
	return y
}

// propose returns the point of the largest expected improvement among some.
func (s *search) propose() []float64 {
	const anywhere, around = 128, 16 // points
	p := likeliest(s.points, s.values)
	var best []float64
	most := math.Inf(-1)
	try := func(x []float64) {
		if gain := p.improvement(x, s.values[s.best]); gain > most {
			best, most = x, gain
		}
	}
	for range anywhere {
		try(s.random())
	}
	for _, width := range [...]float64{0.01, 0.1} {
		for range around {
			try(s.neighbour(s.points[s.best], width))
		}
	}
	return best
}
