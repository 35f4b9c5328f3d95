package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"tensile/device/cuda/kernels"
	"tensile/graph"
)

// Rates are what a device does when nothing else runs on it, by its own events, in the fastest of several runs and in
// their median.
type Rates struct {
	Copies      []CopyRate    `json:"copies"`
	Products    []ProductRate `json:"products"`
	Overlap     Overlap       `json:"overlap"`
	CopiesAfter []CopyRate    `json:"copies_after"` // once more: how far the device is the same at both ends
}

// Took is how long something took.
type Took struct {
	Best   time.Duration `json:"best_ns"`
	Median time.Duration `json:"median_ns"`
}

// CopyRate is how long copies of pinned memory take, each direction alone and both at once.
type CopyRate struct {
	Bytes   graph.Bytes `json:"bytes"`
	Out     Took        `json:"out"` // device to host
	In      Took        `json:"in"`
	BothOut Took        `json:"both_out"`
	BothIn  Took        `json:"both_in"`
}

// ProductRate is how long the product of two square matrices of float32 takes, 2*Side^3 operations. The elements are
// random: products of equal ones take less power, and so are faster.
type ProductRate struct {
	Side int  `json:"side"`
	Took Took `json:"took"`
}

// Overlap is how long a product and copies in both directions take alone and beside each other.
type Overlap struct {
	Side     int         `json:"side"`
	Bytes    graph.Bytes `json:"bytes"` // Size of the copy in each direction.
	Product  Took        `json:"product"`
	Copies   Took        `json:"copies"`
	Together Took        `json:"together"`
}

// Hidden is the part of the shorter of both that did not add to the time of the longer.
func (o Overlap) Hidden() float64 {
	product, copies, together := o.Product.Best, o.Copies.Best, o.Together.Best
	return float64(product+copies-together) / float64(max(1, min(product, copies)))
}

// Rates measures copies of these sizes and products of these sides, at least one of each, after products have kept the
// device busy for a while: the clocks of one that was idle rise slowly. No job may be open.
func (d *Device) Rates(sizes []graph.Bytes, sides []int, warm time.Duration) (r Rates, err error) {
	defer d.enter()()
	m := meter{d: d}
	defer func() { err = errors.Join(err, m.close()) }()
	size, side := slices.Max(sizes), slices.Max(sides)
	if err := m.open(size, side); err != nil {
		return Rates{}, fmt.Errorf("measure the rates of %s: %w", d.Name(), err)
	}
	for begin := d.Now(); m.err == nil && d.Now()-begin < warm; {
		_, m.err = d.timed(m.streams[:1], []work{m.product(side)})
	}
	r.Copies = m.copies(sizes)
	for _, side := range sides {
		r.Products = append(r.Products, ProductRate{side, m.took(m.product(side))[0]})
	}
	r.Overlap = Overlap{Side: side, Bytes: size, Product: m.all(m.product(side)),
		Copies: m.all(m.copyOut(size), m.copyIn(size)), Together: m.all(m.product(side), m.copyOut(size),
			m.copyIn(size))}
	r.CopiesAfter = m.copies(sizes)
	if m.err != nil {
		return Rates{}, fmt.Errorf("measure the rates of %s: %w", d.Name(), m.err)
	}
	return r, nil
}

// meter times what is put on streams. After an error it does nothing more.
type meter struct {
	d                *Device
	streams          [3]Stream
	hosts            [2]*pinned // Host memory of copies out and in.
	there            [2]Address
	a, b, c, scratch Address // Matrices and scratch memory of products.
	err              error
}

// open gets what copies up to a size and products up to a side need.
func (m *meter) open(size graph.Bytes, side int) (err error) {
	driver := m.d.driver
	for i := range m.streams {
		if m.streams[i], err = driver.NewStream(); err != nil {
			return err
		}
	}
	for i := range m.hosts {
		if m.hosts[i], err = m.d.memory.get(size); err != nil {
			return err
		}
		if m.there[i], err = driver.Alloc(size); err != nil {
			return err
		}
	}
	matrix := graph.Bytes(side) * graph.Bytes(side) * graph.ElementBytes
	random := rand.New(rand.NewPCG(1, 1))
	for _, h := range m.hosts {
		content := h.slice(0, size).Float32()
		for i := range content {
			content[i] = 2*random.Float32() - 1
		}
	}
	for i, at := range m.there {
		if err := driver.CopyIn(m.streams[0], at, m.hosts[i].slice(0, size)); err != nil {
			return err
		}
	}
	for i, at := range []*Address{&m.a, &m.b, &m.c} {
		if *at, err = driver.Alloc(matrix); err != nil {
			return err
		}
		for done := graph.Bytes(0); done < matrix; done += size { // over and over, if a copy is less than a matrix
			part := m.hosts[i%2].slice(0, min(size, matrix-done))
			if err := driver.CopyIn(m.streams[0], *at+Address(done), part); err != nil {
				return err
			}
		}
	}
	if m.scratch, err = driver.Alloc(max(8, m.call(side).need)); err != nil {
		return err
	}
	return driver.Synchronize()
}

func (m *meter) close() error {
	driver := m.d.driver
	var problems []error
	for _, s := range m.streams {
		if s != 0 {
			problems = append(problems, driver.DestroyStream(s))
		}
	}
	for _, h := range m.hosts {
		problems = append(problems, m.d.memory.put(h))
	}
	for _, a := range []Address{m.there[0], m.there[1], m.a, m.b, m.c, m.scratch} {
		if a != 0 {
			problems = append(problems, driver.Release(a))
		}
	}
	return errors.Join(problems...)
}

func (m *meter) copyOut(size graph.Bytes) work {
	return func(s Stream) error { return m.d.driver.CopyOut(s, m.hosts[0].slice(0, size), m.there[0]) }
}

func (m *meter) copyIn(size graph.Bytes) work {
	return func(s Stream) error { return m.d.driver.CopyIn(s, m.there[1], m.hosts[1].slice(0, size)) }
}

// square is the product of two square matrices.
type square struct {
	kernels.Call
	need graph.Bytes // of scratch
}

func (m *meter) call(side int) square {
	shape := graph.Shape{1, side, side} // a batch of one
	c := kernels.Call{Kind: graph.MatMul, InShapes: []graph.Shape{shape, shape}, OutShapes: []graph.Shape{shape},
		In: []uint64{uint64(m.a), uint64(m.b)}, Out: []uint64{uint64(m.c)}, Scratch: uint64(m.scratch)}
	return square{c, kernels.Scratch(c.Kind, c.Attrs, c.InShapes, c.OutShapes)}
}

func (m *meter) product(side int) work {
	c := m.call(side)
	return func(s Stream) error {
		for _, l := range kernels.Launches(&c.Call) {
			f, err := m.d.function(l.Kernel)
			if err != nil {
				return err
			}
			launch := Launch{Function: f, Op: "product", Grid: l.Grid, Block: l.Block, Args: l.Args}
			if err := m.d.driver.Launch(s, launch); err != nil {
				return err
			}
		}
		return nil
	}
}

// repeats are how often each thing is timed.
const repeats = 5

// runs times work that begins together, each on a stream of its own.
func (m *meter) runs(all []work) [][]time.Duration {
	if m.err == nil {
		runs, err := m.d.runs(repeats, m.streams[:len(all)], all)
		if err == nil {
			return runs
		}
		m.err = err
	}
	return [][]time.Duration{make([]time.Duration, len(all))}
}

// took is how long each of such work takes.
func (m *meter) took(all ...work) []Took {
	runs := m.runs(all)
	took := make([]Took, len(all))
	for i := range took {
		var times []time.Duration
		for _, r := range runs {
			times = append(times, r[i])
		}
		slices.Sort(times)
		took[i] = Took{runs[0][i], times[len(times)/2]}
	}
	return took
}

// all is how long it takes until all of such work has ended.
func (m *meter) all(all ...work) Took {
	runs := m.runs(all)
	return Took{slices.Max(runs[0]), slices.Max(runs[len(runs)/2])}
}

// copies measures copies of sizes.
func (m *meter) copies(sizes []graph.Bytes) []CopyRate {
	var rates []CopyRate
	for _, size := range sizes {
		c := CopyRate{Bytes: size, Out: m.took(m.copyOut(size))[0], In: m.took(m.copyIn(size))[0]}
		both := m.took(m.copyOut(size), m.copyIn(size))
		c.BothOut, c.BothIn = both[0], both[1]
		rates = append(rates, c)
	}
	return rates
}
