package onnx

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tensile/graph"
)

// folds are the operators that are computed before the training if all of their inputs are known.
var folds map[string]func(c *call, in []*constant) (*constant, error)

func init() {
	folds = map[string]func(c *call, in []*constant) (*constant, error){
		"Constant": foldConstant, "ConstantOfShape": foldConstantOfShape, "Identity": foldIdentity, "Cast": foldCast,
		"Gather": foldGather, "Concat": foldConcat, "Slice": foldSlice, "Unsqueeze": foldReshape,
		"Squeeze": foldReshape, "Reshape": foldReshape, "Flatten": foldReshape, "Transpose": foldTranspose,
		"Expand": foldExpand, "Range": foldRange, "Where": foldWhere, "Trilu": foldTrilu, "Size": foldSize,
		"ReduceProd": foldReduce, "ReduceSum": foldReduce, "ReduceMean": foldReduce, "ReduceMax": foldReduce,
		"ReduceMin": foldReduce, "Shape": foldShape, "Tile": foldTile, "CastLike": foldCastLike, "Mod": foldMod,
		"GatherElements": foldGatherElements, "GatherND": foldGatherND, "ScatterND": foldScatterND,
		"CumSum": foldCumSum, "Clip": foldClip,
	}
	for op, of := range map[string]func(a, b float64) float64{
		"Add": func(a, b float64) float64 { return a + b }, "Sub": func(a, b float64) float64 { return a - b },
		"Mul": func(a, b float64) float64 { return a * b }, "Pow": math.Pow, "Max": math.Max, "Min": math.Min,
		"Equal":          truth(func(a, b float64) bool { return a == b }),
		"Less":           truth(func(a, b float64) bool { return a < b }),
		"Greater":        truth(func(a, b float64) bool { return a > b }),
		"LessOrEqual":    truth(func(a, b float64) bool { return a <= b }),
		"GreaterOrEqual": truth(func(a, b float64) bool { return a >= b }),
		"And":            truth(func(a, b float64) bool { return a != 0 && b != 0 }),
		"Or":             truth(func(a, b float64) bool { return a != 0 || b != 0 }),
		"Xor":            truth(func(a, b float64) bool { return (a != 0) != (b != 0) }),
		"Div":            func(a, b float64) float64 { return a / b },
	} {
		folds[op] = foldBinary(op, of, wholeFold(op, of))
	}
	for op, of := range map[string]func(x float64) float64{
		"Sqrt": math.Sqrt, "Neg": func(x float64) float64 { return -x }, "Floor": math.Floor, "Ceil": math.Ceil,
		"Reciprocal": func(x float64) float64 { return 1 / x }, "Exp": math.Exp, "Log": math.Log, "Erf": math.Erf,
		"Not": func(x float64) float64 { return oneIf(x == 0) }, "Sin": math.Sin, "Cos": math.Cos, "Abs": math.Abs,
		"Sign": sign, "Round": math.RoundToEven, "IsNaN": func(x float64) float64 { return oneIf(x != x) },
		"Tanh": math.Tanh, "Sigmoid": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	} {
		folds[op] = foldUnary(of)
	}
}

// foldClip keeps numbers between limits that are inputs or, in older operator sets, attributes.
func foldClip(c *call, in []*constant) (x *constant, err error) {
	x, in = in[0], in[1:]
	for k, limit := range []struct{ name, op string }{{"min", "Max"}, {"max", "Min"}} {
		to := &constant{floats: []float64{c.float(limit.name, math.NaN())}}
		if c.hasInput(k + 1) {
			to, in = in[0], in[1:]
		} else if math.IsNaN(to.floats[0]) {
			continue
		}
		if x, err = folds[limit.op](c, []*constant{x, to}); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func truth(of func(a, b float64) bool) func(a, b float64) float64 {
	return func(a, b float64) float64 { return oneIf(of(a, b)) }
}

func sign(x float64) float64 { return oneIf(x > 0) - oneIf(x < 0) }

// wholeFold is what an elementwise operator of two inputs makes of whole numbers: floats do not hold large ones.
func wholeFold(op string, of func(a, b float64) float64) func(a, b int64) int64 {
	switch op {
	case "Add":
		return func(a, b int64) int64 { return a + b }
	case "Sub":
		return func(a, b int64) int64 { return a - b }
	case "Mul":
		return func(a, b int64) int64 { return a * b }
	case "Div":
		return func(a, b int64) int64 { return a / b }
	case "Max":
		return func(a, b int64) int64 { return max(a, b) }
	case "Min":
		return func(a, b int64) int64 { return min(a, b) }
	case "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual":
		return func(a, b int64) int64 { return int64(of(float64(cmp.Compare(a, b)), 0)) }
	}
	return func(a, b int64) int64 { return int64(of(float64(a), float64(b))) }
}

// rounded is a number as a float of 32 bits, which is what a network computes with: what Floor makes of it follows.
func rounded(v float64) float64 { return float64(float32(v)) }

func foldConstant(c *call, _ []*constant) (*constant, error) {
	for _, a := range c.node.Attributes {
		switch a.Name {
		case "value":
			if a.Tensor != nil {
				return constantOf(a.Tensor)
			}
		case "value_int":
			return &constant{whole: true, ints: []int64{a.Int}}, nil
		case "value_ints":
			return wholes(a.Ints...), nil
		case "value_float":
			return &constant{floats: []float64{float64(a.Float)}}, nil
		case "value_floats":
			k := &constant{shape: graph.Shape{len(a.Floats)}}
			for _, v := range a.Floats {
				k.floats = append(k.floats, float64(v))
			}
			return k, nil
		}
	}
	return nil, fmt.Errorf("its value is no tensor of numbers")
}

func foldConstantOfShape(c *call, in []*constant) (*constant, error) {
	k := &constant{alike: true, floats: []float64{0}}
	if a := c.attribute("value"); a != nil && a.Tensor != nil {
		v, err := constantOf(a.Tensor)
		if err != nil {
			return nil, err
		}
		if v.elements() != 1 {
			return nil, fmt.Errorf("its value has %d elements, want 1", v.elements())
		}
		k.whole, k.ints, k.floats = v.whole, v.ints, v.floats
	}
	extents, err := in[0].allInts()
	if err == nil {
		k.shape, err = shapeOf(extents)
	}
	return k, err
}

// shapeOf checks extents that a file gives.
func shapeOf(extents []int64) (graph.Shape, error) {
	n := int64(1)
	s := graph.Shape{}
	for _, d := range extents {
		if d < 1 || d > maxElements || n > maxElements/d || len(s) == maxRank {
			return nil, fmt.Errorf("shape %v has an extent below 1, or more than %d elements or %d dimensions", extents,
				int64(maxElements), maxRank)
		}
		n *= d
		s = append(s, int(d))
	}
	return s, nil
}

func foldIdentity(_ *call, in []*constant) (*constant, error) { return in[0], nil }

func foldCast(c *call, in []*constant) (*constant, error) {
	return in[0].cast(Type(c.int("to", int64(Float32)))), nil
}

// foldCastLike casts to floats or whole numbers, whichever the second input has.
func foldCastLike(c *call, in []*constant) (*constant, error) {
	if v, err := c.value(1); err != nil {
		return nil, err
	} else if v.whole {
		return in[0].cast(Int64), nil
	}
	return in[0].cast(Float32), nil
}

func (c *constant) cast(to Type) *constant {
	k := &constant{shape: c.shape, alike: c.alike}
	_, known := types[to]
	k.whole = known && !to.float()
	for i := range max(len(c.ints), len(c.floats)) {
		switch {
		case to == Bool:
			k.ints = append(k.ints, int64(oneIf(c.float(i) != 0)))
		case k.whole:
			k.ints = append(k.ints, narrowed(c.int(i), to))
		default:
			k.floats = append(k.floats, rounded(c.float(i)))
		}
	}
	return k
}

// narrowed is a whole number as a type of fewer bits holds it.
func narrowed(v int64, to Type) int64 {
	switch to {
	case Int8:
		return int64(int8(v))
	case Int16:
		return int64(int16(v))
	case Int32:
		return int64(int32(v))
	case Uint8:
		return int64(uint8(v))
	case Uint16:
		return int64(uint16(v))
	case Uint32:
		return int64(uint32(v))
	}
	return v
}

func foldShape(c *call, in []*constant) (*constant, error) {
	s := in[0].shape
	n := int64(len(s))
	at := func(d int64) int64 {
		if d < 0 {
			d += n
		}
		return max(0, min(n, d))
	}
	from, to := at(c.int("start", 0)), at(c.int("end", n))
	var v []int64
	for _, d := range s[from:max(from, to)] {
		v = append(v, int64(d))
	}
	return wholes(v...), nil
}

func foldSize(_ *call, in []*constant) (*constant, error) {
	return &constant{whole: true, ints: []int64{int64(in[0].elements())}}, nil
}

func foldGather(c *call, in []*constant) (*constant, error) {
	x, ids := in[0], in[1]
	axis, err := c.axis("axis", 0, len(x.shape))
	if err != nil {
		return nil, err
	}
	shape := slices.Concat(x.shape[:axis], ids.shape, x.shape[axis+1:])
	inner, n := x.shape[axis+1:].Elements(), ids.elements()
	extent := x.shape[axis]
	places, err := ids.allInts()
	if err != nil {
		return nil, err
	}
	for _, id := range places {
		if id < -int64(extent) || id >= int64(extent) {
			return nil, fmt.Errorf("index %d is outside of %d", id, extent)
		}
	}
	return gathered(x, shape, func(i int) int {
		outer, id, rest := i/inner/n, int(ids.int(i/inner%n)), i%inner
		return (outer*extent+(id+extent)%extent)*inner + rest
	})
}

func foldConcat(c *call, in []*constant) (*constant, error) {
	axis, err := c.axis("axis", 0, len(in[0].shape))
	if err != nil {
		return nil, err
	}
	k := &constant{shape: slices.Clone(in[0].shape), whole: in[0].whole}
	k.shape[axis] = 0
	for _, x := range in {
		if len(x.shape) != len(k.shape) || !slices.Equal(x.shape[:axis], k.shape[:axis]) ||
			!slices.Equal(x.shape[axis+1:], k.shape[axis+1:]) {
			return nil, fmt.Errorf("it joins shapes %v and %v", in[0].shape, x.shape)
		}
		k.shape[axis] += x.shape[axis]
		if n := k.elements(); n > maxFolded {
			return nil, fmt.Errorf("it makes a constant of %d elements, of which there may be %d", n, maxFolded)
		}
	}
	for outer := range k.shape[:axis].Elements() {
		for _, x := range in {
			width := x.shape[axis:].Elements()
			for i := outer * width; i < (outer+1)*width; i++ {
				if k.whole {
					k.ints = append(k.ints, x.int(i))
				} else {
					k.floats = append(k.floats, x.float(i))
				}
			}
		}
	}
	return k, nil
}

func foldSlice(c *call, in []*constant) (*constant, error) {
	x := in[0]
	parts, err := c.ranges(x.shape)
	for _, r := range parts {
		shape := slices.Clone(x.shape)
		shape[r.axis] = r.count
		if r.count == 0 {
			x = &constant{shape: shape, whole: x.whole}
			continue
		}
		inner, extent := x.shape[r.axis+1:].Elements(), x.shape[r.axis]
		x, err = gathered(x, shape, func(i int) int {
			return (i/inner/r.count*extent+r.begin+i/inner%r.count*r.step)*inner + i%inner
		})
		if err != nil {
			return nil, err
		}
	}
	return x, err
}

func foldReshape(c *call, in []*constant) (*constant, error) {
	shape, err := c.reshaped(in[0].shape)
	if err != nil {
		return nil, err
	}
	k := *in[0]
	k.shape = shape
	return &k, nil
}

func foldTranspose(c *call, in []*constant) (*constant, error) {
	perm, err := c.permutation(len(in[0].shape))
	if err != nil {
		return nil, err
	}
	from := strides(in[0].shape)
	shape := graph.Shape{}
	for _, d := range perm {
		shape = append(shape, in[0].shape[d])
	}
	steps := strides(shape)
	return gathered(in[0], shape, func(i int) (at int) {
		for d, p := range perm {
			at += i / steps[d] % shape[d] * from[p]
		}
		return at
	})
}

func foldExpand(_ *call, in []*constant) (*constant, error) {
	extents, err := in[1].allInts()
	if err != nil {
		return nil, err
	}
	want, err := shapeOf(extents)
	if err != nil {
		return nil, err
	}
	shape, err := broadcast(in[0].shape, want)
	if err != nil {
		return nil, err
	}
	return gathered(in[0], shape, broadcastPlace(in[0].shape, shape))
}

func foldTile(_ *call, in []*constant) (*constant, error) {
	repeats, err := in[1].allInts()
	if err != nil {
		return nil, err
	}
	s := in[0].shape
	to, err := tiled(s, repeats)
	if err != nil {
		return nil, err
	}
	from, steps := strides(s), strides(to)
	return gathered(in[0], to, func(i int) (at int) {
		for d := range s {
			at += i / steps[d] % s[d] * from[d]
		}
		return at
	})
}

func foldRange(_ *call, in []*constant) (*constant, error) {
	var range3 [3]float64
	for i := range range3 {
		var err error
		if range3[i], err = in[i].scalar(); err != nil {
			return nil, err
		}
	}
	start, limit, delta := range3[0], range3[1], range3[2]
	n := math.Ceil((limit - start) / delta)
	if !(n >= 1 && n <= maxFolded) {
		return nil, fmt.Errorf("it makes %v elements", n)
	}
	k := &constant{shape: graph.Shape{int(n)}, whole: in[0].whole}
	for i := range int(n) {
		v := start + float64(i)*delta
		k.ints, k.floats = append(k.ints, int64(v)), append(k.floats, v)
	}
	return k, nil
}

func foldWhere(_ *call, in []*constant) (*constant, error) {
	shape, err := broadcast(in[0].shape, in[1].shape, in[2].shape)
	if err != nil {
		return nil, err
	}
	if shape.Elements() > maxFolded {
		return nil, fmt.Errorf("it makes a constant of %v", shape)
	}
	at, a := broadcastPlace(in[0].shape, shape), broadcastPlace(in[1].shape, shape)
	b := broadcastPlace(in[2].shape, shape)
	k := &constant{shape: shape, whole: in[1].whole}
	for i := range shape.Elements() {
		from, place := in[1], a(i)
		if in[0].int(at(i)) == 0 {
			from, place = in[2], b(i)
		}
		if k.whole {
			k.ints = append(k.ints, from.int(place))
		} else {
			k.floats = append(k.floats, from.float(place))
		}
	}
	return k, nil
}

func foldTrilu(c *call, in []*constant) (*constant, error) {
	x, diagonal := in[0], 0.0
	if len(in) > 1 {
		var err error
		if diagonal, err = in[1].scalar(); err != nil {
			return nil, err
		}
	}
	if len(x.shape) < 2 || x.elements() > maxFolded {
		return nil, fmt.Errorf("it takes a matrix of at most %d elements", maxFolded)
	}
	upper := c.int("upper", 1) != 0
	columns, rows := x.shape[len(x.shape)-1], x.shape[len(x.shape)-2]
	k := &constant{shape: x.shape, whole: x.whole}
	for i := range x.elements() {
		above := float64(i%columns - i/columns%rows)
		keep := upper && above >= diagonal || !upper && above <= diagonal
		if k.whole {
			k.ints = append(k.ints, x.int(i)*int64(oneIf(keep)))
		} else if keep {
			k.floats = append(k.floats, x.float(i))
		} else {
			k.floats = append(k.floats, 0)
		}
	}
	return k, nil
}

// foldBinary computes an elementwise operator of two inputs, of floats or of whole numbers.
func foldBinary(op string, of func(a, b float64) float64, whole func(a, b int64) int64) func(*call, []*constant) (
	*constant, error) {
	isTruth := slices.Contains([]string{"Equal", "Less", "Greater", "And", "Or", "Xor", "LessOrEqual",
		"GreaterOrEqual"}, op)
	return func(c *call, in []*constant) (*constant, error) {
		if many := op == "Max" || op == "Min"; many && len(in) == 1 {
			return in[0], nil
		} else if many && len(in) > 2 {
			first, err := foldBinary(op, of, whole)(c, in[:2])
			if err != nil {
				return nil, err
			}
			return foldBinary(op, of, whole)(c, append([]*constant{first}, in[2:]...))
		}
		if len(in) != 2 {
			return nil, fmt.Errorf("it has %d inputs, want 2", len(in))
		}
		a, b := in[0], in[1]
		shape, err := broadcast(a.shape, b.shape)
		if err != nil {
			return nil, err
		}
		if shape.Elements() > maxFolded {
			return nil, fmt.Errorf("it makes a constant of %v", shape)
		}
		atA, atB := broadcastPlace(a.shape, shape), broadcastPlace(b.shape, shape)
		k := &constant{shape: shape, whole: isTruth || a.whole && b.whole}
		for i := range shape.Elements() {
			switch {
			case a.whole && b.whole:
				if (op == "Div" || op == "Mod") && b.int(atB(i)) == 0 {
					return nil, fmt.Errorf("it divides by zero")
				}
				k.ints = append(k.ints, whole(a.int(atA(i)), b.int(atB(i))))
			case k.whole:
				k.ints = append(k.ints, int64(of(a.float(atA(i)), b.float(atB(i)))))
			default:
				k.floats = append(k.floats, rounded(of(a.float(atA(i)), b.float(atB(i)))))
			}
		}
		return k, nil
	}
}

func foldUnary(of func(x float64) float64) func(*call, []*constant) (*constant, error) {
	return func(c *call, in []*constant) (*constant, error) {
		x, op := in[0], c.node.Op
		k := &constant{shape: x.shape, whole: x.whole || op == "IsNaN", alike: x.alike}
		for i := range max(len(x.ints), len(x.floats)) {
			switch {
			case !k.whole:
				k.floats = append(k.floats, rounded(of(x.float(i))))
			case op == "Neg":
				k.ints = append(k.ints, -x.int(i))
			case op == "Abs":
				k.ints = append(k.ints, max(x.int(i), -x.int(i)))
			default:
				k.ints = append(k.ints, int64(of(x.float(i))))
			}
		}
		return k, nil
	}
}
