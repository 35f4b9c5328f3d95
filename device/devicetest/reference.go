package devicetest

import (
	"math"

	"tensile/plan/compile"
)

// results trains Tiny and compares losses and weights with a plain computation in float64.
func results(c *crew) {
	needData(c)
	const iterations = 4
	const near = 1e-4
	g := Tiny()
	got := c.run(g, iterations, Build(c.t, c.d, g, Swapped(g), compile.Options{}))
	r := newReference()
	for _, s := range g.Storages {
		if s.Name != "loss.0" {
			continue
		}
		for i := range iterations {
			want := r.step(i)
			if x := got.outputs[delivery{i, s.ID}]; len(x) != 1 || math.Abs(float64(x[0][0])-want) > near {
				c.t.Errorf("loss of iteration %d is %v, want %v once", i, x, want)
			}
		}
	}
	for name, want := range map[string][]float64{"w1": r.w1, "b1": r.b1, "w2": r.w2, "w2.m": r.m} {
		for i, w := range want {
			if x := float64(got.weights[name][i]); !(math.Abs(x-w) <= near) {
				c.t.Errorf("%s[%d] is %v after %d iterations, want %v", name, i, x, iterations, w)
			}
		}
	}
}

// The extents of Tiny: batch, inputs, hidden units, classes.
const nB, nI, nH, nC = 4, 6, 5, 3

// reference is Tiny by the book.
type reference struct{ w1, b1, w2, m []float64 }

func newReference() *reference {
	r := &reference{}
	to := map[string]*[]float64{"w1": &r.w1, "b1": &r.b1, "w2": &r.w2, "w2.m": &r.m}
	for _, s := range Tiny().Storages {
		if v, ok := to[s.Name]; ok {
			first := make([]float32, s.Bytes/4)
			fill(first, s)
			for _, x := range first {
				*v = append(*v, float64(x))
			}
		}
	}
	return r
}

// step trains one iteration and returns the loss.
func (r *reference) step(iteration int) (loss float64) {
	var dw1 [nH * nI]float64
	var db1 [nH]float64
	var dw2 [nC * nH]float64
	for b := range nB {
		var x [nI]float64
		for i := range x {
			x[i] = float64(inputAt("x", iteration, b*nI+i))
		}
		var h, act [nH]float64
		for k := range h {
			h[k] = r.b1[k]
			for i := range x {
				h[k] += r.w1[k*nI+i] * x[i]
			}
			act[k] = max(h[k], 0)
		}
		p, label := r.classify(act), int(inputAt("labels", iteration, b))
		loss -= math.Log(p[label]) / nB
		p[label]--
		for k := range h {
			var d float64
			for c := range p {
				dz := p[c] / nB
				dw2[c*nH+k] += dz * act[k]
				d += dz * r.w2[c*nH+k]
			}
			if h[k] <= 0 {
				continue
			}
			db1[k] += d
			for i := range x {
				dw1[k*nI+i] += d * x[i]
			}
		}
	}
	r.update(dw1[:], db1[:], dw2[:])
	return loss
}

// classify returns the probabilities of the classes.
func (r *reference) classify(act [nH]float64) (p [nC]float64) {
	var sum float64
	for c := range p {
		for k, a := range act {
			p[c] += r.w2[c*nH+k] * a
		}
		p[c] = math.Exp(p[c])
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

func (r *reference) update(dw1, db1, dw2 []float64) {
	for i, d := range dw1 {
		r.w1[i] -= rate * d
	}
	for i, d := range db1 {
		r.b1[i] -= rate * d
	}
	for i, d := range dw2 {
		r.m[i] = 0.9*r.m[i] + d
		r.w2[i] -= rate * r.m[i]
	}
}
