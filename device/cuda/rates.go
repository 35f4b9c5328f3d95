package cuda

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/device/cuda/kernels"
	"tensile/graph"
)

// Rates are what a device does when nothing else runs on it, by its own events.
type Rates struct {
	Copies   []CopyRate    `json:"copies"`
	Products []ProductRate `json:"products"`
	Overlap  Overlap       `json:"overlap"`
}

// CopyRate is how long copies of pinned memory take, each direction alone and both at once.
type CopyRate struct {
	Bytes   graph.Bytes   `json:"bytes"`
	Out     time.Duration `json:"out_ns"` // device to host
	In      time.Duration `json:"in_ns"`
	BothOut time.Duration `json:"both_out_ns"`
	BothIn  time.Duration `json:"both_in_ns"`
}

// ProductRate is how long the product of two square matrices of float32 takes, 2*Side^3 operations.
type ProductRate struct {
	Side int           `json:"side"`
	Took time.Duration `json:"took_ns"`
}

// Overlap is how long a product and copies in both directions take alone and beside each other.
type Overlap struct {
	Side     int           `json:"side"`
	Bytes    graph.Bytes   `json:"bytes"` // of each direction
	Product  time.Duration `json:"product_ns"`
	Copies   time.Duration `json:"copies_ns"`
	Together time.Duration `json:"together_ns"`
}

// Hidden is the part of the shorter of both that did not add to the time of the longer.
func (o Overlap) Hidden() float64 {
	return float64(o.Product+o.Copies-o.Together) / float64(max(1, min(o.Product, o.Copies)))
}

// Rates measures copies of these sizes and products of these sides, at least one of each. No job may be open.
func (d *Device) Rates(sizes []graph.Bytes, sides []int) (r Rates, err error) {
	defer d.enter()()
	m := meter{d: d}
	defer func() { err = errors.Join(err, m.close()) }()
	size, side := slices.Max(sizes), slices.Max(sides)
	if err := m.open(size, side); err != nil {
		return Rates{}, fmt.Errorf("measure the rates of %s: %w", d.Name(), err)
	}
	for _, size := range sizes {
		c := CopyRate{Bytes: size}
		c.Out = m.best(m.out(size))[0]
		c.In = m.best(m.in(size))[0]
		both := m.best(m.out(size), m.in(size))
		c.BothOut, c.BothIn = both[0], both[1]
		r.Copies = append(r.Copies, c)
	}
	for _, side := range sides {
		r.Products = append(r.Products, ProductRate{side, m.best(m.product(side))[0]})
	}
	o := Overlap{Side: side, Bytes: size}
	o.Product = slices.Max(m.best(m.product(side)))
	o.Copies = slices.Max(m.best(m.out(size), m.in(size)))
	o.Together = slices.Max(m.best(m.product(side), m.out(size), m.in(size)))
	r.Overlap = o
	if m.err != nil {
		return Rates{}, fmt.Errorf("measure the rates of %s: %w", d.Name(), m.err)
	}
	return r, nil
}

// meter times what is put on streams. After an error it does nothing more.
type meter struct {
	d                *Device
	streams          [3]Stream
	hosts            [2]*pinned // of copies out and in
	there            [2]Address
	a, b, c, scratch Address // of products
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
	for _, at := range []*Address{&m.a, &m.b, &m.c} {
		if *at, err = driver.Alloc(matrix); err != nil {
			return err
		}
		if err := driver.Fill(m.streams[0], *at, 0x3f800000, side*side); err != nil { // ones
			return err
		}
	}
	for _, at := range m.there {
		if err := driver.Fill(m.streams[0], at, 0, int(size/graph.ElementBytes)); err != nil {
			return err
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

func (m *meter) out(size graph.Bytes) work {
	return func(s Stream) error { return m.d.driver.CopyOut(s, m.hosts[0].at(0, size), m.there[0]) }
}

func (m *meter) in(size graph.Bytes) work {
	return func(s Stream) error { return m.d.driver.CopyIn(s, m.there[1], m.hosts[1].at(0, size)) }
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

// best is how long work takes that begins together, each on a stream of its own.
func (m *meter) best(all ...work) []time.Duration {
	took := make([]time.Duration, len(all))
	if m.err == nil {
		var err error
		if took, err = m.d.best(m.streams[:len(all)], all...); err != nil {
			m.err, took = err, make([]time.Duration, len(all))
		}
	}
	return took
}
