package predictor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	_ "go4.org/unsafe/assume-no-moving-gc" // without it gorgonia refuses to start
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// outputs of a network: log efficiencies at the median and the 95th percentile.
const outputs = 2

// table is what a network is trained on.
type table struct {
	x      []float32 // rows x width
	width  int
	y      []float32 // target per row
	secret [2]int    // columns [from, to) that are cleared at random: the identity of the device
}

// fitting is how a network is trained.
type fitting struct {
	hidden   []int
	epochs   int
	batch    int
	rate     float64 // Highest learning rate.
	drop     float64 // share of rows whose secret is cleared
	seed     uint64
	progress func(epoch int, loss float64)
}

// building guards gorgonia while it makes a graph, which is not safe on several goroutines.
var building sync.Mutex

// trainer is a network with its loss as a gorgonia graph over one batch.
type trainer struct {
	layers         []layer
	params         gorgonia.Nodes
	x, y           []float32 // backing of the batch
	loss           gorgonia.Value
	machine        gorgonia.VM
	solver         gorgonia.Solver
	batch, columns int
}

// fit trains a network on a table with Adam, a warm-up and a cosine decay. The loss is the pinball loss of each
// output's quantile in the logarithm: of the median that is the mean relative error, nearly.
func fit(t *table, f fitting) ([]layer, error) {
	rng := rand.New(rand.NewPCG(f.seed, 0x70726564))
	rows := len(t.y)
	m, err := newTrainer(t.width, min(f.batch, rows), f, rng)
	if err != nil {
		return nil, fmt.Errorf("build the training graph: %w", err)
	}
	defer m.machine.Close()
	order := rng.Perm(rows)
	perEpoch := rows / m.batch
	const warm = 200
	step := 0
	for epoch := range f.epochs {
		rng.Shuffle(rows, func(i, j int) { order[i], order[j] = order[j], order[i] })
		var sum float64
		for at := range perEpoch {
			m.load(t, order[at*m.batch:][:m.batch], f.drop, rng)
			done := float64(step) / float64(f.epochs*perEpoch)
			loss, err := m.step(f.rate * min(1, float64(step+1)/warm) * (1 + math.Cos(math.Pi*done)) / 2)
			if err != nil {
				return nil, fmt.Errorf("train: step %d: %w", step, err)
			}
			sum += loss
			step++
		}
		if f.progress != nil {
			f.progress(epoch+1, sum/float64(perEpoch))
		}
	}
	return m.result(), nil
}

func newTrainer(width, batch int, f fitting, rng *rand.Rand) (*trainer, error) {
	building.Lock()
	defer building.Unlock()
	m := &trainer{batch: batch, columns: width, x: make([]float32, batch*width), y: make([]float32, batch*outputs)}
	g := gorgonia.NewGraph()
	leaf := func(name string, rows, columns int, data []float32) *gorgonia.Node {
		return gorgonia.NodeFromAny(g, tensor.New(tensor.WithShape(rows, columns), tensor.WithBacking(data)),
			gorgonia.WithName(name))
	}
	ones := newFilled(batch, 1)
	one := leaf("one", batch, 1, ones)
	h := leaf("x", batch, width, m.x)
	sizes := append(append([]int{width}, f.hidden...), outputs)
	for l := range len(sizes) - 1 {
		last := l+2 == len(sizes)
		a := random(sizes[l], sizes[l+1], last, rng)
		m.layers = append(m.layers, a)
		w, b := leaf(fmt.Sprint("w", l), a.In, a.Out, a.W), leaf(fmt.Sprint("b", l), 1, a.Out, a.B)
		m.params = append(m.params, w, b)
		product, err := gorgonia.Mul(h, w)
		if err != nil {
			return nil, err
		}
		bias, err := gorgonia.Mul(one, b) // faster than a broadcast
		if err != nil {
			return nil, err
		}
		if h, err = gorgonia.Add(product, bias); err != nil {
			return nil, err
		}
		if !last {
			if h, err = gorgonia.Rectify(h); err != nil {
				return nil, err
			}
		}
	}
	loss, err := pinball(h, leaf, m.y, batch)
	if err != nil {
		return nil, err
	}
	gorgonia.Read(loss, &m.loss)
	if _, err := gorgonia.Grad(loss, m.params...); err != nil {
		return nil, err
	}
	m.machine = gorgonia.NewTapeMachine(g, gorgonia.BindDualValues(m.params...))
	m.solver = gorgonia.NewAdamSolver(gorgonia.WithLearnRate(f.rate))
	return m, nil
}

// pinball is the mean over the batch of |e|/2 + (q-1/2)e per output, e = y - h; the outer quantile counts half.
func pinball(h *gorgonia.Node, leaf func(string, int, int, []float32) *gorgonia.Node, y []float32,
	batch int) (*gorgonia.Node, error) {
	half, tilt := make([]float32, batch*outputs), make([]float32, batch*outputs)
	for i := range batch {
		n := float32(batch)
		half[2*i], half[2*i+1] = 0.5/n, 0.25/n
		tilt[2*i], tilt[2*i+1] = 0, 0.5*(0.95-0.5)/n
	}
	e, err := gorgonia.Sub(leaf("y", batch, outputs, y), h)
	if err != nil {
		return nil, err
	}
	size, err := gorgonia.Abs(e)
	if err != nil {
		return nil, err
	}
	if size, err = gorgonia.HadamardProd(leaf("half", batch, outputs, half), size); err != nil {
		return nil, err
	}
	side, err := gorgonia.HadamardProd(leaf("tilt", batch, outputs, tilt), e)
	if err != nil {
		return nil, err
	}
	total, err := gorgonia.Add(size, side)
	if err != nil {
		return nil, err
	}
	return gorgonia.Sum(total)
}

// random is a layer to begin with; the last begins near 0, which is the roofline.
func random(in, out int, last bool, rng *rand.Rand) layer {
	a := layer{In: in, Out: out, W: make([]float32, in*out), B: make([]float32, out)}
	scale := math.Sqrt(2 / float64(in))
	if last {
		scale /= 10
	}
	for i := range a.W {
		a.W[i] = float32(rng.NormFloat64() * scale)
	}
	return a
}

func newFilled(n int, v float32) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = v
	}
	return x
}

// load fills the batch.
func (m *trainer) load(t *table, rows []int, drop float64, rng *rand.Rand) {
	for i, r := range rows {
		x := m.x[i*m.columns:][:m.columns]
		copy(x, t.x[r*m.columns:])
		if rng.Float64() < drop {
			clear(x[t.secret[0]:t.secret[1]])
		}
		m.y[2*i], m.y[2*i+1] = t.y[r], t.y[r]
	}
}

func (m *trainer) step(rate float64) (loss float64, err error) {
	gorgonia.WithLearnRate(rate)(m.solver)
	if err := m.machine.RunAll(); err != nil {
		return 0, err
	}
	loss = float64(m.loss.Data().(float32))
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return 0, fmt.Errorf("the loss is %v", loss)
	}
	if err := m.solver.Step(gorgonia.NodesToValueGrads(m.params)); err != nil {
		return 0, err
	}
	m.machine.Reset()
	return loss, nil
}

// result takes the weights out of the graph.
func (m *trainer) result() []layer {
	for l := range m.layers {
		m.layers[l].W = m.params[2*l].Value().Data().([]float32)
		m.layers[l].B = m.params[2*l+1].Value().Data().([]float32)
	}
	return m.layers
}
