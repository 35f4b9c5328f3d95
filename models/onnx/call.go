package onnx

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// call is a node while it is imported.
type call struct {
	*importer
	node *Node
	made int // ops so far, for their names

	wrong error // an attribute of another kind than the operator has
}

func (c *call) attribute(name string) *Attribute {
	for i := range c.node.Attributes {
		if c.node.Attributes[i].Name == name {
			return &c.node.Attributes[i]
		}
	}
	return nil
}

// setting is an attribute of a type; nil: there is none. Old files do not say the type.
func (c *call) setting(name string, t AttributeType) *Attribute {
	a := c.attribute(name)
	if a != nil && a.Type != t && a.Type != 0 {
		c.wrong = fmt.Errorf("its attribute %.40q is of another kind than %s has", name, c.node.Op)
		return nil
	}
	return a
}

func (c *call) int(name string, otherwise int64) int64 {
	if a := c.setting(name, AttributeInt); a != nil {
		return a.Int
	}
	return otherwise
}

func (c *call) float(name string, otherwise float64) float64 {
	if a := c.setting(name, AttributeFloat); a != nil {
		return float64(a.Float)
	}
	return otherwise
}

func (c *call) text(name, otherwise string) string {
	if a := c.setting(name, AttributeString); a != nil {
		return a.String
	}
	return otherwise
}

func (c *call) ints(name string) []int64 {
	if a := c.setting(name, AttributeInts); a != nil {
		return a.Ints
	}
	return nil
}

// axis is an attribute that names a dimension, counted from the end if it is negative.
func (c *call) axis(name string, otherwise int64, rank int) (int, error) {
	return place(c.int(name, otherwise), rank)
}

func place(axis int64, rank int) (int, error) {
	if axis < -int64(rank) || axis >= int64(rank) {
		return 0, fmt.Errorf("axis %d is none of %d dimensions", axis, rank)
	}
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis), nil
}

// hasInput reports whether input i is there.
func (c *call) hasInput(i int) bool { return i < len(c.node.Inputs) && c.node.Inputs[i] != "" }

// outputIsRead reports whether output i is read.
func (c *call) outputIsRead(i int) bool {
	return i < len(c.node.Outputs) && c.node.Outputs[i] != "" && c.read[c.node.Outputs[i]]
}

// value is input i.
func (c *call) value(i int) (*value, error) {
	if !c.hasInput(i) {
		return nil, fmt.Errorf("its input %d is missing", i)
	}
	return c.values[c.node.Inputs[i]], nil
}

// constantInput is the content of an input that must not depend on what is trained or fed.
func (c *call) constantInput(i int) (*constant, error) {
	v, err := c.value(i)
	if err != nil {
		return nil, err
	}
	k, err := c.constantOf(v)
	if err == nil && k == nil {
		err = fmt.Errorf("its input %.80q depends on what is trained or fed, and must be known before the training: "+
			"export the network with a constant there", c.node.Inputs[i])
	}
	return k, err
}

// maxInts bounds the numbers that say how an operator works, such as axes or the sizes of parts.
const maxInts = 1 << 16

// knownInts are the elements of such an input, a list of numbers.
func (c *call) knownInts(i int) ([]int64, error) {
	k, err := c.constantInput(i)
	if err != nil {
		return nil, err
	}
	if n := k.elements(); n > maxInts {
		return nil, fmt.Errorf("its input %d has %d numbers, of which there may be %d", i, n, maxInts)
	}
	return k.allInts()
}

// number is the only element of such an input.
func (c *call) number(i int) (float64, error) {
	k, err := c.constantInput(i)
	if err != nil {
		return 0, err
	}
	return k.scalar()
}

// axes are those that an attribute names or, in newer opsets, an input.
func (c *call) axes(input int) ([]int64, bool, error) {
	if v := c.ints("axes"); v != nil {
		return v, true, nil
	}
	if !c.hasInput(input) {
		return nil, false, nil
	}
	v, err := c.knownInts(input)
	return v, err == nil, err
}

// permutation is that of a Transpose.
func (c *call) permutation(rank int) ([]int, error) {
	var perm []int
	for _, p := range c.ints("perm") {
		perm = append(perm, int(p))
	}
	if c.ints("perm") == nil {
		for d := rank - 1; d >= 0; d-- {
			perm = append(perm, d)
		}
	}
	sorted := slices.Sorted(slices.Values(perm))
	for i, p := range sorted {
		if i != p {
			return nil, fmt.Errorf("%v is no permutation of %d dimensions", perm, rank)
		}
	}
	if len(perm) != rank {
		return nil, fmt.Errorf("%v is no permutation of %d dimensions", perm, rank)
	}
	return perm, nil
}

// part is a range of a dimension with a step.
type part struct{ axis, begin, count, step int }

// ranges are those of a Slice of x, one a dimension.
func (c *call) ranges(x graph.Shape) ([]part, error) {
	starts, ends, axes, steps := c.ints("starts"), c.ints("ends"), c.ints("axes"), []int64(nil)
	for i, to := range []*[]int64{nil, &starts, &ends, &axes, &steps} {
		if to != nil && c.hasInput(i) {
			var err error
			if *to, err = c.knownInts(i); err != nil {
				return nil, err
			}
		}
	}
	var all []part
	if n := len(starts); len(ends) != n || axes != nil && len(axes) != n || steps != nil && len(steps) != n {
		return nil, fmt.Errorf("starts %v, ends %v, axes %v and steps %v do not fit", starts, ends, axes, steps)
	}
	cut := make(map[int]bool)
	for i := range starts {
		p := part{axis: i, step: 1}
		if axes != nil {
			var err error
			if p.axis, err = place(axes[i], len(x)); err != nil {
				return nil, err
			}
		}
		if p.axis >= len(x) {
			return nil, fmt.Errorf("it cuts dimension %d of %v", p.axis, x)
		}
		if cut[p.axis] {
			return nil, fmt.Errorf("it cuts dimension %d of %v twice", p.axis, x)
		}
		cut[p.axis] = true
		if steps != nil {
			p.step = int(max(-maxElements, min(maxElements, steps[i]))) // farther than any dimension
		}
		n := int64(x[p.axis])
		clamp := func(v, low, high int64) int64 {
			if v < 0 {
				v += n
			}
			return max(low, min(high, v))
		}
		switch {
		case n == 0:
		case p.step > 0:
			begin, end := clamp(starts[i], 0, n), clamp(ends[i], 0, n)
			p.begin, p.count = int(begin), int(max(0, (end-begin+int64(p.step)-1)/int64(p.step)))
		case p.step < 0:
			begin, end := clamp(starts[i], 0, n-1), clamp(ends[i], -1, n-1)
			p.begin, p.count = int(begin), int(max(0, (begin-end-int64(p.step)-1)/int64(-p.step)))
		default:
			return nil, fmt.Errorf("its step is zero")
		}
		all = append(all, p)
	}
	return all, nil
}

// reshaped is the shape that Reshape, Flatten, Squeeze and Unsqueeze give to x.
func (c *call) reshaped(x graph.Shape) (graph.Shape, error) {
	switch c.node.Op {
	case "Flatten":
		axis := c.int("axis", 1)
		if axis < 0 {
			axis += int64(len(x))
		}
		if axis < 0 || axis > int64(len(x)) {
			return nil, fmt.Errorf("axis %d is none of shape %v", axis, x)
		}
		return graph.Shape{x[:axis].Elements(), x[axis:].Elements()}, nil
	case "Squeeze", "Unsqueeze":
		axes, given, err := c.axes(1)
		if err != nil {
			return nil, err
		}
		rank := len(x)
		if c.node.Op == "Unsqueeze" {
			rank += len(axes)
		}
		if rank > maxRank {
			return nil, fmt.Errorf("it makes %d dimensions, of which there may be %d", rank, maxRank)
		}
		at := make(map[int]bool)
		for _, a := range axes {
			d, err := place(a, rank)
			if err != nil {
				return nil, err
			}
			at[d] = true
		}
		y := graph.Shape{}
		if c.node.Op == "Squeeze" {
			for d, n := range x {
				if n != 1 && at[d] {
					return nil, fmt.Errorf("dimension %d of %v is not 1", d, x)
				}
				if !(at[d] || !given && n == 1) {
					y = append(y, n)
				}
			}
			return y, nil
		}
		for d, next := 0, 0; d < rank; d++ {
			switch {
			case at[d]:
				y = append(y, 1)
			case next < len(x):
				y, next = append(y, x[next]), next+1
			default:
				return nil, fmt.Errorf("axes %v name a dimension twice", axes)
			}
		}
		return y, nil
	}
	extents, err := c.knownInts(1)
	if err != nil {
		return nil, err
	}
	if len(extents) > maxRank {
		return nil, fmt.Errorf("it makes %d dimensions, of which there may be %d", len(extents), maxRank)
	}
	y, unknown := graph.Shape{}, -1
	for i, d := range extents {
		switch {
		case d == 0 && c.int("allowzero", 0) == 0 && i < len(x):
			d = int64(x[i])
		case d == -1 && unknown < 0:
			unknown, d = i, 1
		}
		if d < 0 || d > maxElements || d == 0 && x.Elements() > 0 {
			return nil, fmt.Errorf("shape %v has no meaning for %v", extents, x)
		}
		y = append(y, int(d))
	}
	if err := countable(y); err != nil {
		return nil, err
	}
	// a file that was exported for one batch, and is imported for another
	if was := c.fixed; was > 0 && unknown > 0 && extents[0] == int64(was) && len(x) > 0 && x[0] == c.options.Batch &&
		c.fed[c.node.Inputs[0]] && c.values[c.node.Inputs[0]].known == nil {
		y[0] = c.options.Batch
	}
	if unknown >= 0 && y.Elements() > 0 && x.Elements()%y.Elements() == 0 {
		y[unknown] = x.Elements() / y.Elements()
	}
	if was := c.fixed; was > 0 && len(y) > 0 && y[0] == was && y.Elements()*c.options.Batch == x.Elements()*was {
		y[0] = c.options.Batch
	}
	if y.Elements() != x.Elements() {
		return nil, fmt.Errorf("%v cannot be shaped as %v", x, extents)
	}
	return y, nil
}
