package onnx

import (
	"fmt"
	"math"
	"slices"

	"tensile/graph"
)

// Operators that move or add up elements of constants by numbers that are known too.

// makeLike is room for a constant's elements of the kind that another one has.
func (c *constant) makeLike(shape graph.Shape) (*constant, error) {
	if err := countable(shape); err != nil {
		return nil, err
	}
	n := shape.Elements()
	if n > maxFolded {
		return nil, fmt.Errorf("it makes a constant of %d elements, of which there may be %d", n, maxFolded)
	}
	k := &constant{shape: shape, whole: c.whole}
	if k.whole {
		k.ints = make([]int64, n)
	} else {
		k.floats = make([]float64, n)
	}
	return k, nil
}

// put sets an element to one of another constant, or adds that to it.
func (c *constant) put(i int, from *constant, at int, adds bool) {
	switch {
	case c.whole && adds:
		c.ints[i] += from.int(at)
	case c.whole:
		c.ints[i] = from.int(at)
	case adds:
		c.floats[i] += from.float(at)
	default:
		c.floats[i] = from.float(at)
	}
}

// indexPlace is the place of an index that may count from the end.
func indexPlace(id int64, extent int) (int, error) {
	if id < -int64(extent) || id >= int64(extent) {
		return 0, fmt.Errorf("index %d is outside of %d", id, extent)
	}
	if id < 0 {
		id += int64(extent)
	}
	return int(id), nil
}

func foldGatherElements(c *call, in []*constant) (*constant, error) {
	x, ids := in[0], in[1]
	axis, err := c.axis("axis", 0, len(x.shape))
	if err != nil {
		return nil, err
	}
	if len(ids.shape) != len(x.shape) {
		return nil, fmt.Errorf("its indices have shape %v, and it takes elements of %v", ids.shape, x.shape)
	}
	for d := range x.shape {
		if d != axis && ids.shape[d] > x.shape[d] {
			return nil, fmt.Errorf("its indices have shape %v, and it takes elements of %v", ids.shape, x.shape)
		}
	}
	to, err := x.makeLike(ids.shape)
	if err != nil {
		return nil, err
	}
	from, steps := strides(x.shape), strides(ids.shape)
	for i := range ids.elements() {
		id, err := indexPlace(ids.int(i), x.shape[axis])
		if err != nil {
			return nil, err
		}
		at := id * from[axis]
		for d := range x.shape {
			if d != axis {
				at += i / steps[d] % ids.shape[d] * from[d]
			}
		}
		to.put(i, x, at, false)
	}
	return to, nil
}

// rows are the places of pieces that indices of GatherND or ScatterND name: each of the last dimension names a piece of
// a tensor of a shape, within the element of the first dimensions that indices and tensor have in common.
func rows(ids *constant, s graph.Shape, common int) (places []int, piece graph.Shape, err error) {
	if len(ids.shape) == 0 || common < 0 || common >= len(ids.shape) || common > len(s) {
		return nil, nil, fmt.Errorf("its indices have shape %v, and what they name is of %v", ids.shape, s)
	}
	depth := ids.shape[len(ids.shape)-1]
	if depth < 1 || common+depth > len(s) || !slices.Equal(ids.shape[:common], s[:common]) {
		return nil, nil, fmt.Errorf("its indices have shape %v, and what they name is of %v", ids.shape, s)
	}
	n := ids.shape[:len(ids.shape)-1].Elements()
	if n > maxFolded {
		return nil, nil, fmt.Errorf("it has %d indices, of which there may be %d", n, maxFolded)
	}
	each := n / max(1, s[:common].Elements())
	for i := range n {
		at := 0
		if each > 0 {
			at = i / each
		}
		for d := range depth {
			id, err := indexPlace(ids.int(i*depth+d), s[common+d])
			if err != nil {
				return nil, nil, err
			}
			at = at*s[common+d] + id
		}
		places = append(places, at)
	}
	return places, s[common+depth:], nil
}

// gatherNDShape is the shape of what a GatherND makes.
func gatherNDShape(ids, piece graph.Shape) graph.Shape {
	return slices.Concat(ids[:len(ids)-1], piece)
}

func foldGatherND(c *call, in []*constant) (*constant, error) {
	places, piece, err := rows(in[1], in[0].shape, int(c.int("batch_dims", 0)))
	if err != nil {
		return nil, err
	}
	n := piece.Elements()
	return gathered(in[0], gatherNDShape(in[1].shape, piece), func(i int) int { return places[i/n]*n + i%n })
}

func foldScatterND(c *call, in []*constant) (*constant, error) {
	adds, err := c.scatterAdds()
	if err != nil {
		return nil, err
	}
	places, piece, err := rows(in[1], in[0].shape, 0)
	if err != nil {
		return nil, err
	}
	n := piece.Elements()
	if in[2].elements() != len(places)*n {
		return nil, fmt.Errorf("it has %d updates of %d elements, and they have shape %v", len(places), n, in[2].shape)
	}
	to, err := in[0].makeLike(in[0].shape)
	if err != nil {
		return nil, err
	}
	for i := range to.elements() {
		to.put(i, in[0], i, false)
	}
	for i := range len(places) * n {
		to.put(places[i/n]*n+i%n, in[2], i, adds)
	}
	return to, nil
}

// scatterAdds reports whether a ScatterND adds to what is there.
func (c *call) scatterAdds() (bool, error) {
	switch how := c.text("reduction", "none"); how {
	case "none", "add":
		return how == "add", nil
	default:
		return false, fmt.Errorf("reduction %.40q is none of none and add", how)
	}
}

func foldCumSum(c *call, in []*constant) (*constant, error) {
	x := in[0]
	at, err := in[1].scalar()
	if err != nil {
		return nil, err
	}
	axis, err := place(int64(at), len(x.shape))
	if err != nil {
		return nil, err
	}
	to, err := x.makeLike(x.shape)
	if err != nil {
		return nil, err
	}
	n, inner := x.shape[axis], x.shape[axis+1:].Elements()
	step, exclusive := inner, c.int("exclusive", 0) != 0
	for line := range x.elements() / max(1, n) {
		first := line/inner*n*inner + line%inner
		if c.int("reverse", 0) != 0 {
			first, step = first+(n-1)*inner, -inner
		}
		sum := &constant{whole: x.whole, ints: []int64{0}, floats: []float64{0}}
		for i := range n {
			if at := first + i*step; exclusive {
				to.put(at, sum, 0, false)
				sum.put(0, x, at, true)
			} else {
				sum.put(0, x, at, true)
				to.put(at, sum, 0, false)
			}
		}
	}
	return to, nil
}

// foldReduce makes one element of all along some dimensions, or all of them.
func foldReduce(c *call, in []*constant) (*constant, error) {
	x := in[0]
	axes, given, err := c.axes(1)
	if err != nil {
		return nil, err
	}
	if (!given || len(axes) == 0) && c.int("noop_with_empty_axes", 0) != 0 {
		return x, nil
	}
	over := make([]bool, len(x.shape))
	for _, a := range axes {
		d, err := place(a, len(x.shape))
		if err != nil {
			return nil, err
		}
		over[d] = true
	}
	kept, shape := slices.Clone(x.shape), graph.Shape{}
	for d := range over {
		if over[d] = over[d] || !given || len(axes) == 0; over[d] {
			kept[d] = 1
		}
		if !over[d] || c.int("keepdims", 1) != 0 {
			shape = append(shape, kept[d])
		}
	}
	if x.elements() == 0 || x.elements() > maxFolded {
		return nil, fmt.Errorf("it reduces a constant of %d elements", x.elements())
	}
	to, err := x.makeLike(kept)
	if err != nil {
		return nil, err
	}
	seen := make([]bool, kept.Elements())
	at := broadcastPlace(kept, x.shape)
	for i := range x.elements() {
		k := at(i)
		less := seen[k] && (x.float(i) < to.float(k) || x.whole && x.int(i) < to.int(k))
		switch first := !seen[k]; {
		case first:
			to.put(k, x, i, false)
		case c.node.Op == "ReduceMax" && !less, c.node.Op == "ReduceMin" && less:
			to.put(k, x, i, false)
		case c.node.Op == "ReduceSum" || c.node.Op == "ReduceMean":
			to.put(k, x, i, true)
		case c.node.Op == "ReduceProd" && to.whole:
			to.ints[k] *= x.int(i)
		case c.node.Op == "ReduceProd":
			to.floats[k] *= x.float(i)
		}
		seen[k] = true
	}
	if n := x.elements() / kept.Elements(); c.node.Op == "ReduceMean" {
		for k := range to.elements() {
			if to.whole {
				to.ints[k] /= int64(n)
			} else {
				to.floats[k] /= float64(n)
			}
		}
	}
	to.shape = shape
	return to, nil
}

// foldMod is a remainder with the sign of the divisor, or by fmod of the dividend.
func foldMod(c *call, in []*constant) (*constant, error) {
	of, whole := math.Mod, func(a, b int64) int64 { return a % b }
	if c.int("fmod", 0) == 0 {
		of = func(a, b float64) float64 {
			r := math.Mod(a, b)
			if r != 0 && (r < 0) != (b < 0) {
				r += b
			}
			return r
		}
		whole = func(a, b int64) int64 {
			r := a % b
			if r != 0 && (r < 0) != (b < 0) {
				r += b
			}
			return r
		}
	}
	return foldBinary("Mod", of, whole)(c, in)
}
