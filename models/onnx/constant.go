package onnx

import (
	"fmt"
	"math"

	"tensile/graph"
)

// maxFolded is how many elements a value that is known before the training may have, unless all are alike.
const maxFolded = 1 << 24

// constant is a value that is known before the training: whole numbers or floats, a single one if all are alike.
type constant struct {
	shape  graph.Shape
	whole  bool
	alike  bool
	ints   []int64
	floats []float64
}

func (c *constant) elements() int { return c.shape.Elements() }

// int and float are an element; a float becomes whole towards zero.
func (c *constant) int(i int) int64 {
	if !c.whole {
		return int64(c.float(i))
	}
	if c.alike {
		i = 0
	}
	return c.ints[i]
}

func (c *constant) float(i int) float64 {
	if c.alike {
		i = 0
	}
	if c.whole {
		return float64(c.ints[i])
	}
	return c.floats[i]
}

// allInts are the elements in order.
func (c *constant) allInts() ([]int64, error) {
	n := c.elements()
	if n > maxFolded { // alike: a small file can claim many
		return nil, fmt.Errorf("it takes a constant of %d elements, of which there may be %d", n, maxFolded)
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = c.int(i)
	}
	return v, nil
}

// scalar is the element of a constant that has one.
func (c *constant) scalar() (float64, error) {
	if n := c.elements(); n != 1 {
		return 0, fmt.Errorf("it takes a constant of %d elements, want 1", n)
	}
	return c.float(0), nil
}

// uniform is the value of all elements, if it is one.
func (c *constant) uniform() (float64, bool) {
	if c.alike {
		return c.float(0), true
	}
	n := c.elements()
	for i := range n {
		if c.float(i) != c.float(0) {
			return 0, false
		}
	}
	if n == 0 {
		return 0, false
	}
	return c.float(0), true
}

// make32 are the elements as a storage holds them. Infinite ones become the largest float, so that sums with them stay
// numbers.
func (c *constant) make32() []float32 {
	v := make([]float32, c.elements())
	for i := range v {
		v[i] = float32(max(-math.MaxFloat32, min(math.MaxFloat32, c.float(i))))
	}
	return v
}

// constantOf are the elements of a tensor.
func constantOf(t *Tensor) (*constant, error) {
	c := &constant{shape: make(graph.Shape, 0, len(t.Dims))}
	for _, d := range t.Dims {
		c.shape = append(c.shape, int(d))
	}
	var err error
	if t.Type.float() {
		var v []float32
		v, err = t.Floats()
		c.floats = make([]float64, len(v))
		for i, x := range v {
			c.floats[i] = float64(x)
		}
	} else {
		c.whole = true
		c.ints, err = t.Ints()
	}
	return c, err
}

func wholes(values ...int64) *constant {
	return &constant{shape: graph.Shape{len(values)}, whole: true, ints: values}
}

// gathered is a constant of a shape whose element i is that of from at a place.
func gathered(from *constant, shape graph.Shape, at func(i int) int) (*constant, error) {
	if err := countable(shape); err != nil {
		return nil, err
	}
	c := &constant{shape: shape, whole: from.whole, alike: from.alike}
	if from.alike {
		c.ints, c.floats = from.ints, from.floats
		return c, nil
	}
	n := shape.Elements()
	if n > maxFolded {
		return nil, fmt.Errorf("it makes a constant of %d elements, of which there may be %d", n, maxFolded)
	}
	for i := range n {
		if from.whole {
			c.ints = append(c.ints, from.ints[at(i)])
		} else {
			c.floats = append(c.floats, from.floats[at(i)])
		}
	}
	return c, nil
}

// countable returns an error if a shape has more elements than may be.
func countable(s graph.Shape) error {
	n := 1
	for _, d := range s {
		if d > 0 && n > maxElements/d {
			return fmt.Errorf("shape %v has more than %d elements", s, int64(maxElements))
		}
		n *= d
	}
	return nil
}

// strides are how far apart elements are along each dimension.
func strides(s graph.Shape) []int {
	all := make([]int, len(s))
	step := 1
	for i := len(s) - 1; i >= 0; i-- {
		all[i] = step
		step *= s[i]
	}
	return all
}

// broadcastPlace is the place in a tensor of shape s of element i of a tensor of shape to, to which s is broadcast.
func broadcastPlace(s, to graph.Shape) func(i int) int {
	from, steps := strides(s), strides(to)
	lead := len(to) - len(s)
	return func(i int) (at int) {
		for d := range s {
			if s[d] > 1 {
				at += i / steps[d+lead] % to[d+lead] * from[d]
			}
		}
		return at
	}
}

// broadcast is the shape that several are broadcast to.
func broadcast(shapes ...graph.Shape) (graph.Shape, error) {
	var to graph.Shape
	for _, s := range shapes {
		for len(to) < len(s) {
			to = append(graph.Shape{1}, to...)
		}
	}
	for _, s := range shapes {
		lead := len(to) - len(s)
		for d, n := range s {
			switch {
			case n == to[d+lead] || n == 1:
			case to[d+lead] == 1:
				to[d+lead] = n
			default:
				return nil, fmt.Errorf("shapes %v do not broadcast", shapes)
			}
		}
	}
	return to, countable(to)
}
