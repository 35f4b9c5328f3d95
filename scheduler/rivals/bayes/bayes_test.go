package bayes

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	_ "tensile/internal/long" // the flag -long
)

// bowl has its least value, 0, at (0.3, -0.6).
func bowl(x []float64) (float64, bool) {
	return (x[0]-0.3)*(x[0]-0.3) + 2*(x[1]+0.6)*(x[1]+0.6), false
}

// branin is the usual test function of two variables; its least value is 0.397887.
func branin(x []float64) (float64, bool) {
	a := x[1] - 5.1/(4*math.Pi*math.Pi)*x[0]*x[0] + 5/math.Pi*x[0] - 6
	return a*a + 10*(1-1/(8*math.Pi))*math.Cos(x[0]) + 10, false
}

// Within 30 evaluations the least value is found nearly, and far better than by as many random points.
func TestMinimize(t *testing.T) {
	for _, test := range []struct {
		name      string
		f         Objective
		low, high []float64
		least     float64
		within    float64
	}{
		{"bowl", bowl, []float64{-1, -1}, []float64{1, 1}, 0, 0.02},
		{"branin", branin, []float64{-5, 0}, []float64{10, 15}, 0.397887, 1},
	} {
		var guided, guessed float64
		const seeds = 8
		for seed := range uint64(seeds) {
			r := Minimize(test.low, test.high, test.f, Options{Seed: seed})
			if r.Evaluations != 30 {
				t.Fatalf("%s, seed %d: %d evaluations", test.name, seed, r.Evaluations)
			}
			if y, _ := test.f(r.X); y != r.Y || r.Y > test.least+test.within {
				t.Errorf("%s, seed %d: %v at %v, there it is %v; the least value is %v", test.name, seed, r.Y, r.X, y,
					test.least)
			}
			all := Minimize(test.low, test.high, test.f, Options{Seed: seed, Random: 30})
			guided, guessed = guided+r.Y-test.least, guessed+all.Y-test.least
		}
		if guided > guessed/4 {
			t.Errorf("%s: %v above the least value on average, by random points %v", test.name, guided/seeds,
				guessed/seeds)
		}
	}
}

// The first points are evaluated first, as they are; equal calls have equal results; and an objective that is content
// ends the search.
func TestFirstPoints(t *testing.T) {
	first := [][]float64{{1, 0, 0}, {0, 1, -1}, {-1, -1, 1}}
	low, high := []float64{-1, -1, -1}, []float64{1, 1, 1}
	var seen [2][][]float64
	for i := range seen {
		Minimize(low, high, func(x []float64) (float64, bool) {
			for k := range x {
				if x[k] < low[k] || x[k] > high[k] {
					t.Errorf("point %v is outside of the box", x)
				}
			}
			seen[i] = append(seen[i], x)
			return x[0] * x[1], len(seen[i]) == 20
		}, Options{First: first})
	}
	if diff := cmp.Diff(first, seen[0][:3]); diff != "" {
		t.Errorf("first points (-want +got):\n%s", diff)
	}
	if len(seen[0]) != 20 {
		t.Errorf("%d evaluations, the objective was content with 20", len(seen[0]))
	}
	if diff := cmp.Diff(seen[0], seen[1]); diff != "" {
		t.Errorf("two equal calls:\n%s", diff)
	}
}

// A constant objective is no trouble, neither is a box without width, nor the same point again and again.
func TestDegenerate(t *testing.T) {
	r := Minimize([]float64{2, 0}, []float64{2, 1}, func(x []float64) (float64, bool) { return 7, false }, Options{})
	if r.Y != 7 || r.X[0] != 2 || r.Evaluations != 30 {
		t.Errorf("%+v", r)
	}
	Minimize([]float64{0}, []float64{0}, func(x []float64) (float64, bool) { return 7, false }, Options{})
	first := [][]float64{{0.5}, {0.5}, {0.5}}
	identity := func(x []float64) (float64, bool) { return x[0], false }
	Minimize([]float64{0}, []float64{1}, identity, Options{First: first})
}

// The process agrees with the textbook formulas, by an inverted matrix, and goes through the points that it has seen
// where there is no noise.
func TestProcess(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 2; n < 12; n++ {
		var points [][]float64
		var values []float64
		for range n {
			x := []float64{rng.Float64(), rng.Float64(), rng.Float64()}
			y, _ := bowl(x)
			points, values = append(points, x), append(values, 100+50*y)
		}
		p, ok := newProcess(points, values, 0.5, 1e-6)
		if !ok {
			t.Fatal("no factor")
		}
		inverse := mat.NewDense(n, n, nil)
		for i := range n {
			for j := range n {
				inverse.Set(i, j, p.kernel(points[i], points[j]))
			}
			inverse.Set(i, i, 1+1e-6)
		}
		if err := inverse.Inverse(inverse); err != nil {
			t.Fatal(err)
		}
		x := []float64{rng.Float64(), rng.Float64(), rng.Float64()}
		mean, left := 0.0, 1.0
		for i := range n {
			for j := range n {
				k := p.kernel(x, points[i]) * inverse.At(i, j)
				mean += k * (values[j] - p.mean) / p.spread
				left -= k * p.kernel(x, points[j])
			}
		}
		got, deviation := p.predict(x)
		if want := p.mean + p.spread*mean; math.Abs(got-want) > 1e-3 {
			t.Errorf("%d points: mean %v, want %v", n, got, want)
		}
		if want := p.spread * math.Sqrt(max(0, left)); math.Abs(deviation-want) > 1e-2 {
			t.Errorf("%d points: deviation %v, want %v", n, deviation, want)
		}
		for i := range n {
			if got, deviation := p.predict(points[i]); math.Abs(got-values[i]) > 0.1 || deviation > 0.1 {
				t.Errorf("%d points: %v +- %v at a point where it is %v", n, got, deviation, values[i])
			}
		}
	}
}

// The expected improvement is that of a mean over many draws.
func TestImprovement(t *testing.T) {
	points, values := [][]float64{{0.1}, {0.5}, {0.8}}, []float64{3, 1, 2}
	p, _ := newProcess(points, values, 0.3, 1e-6)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, x := range []float64{0, 0.3, 0.45, 0.65, 1} {
		mean, deviation := p.predict([]float64{x})
		var sum float64
		const draws = 200_000
		for range draws {
			sum += max(0, 1-(mean+deviation*rng.NormFloat64()))
		}
		if got := p.improvement([]float64{x}, 1); math.Abs(got-sum/draws) > 0.01 {
			t.Errorf("at %v: %v, want %v", x, got, sum/draws)
		}
	}
}
