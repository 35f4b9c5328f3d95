package onnx

import (
	"fmt"
	"math"

	"tensile/graph"
)

// Comparisons of what is trained or fed make floats that are 0 or 1, through which no gradient goes. What they choose
// is taken as it is, and nothing of what they do not choose: an infinite number times zero would be none.

// hidden is below what softmaxes take of scores, and above what stands for minus infinity among constants.
const hidden = -1e37

// keep is x where a condition is positive, and zero elsewhere.
func (c *call) keep(condition, x graph.TensorID) graph.TensorID {
	return c.op(graph.ReLUYDX, graph.Attrs{}, condition, x)
}

// positive is 1 where x is positive, and 0 elsewhere.
func (c *call) positive(x graph.TensorID, s graph.Shape) (graph.TensorID, error) {
	ones, err := c.constant(graph.Shape{1}, []float64{1})
	if err != nil {
		return missing, err
	}
	return c.keep(c.withShape(x, full(s)...), c.expand(ones, full(s))), nil
}

// negate is 1 where a truth value is 0.
func (c *call) negate(t graph.TensorID) graph.TensorID { return c.affine(t, -1, 1) }

// giveTruth makes output 0: floats that are 0 or 1.
func (c *call) giveTruth(t graph.TensorID, s graph.Shape) {
	c.set(0, &value{shape: s, tensor: c.withShape(t, full(s)...), truth: true})
}

// difference is the first input minus the second.
func (c *call) difference() (graph.TensorID, graph.Shape, error) {
	t, err := c.two()
	for k := range t.fill {
		t.fill[k] = max(-math.MaxFloat32, min(math.MaxFloat32, t.fill[k]))
	}
	switch {
	case err != nil:
		return missing, nil, err
	case t.filled[0]:
		return c.affine(t.b, -1, t.fill[0]), t.shape, nil
	case t.filled[1]:
		return c.affine(t.a, 1, -t.fill[1]), t.shape, nil
	}
	return c.add(t.a, c.affine(t.b, -1, 0), t.shape), t.shape, nil
}

// random stands for numbers from 0 to 1 of a shape, of which a comparison makes those that a dropout keeps.
func (c *call) random() error {
	v, err := c.value(0)
	if err != nil {
		return err
	}
	if low, high := c.float("low", 0), c.float("high", 1); low != 0 || high != 1 || !c.options.Train {
		return fmt.Errorf("it makes numbers from %v to %v: from 0 to 1, for what a dropout keeps in a training, are "+
			"supported", low, high)
	}
	c.set(0, &value{shape: v.shape, tensor: missing, key: c.keys[c.node]})
	return nil
}

// sampled is 1 where random numbers are less than a share.
func (c *call) sampled(numbers *value) error {
	share, err := c.number(1)
	if err != nil {
		return err
	}
	if c.node.Op != "Less" || share <= 0 || share > 1 {
		return fmt.Errorf("it compares random numbers: whether they are less than a share is supported")
	}
	one, err := c.constant(graph.Shape{1}, []float64{1})
	if err != nil {
		return err
	}
	ones := c.expand(one, full(numbers.shape))
	left := ones
	if share < 1 {
		left = c.op(graph.Dropout, graph.Attrs{Rate: 1 - share, Key: numbers.key}, ones)
	}
	c.giveTruth(c.keep(left, ones), numbers.shape)
	return nil
}

// compare is Greater, Less, GreaterOrEqual, LessOrEqual or Equal.
func (c *call) compare() error {
	if v, err := c.value(0); err == nil && v.key > 0 {
		return c.sampled(v)
	}
	d, s, err := c.difference()
	if err != nil {
		return err
	}
	above, err := c.positive(d, s)
	if err != nil {
		return err
	}
	if op := c.node.Op; op == "Greater" || op == "LessOrEqual" {
		if op == "LessOrEqual" {
			above = c.negate(above)
		}
		c.giveTruth(above, s)
		return nil
	}
	below, err := c.positive(c.affine(d, -1, 0), s)
	if err != nil {
		return err
	}
	switch c.node.Op {
	case "GreaterOrEqual":
		below = c.negate(below)
	case "Equal":
		below = c.negate(c.sumOf(c.withShape(above, full(s)...), c.withShape(below, full(s)...)))
	}
	c.giveTruth(below, s)
	return nil
}

// truths are inputs that hold truth values, as floats.
func (c *call) truths(n int) (all []graph.TensorID, to graph.Shape, err error) {
	var shapes []graph.Shape
	for k := range n {
		v, err := c.value(k)
		if err != nil {
			return nil, nil, err
		}
		t := v.tensor
		switch {
		case v.known != nil:
			is, err := c.numbers(v.known.elements())
			if err != nil {
				return nil, nil, err
			}
			for i := range is {
				is[i] = oneIf(v.known.float(i) != 0)
			}
			if t, err = c.constant(v.shape, is); err != nil {
				return nil, nil, err
			}
		case !v.truth:
			return nil, nil, fmt.Errorf("its input %.80q holds no truth values", c.node.Inputs[k])
		}
		all, shapes = append(all, t), append(shapes, v.shape)
	}
	if to, err = broadcast(shapes...); err != nil {
		return nil, nil, err
	}
	for k := range all {
		all[k] = c.expand(all[k], full(to))
	}
	return all, to, nil
}

// logic is And, Or, Xor or Not.
func (c *call) logic() error {
	n := 2
	if c.node.Op == "Not" {
		n = 1
	}
	t, s, err := c.truths(n)
	if err != nil {
		return err
	}
	var y graph.TensorID
	switch c.node.Op {
	case "Not":
		y = c.negate(t[0])
	case "And":
		y = c.product(t[0], t[1])
	case "Or":
		y = c.negate(c.product(c.negate(t[0]), c.negate(t[1])))
	case "Xor":
		y = c.sumOf(c.product(t[0], c.negate(t[1])), c.product(t[1], c.negate(t[0])))
	}
	c.giveTruth(y, s)
	return nil
}

// isNaN is not asked of a softmax in ONNX's sense, of whose rows some may be minus infinity all along: here that is the
// largest number below zero, and such a row has shares that are equal. Where no row can be so the answer is known.
func (c *call) isNaN() error {
	x, err := c.value(0)
	if err != nil {
		return err
	}
	softmax := c.maker[c.node.Inputs[0]]
	if softmax == nil || softmax.Op != "Softmax" {
		return c.isNoNumber(x)
	}
	if !c.hides(c.maker[softmax.Inputs[0]]) {
		c.set(0, &value{shape: x.shape, whole: true, tensor: missing,
			known: &constant{shape: x.shape, whole: true, alike: true, ints: []int64{0}}})
		return nil
	}
	of := &call{importer: c.importer, node: softmax}
	axis, err := of.axis("axis", of.softmaxAxis(), len(x.shape))
	if err != nil {
		return err
	}
	scores, err := c.tensorOf(c.values[softmax.Inputs[0]])
	if err != nil {
		return err
	}
	over := make([]bool, len(x.shape))
	over[axis] = true
	largest, s := c.reduced(c.withShape(scores, x.shape...), x.shape, over, c.maximum)
	empty, err := c.positive(c.affine(largest, -1, hidden), s)
	if err != nil {
		return err
	}
	c.giveTruth(c.expand(empty, x.shape), x.shape)
	return nil
}

// isNoNumber is 1 where x is neither finite nor infinite: zero times that is not above -1.
func (c *call) isNoNumber(x *value) error {
	t, err := c.tensorOf(x)
	if err != nil {
		return err
	}
	sum, err := c.positive(c.affine(c.affine(t, 0, 0), 1, 1), x.shape)
	for _, sign := range []float64{1, -1} {
		if err != nil {
			return err
		}
		var infinite graph.TensorID
		infinite, err = c.positive(c.affine(t, sign, -math.MaxFloat32), x.shape)
		sum = c.sumOf(sum, infinite)
	}
	c.giveTruth(c.negate(sum), x.shape)
	return err
}

// hides reports whether scores that a node makes may be minus infinity along all of a row: a mask does that which is
// not known, or which hides all of one.
func (c *call) hides(n *Node) bool {
	if n == nil || n.Op != "Add" && n.Op != "Where" || len(n.Inputs) < 2 {
		return false
	}
	if n.Op == "Where" {
		known := c.values[n.Inputs[0]].known
		for k, in := range n.Inputs[1:] {
			if fill, ok := uniformOf(c.values[in]); ok && fill <= hidden {
				return known == nil || known.fillsRow(func(v float64) bool { return (v != 0) == (k == 0) })
			}
		}
		return false
	}
	for _, in := range n.Inputs {
		v := c.values[in]
		switch from := c.maker[in]; {
		case v.known != nil:
			if v.known.fillsRow(func(v float64) bool { return v <= hidden }) {
				return true
			}
		case v.input, from != nil && (from.Op == "Where" || from.Op == "Cast" || from.Op == "Add"):
			return true
		}
	}
	return false
}

// fillsRow reports whether all elements of a row along the last dimension are so.
func (c *constant) fillsRow(is func(v float64) bool) bool {
	width := 1
	if n := len(c.shape); n > 0 {
		width = c.shape[n-1]
	}
	if c.alike {
		return c.elements() > 0 && is(c.float(0))
	}
	run := 0
	for i := range c.elements() {
		if i%width == 0 {
			run = 0
		}
		if is(c.float(i)) {
			run++
		}
		if run == width {
			return true
		}
	}
	return false
}

// choose is Where with a condition that is not known: each element of one input or the other.
func (c *call) choose(condition *value) error {
	if !condition.truth {
		return fmt.Errorf("its input %.80q depends on what is fed, and holds no truth values: export the network "+
			"with a comparison there", c.node.Inputs[0])
	}
	var shapes [3]graph.Shape
	for k := range shapes {
		v, err := c.value(k)
		if err != nil {
			return err
		}
		shapes[k] = v.shape
	}
	to, err := broadcast(shapes[:]...)
	if err != nil {
		return err
	}
	takes := c.expand(condition.tensor, full(to))
	var sum graph.TensorID = missing
	for k := 1; k <= 2; k++ {
		if k == 2 {
			takes = c.negate(takes)
		}
		v, _ := c.value(k)
		if fill, ok := uniformOf(v); ok && fill == 0 && (sum != missing || k == 1) {
			continue
		}
		x, err := c.number32(v)
		if err != nil {
			return err
		}
		part := c.keep(takes, c.expand(x, full(to)))
		if sum != missing {
			part = c.sumOf(sum, part)
		}
		sum = part
	}
	c.give(0, c.withShape(sum, to...), to)
	return nil
}
