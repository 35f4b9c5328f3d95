package bayes

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// process is a Gaussian process that has seen some points. Its values have mean 0 and deviation 1.
type process struct {
	points         [][]float64
	mean, spread   float64 // mean and spread of the values as they were given
	length, noise  float64
	factor         mat.Cholesky  // the factor of the points' covariances
	weights        *mat.VecDense // inverse covariances times values
	values         *mat.VecDense
	logLikelihood  float64
	common, solved *mat.VecDense // the covariances of the point that is asked for, and what predict makes of them
}

// lengths and noises are the grid of hyperparameters; a length of 1 is the side of the cube.
var (
	lengths = [...]float64{0.1, 0.2, 0.4, 0.8, 1.6}
	noises  = [...]float64{1e-6, 1e-3, 1e-1} // variances
)

// likeliest returns the process of the grid under which the values are likeliest.
func likeliest(points [][]float64, values []float64) *process {
	var best *process
	for _, length := range lengths {
		for _, noise := range noises {
			if p, ok := newProcess(points, values, length, noise); ok && (best == nil ||
				p.logLikelihood > best.logLikelihood) {
				best = p
			}
		}
	}
	if best == nil {
		panic("bayes: no covariances of the grid are positive definite")
	}
	return best
}

// newProcess returns false if rounding leaves the covariances without a factor.
func newProcess(points [][]float64, values []float64, length, noise float64) (*process, bool) {
	n := len(points)
	p := &process{points: points, length: length, noise: noise}
	p.mean, p.spread = meanAndSpread(values)
	p.values, p.weights = mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	p.common, p.solved = mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	covariances := mat.NewSymDense(n, nil)
	for i := range n {
		p.values.SetVec(i, (values[i]-p.mean)/p.spread)
		for j := i; j < n; j++ {
			c := p.kernel(points[i], points[j])
			if i == j {
				c += noise
			}
			covariances.SetSym(i, j, c)
		}
	}
	if !p.factor.Factorize(covariances) || p.factor.SolveVecTo(p.weights, p.values) != nil {
		return nil, false
	}
	p.logLikelihood = -(mat.Dot(p.values, p.weights) + p.factor.LogDet() + float64(n)*math.Log(2*math.Pi)) / 2
	return p, true
}

// meanAndSpread returns mean and standard deviation of values; the deviation of equal ones is 1.
func meanAndSpread(values []float64) (mean, spread float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		spread += float64((v-mean)*(v-mean)) / float64(len(values))
	}
	if spread = math.Sqrt(spread); spread == 0 {
		spread = 1
	}
	return mean, spread
}

// kernel is Matern 5/2: what the values at two points have in common, from 1 at the same point to 0 far away.
func (p *process) kernel(x, y []float64) float64 {
	var square float64
	for i := range x {
		square += float64((x[i] - y[i]) * (x[i] - y[i]))
	}
	r := math.Sqrt(5*square) / p.length
	return (1 + r + r*r/3) * math.Exp(-r)
}

// predict returns mean and deviation of the value at a point, as values were given.
func (p *process) predict(x []float64) (mean, deviation float64) {
	for i := range p.points {
		p.common.SetVec(i, p.kernel(x, p.points[i]))
	}
	if err := p.factor.SolveVecTo(p.solved, p.common); err != nil {
		return p.mean, p.spread // nothing is known there for rounding
	}
	mean = mat.Dot(p.common, p.weights)
	variance := max(0, 1-mat.Dot(p.common, p.solved))
	return p.mean + p.spread*mean, p.spread * math.Sqrt(variance)
}

// improvement is by how much the value at a point is expected to be below the best one, 0 where it is above.
func (p *process) improvement(x []float64, best float64) float64 {
	mean, deviation := p.predict(x)
	if deviation == 0 {
		return max(0, best-mean)
	}
	z := (best - mean) / deviation
	density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
	return (best-mean)*math.Erfc(-z/math.Sqrt2)/2 + deviation*density
}
