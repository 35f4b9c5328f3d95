package onnx

import (
	"fmt"
	"slices"
	"strconv"

	"tensile/graph"
)

// identity hands on its input. A cast between floating types is none here: all of them are float32.
func (c *call) identity() error {
	v, err := c.value(0)
	if err != nil {
		return err
	}
	to, casts := Type(c.int("to", int64(Float32))), c.node.Op == "Cast"
	if c.node.Op == "CastLike" {
		like, err := c.value(1)
		if err != nil {
			return err
		}
		if casts = true; like.whole {
			to = Int64
		}
	}
	if casts {
		switch {
		case (v.truth || v.numbers) && to != Bool: // whole numbers of any type
		case v.truth:
		case to == Bool:
			return c.isNotZero(v)
		case to.float() && v.whole:
			x, err := c.number32(v)
			if err == nil {
				c.give(0, x, v.shape)
			}
			return err
		case !to.float() && !v.whole && !c.passed[c.node]:
			x, err := c.tensorOf(v)
			if err == nil {
				c.set(0, &value{shape: v.shape, tensor: c.withShape(c.truncated(x), full(v.shape)...), numbers: true})
			}
			return err
		}
	}
	same := *v
	same.numbers = (v.numbers || v.truth) && casts && !to.float() && to != Bool
	if same.truth = v.truth && (!casts || to == Bool); v.listed {
		c.set(0, &same)
		return nil
	}
	if _, err := c.tensorOf(v); err != nil {
		return err
	}
	same.tensor, same.init, same.input = v.tensor, nil, false
	c.set(0, &same)
	return nil
}

// isNotZero makes truth values of numbers.
func (c *call) isNotZero(v *value) error {
	x, err := c.number32(v)
	if err != nil {
		return err
	}
	above, err := c.positive(x, v.shape)
	if err != nil {
		return err
	}
	below, err := c.positive(c.affine(x, -1, 0), v.shape)
	if err == nil {
		c.giveTruth(c.sumOf(above, below), v.shape)
	}
	return err
}

func (c *call) reshape() error {
	v, err := c.value(0)
	if err != nil {
		return err
	}
	x, err := c.tensorOf(v)
	if err != nil {
		return err
	}
	shape, err := c.reshaped(v.shape)
	if err != nil {
		return err
	}
	c.give(0, c.withShape(x, shape...), shape)
	return nil
}

// shaped is input 0 in its shape.
func (c *call) shaped() (graph.TensorID, graph.Shape, error) {
	v, err := c.value(0)
	if err != nil {
		return missing, nil, err
	}
	x, err := c.tensorOf(v)
	if err == nil {
		x = c.withShape(x, v.shape...)
	}
	return x, v.shape, err
}

func (c *call) transpose() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	perm, err := c.permutation(len(s))
	if err != nil {
		return err
	}
	if v, _ := c.value(0); c.turnsFactors(perm) {
		n := len(s)
		c.set(0, &value{shape: append(slices.Clone(s[:n-2]), s[n-1], s[n-2]), tensor: missing, turned: v})
		return nil
	}
	y := c.permute(x, perm)
	c.give(0, y, c.b.Shape(y))
	return nil
}

// turnsFactors reports whether a permutation exchanges the last two dimensions, and products alone read what it makes:
// they read a factor in either order.
func (c *call) turnsFactors(perm []int) bool {
	if len(perm) < 2 || !slices.Equal(perm, exchangeLast(len(perm))) {
		return false
	}
	out := c.node.Outputs[0]
	return !slices.ContainsFunc(c.readers[out], func(n *Node) bool { return n.Op != "MatMul" }) &&
		!c.outputs[out]
}

// exchangeLast is the permutation of n dimensions that exchanges the last two.
func exchangeLast(n int) []int {
	perm := make([]int, n)
	for d := range perm {
		perm[d] = d
	}
	perm[n-2], perm[n-1] = n-1, n-2
	return perm
}

func (c *call) join() error {
	_, s, err := c.shaped()
	if err != nil {
		return err
	}
	axis, err := c.axis("axis", 1, len(s))
	if err != nil {
		return err
	}
	var parts []graph.TensorID
	for k := range c.node.Inputs {
		x, err := c.tensor(k)
		if err != nil {
			return err
		}
		parts = append(parts, x)
	}
	y := c.concat(axis, parts...)
	c.give(0, y, c.b.Shape(y))
	return nil
}

func (c *call) split() error {
	v, err := c.value(0)
	if err != nil {
		return err
	}
	axis, err := c.axis("axis", 0, len(v.shape))
	if err != nil {
		return err
	}
	sizes := c.ints("split")
	if c.hasInput(1) {
		if sizes, err = c.knownInts(1); err != nil {
			return err
		}
	}
	if sizes == nil {
		n := int64(len(c.node.Outputs))
		sizes = evenly(v.shape[axis], (int64(v.shape[axis])+n-1)/n)
	}
	if len(sizes) != len(c.node.Outputs) {
		return fmt.Errorf("it splits into %v for %d outputs", sizes, len(c.node.Outputs))
	}
	items, err := c.pieces(v, axis, sizes)
	for k, item := range items {
		c.set(k, item)
	}
	return err
}

// evenly are the sizes of pieces of an extent, the last of which may be smaller than the others.
func evenly(extent int, each int64) (sizes []int64) {
	for left := int64(extent); left > 0 && each > 0; left -= each {
		sizes = append(sizes, min(each, left))
	}
	return sizes
}

func (c *call) cut() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	parts, err := c.ranges(s)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.count == 0 {
			return fmt.Errorf("it takes no element of dimension %d of %v: at least one is supported", p.axis, s)
		}
		if p.step > 0 {
			x = c.strided(x, p.axis, p.begin, p.count, p.step)
			continue
		}
		places := make([]int, p.count)
		for i := range places {
			places[i] = p.begin + i*p.step
		}
		if x, err = c.take(x, p.axis, places); err != nil {
			return err
		}
	}
	c.give(0, x, c.b.Shape(x))
	return nil
}

// mostGathered is how many places a gather with known indices takes from one by one.
const mostGathered = 1 << 12

// gather takes known places of a dimension, or the rows of a table that an input names.
func (c *call) gather() error {
	table, err := c.value(0)
	if err != nil {
		return err
	}
	ids, err := c.value(1)
	if err != nil {
		return err
	}
	axis, err := c.axis("axis", 0, len(table.shape))
	if err != nil {
		return err
	}
	if table.whole {
		return fmt.Errorf("it takes rows of whole numbers that are fed, %.80q: export it with floats there",
			table.name)
	}
	x, err := c.stored(0, graph.Parameter)
	if err != nil {
		return err
	}
	shape := slices.Concat(table.shape[:axis], ids.shape, table.shape[axis+1:])
	y, err := c.gathered(c.withShape(x, table.shape...), axis, ids)
	if err != nil {
		return err
	}
	y = c.withShape(y, shape...)
	if at := padded.FindStringSubmatch(c.node.fx); at != nil && axis == 0 && c.options.Train {
		if y, err = c.keepRow(y, shape, table.shape[0], at[2], ids); err != nil {
			return err
		}
	}
	c.give(0, y, shape)
	return nil
}

// gathered takes elements of a dimension of x, those that ids name.
func (c *call) gathered(x graph.TensorID, axis int, ids *value) (graph.TensorID, error) {
	s := c.b.Shape(x)
	if ids.known == nil {
		if axis != 0 {
			return missing, fmt.Errorf("its indices %.80q are fed, and its axis is %d: a table along axis 0 is "+
				"supported", ids.name, axis)
		}
		at, err := c.tensorOf(ids)
		if err != nil {
			return missing, err
		}
		if ids.numbers || ids.truth || ids.counts {
			return c.gatherNumbers(x, s, ids)
		}
		if c.b.Peek().Tensors[at].DType != graph.Int64 {
			return missing, fmt.Errorf("its indices %.80q are floats: export the network with an input of whole "+
				"numbers there", ids.name)
		}
		return c.op(graph.Embedding, graph.Attrs{}, c.withShape(x, s[0], s[1:].Elements()),
			c.withShape(at, ids.shape.Elements())), nil
	}
	extent := int64(s[axis])
	numbers, err := ids.known.allInts()
	if err == nil && len(numbers) == 0 {
		err = fmt.Errorf("it takes no element")
	}
	if err != nil {
		return missing, err
	}
	places := make([]int, len(numbers))
	for i, n := range numbers {
		if n < -extent || n >= extent {
			return missing, fmt.Errorf("index %d is outside of %d", n, extent)
		}
		places[i] = int((n + extent) % extent)
	}
	return c.take(x, axis, places)
}

// keepRow is y, rows of a table, with no gradient through those that are its row for padding.
func (c *call) keepRow(y graph.TensorID, shape graph.Shape, rows int, padding string,
	ids *value) (graph.TensorID, error) {
	moves, err := c.numbers(rows)
	if err != nil {
		return missing, err
	}
	for i := range moves {
		moves[i] = oneIf(strconv.Itoa(i) != padding)
	}
	table, err := c.constant(graph.Shape{rows, 1}, moves)
	if err != nil {
		return missing, err
	}
	takes, err := c.gathered(table, 0, ids)
	if err != nil {
		return missing, err
	}
	n := ids.shape.Elements()
	width := shape.Elements() / max(1, n)
	y = c.withShape(y, n, width)
	y = c.op(graph.Blend, graph.Attrs{}, c.expand(c.withShape(takes, n, 1), graph.Shape{n, width}), y, c.stop(y))
	return c.withShape(y, shape...), nil
}

// take joins elements of a dimension at known places, those that follow one another at once; where those are many, by a
// product with a matrix of zeros and ones.
func (c *call) take(x graph.TensorID, axis int, places []int) (graph.TensorID, error) {
	runs := 1
	for i := 1; i < len(places); i++ {
		if places[i] != places[i-1]+1 {
			runs++
		}
	}
	if runs > mostGathered {
		n, columns := c.b.Shape(x)[axis], len(places)
		if n > maxFolded/columns {
			return missing, fmt.Errorf("it takes %d places of %d that do not follow one another, more than is "+
				"supported", columns, n)
		}
		matrix, err := c.numbers(n * columns)
		if err != nil {
			return missing, err
		}
		for j, p := range places {
			matrix[p*columns+j] = 1
		}
		return c.mapped(x, axis, columns, matrix)
	}
	var parts []graph.TensorID
	for i := 0; i < len(places); {
		n := 1
		for i+n < len(places) && places[i+n] == places[i]+n {
			n++
		}
		parts = append(parts, c.slice(x, axis, places[i], n))
		i += n
	}
	return c.concat(axis, parts...), nil
}

// tile repeats a tensor along its dimensions.
func (c *call) tile() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	repeats, err := c.knownInts(1)
	if err != nil {
		return err
	}
	to, err := tiled(s, repeats)
	if err != nil {
		return err
	}
	for d, n := range repeats {
		if n > 1 {
			now := slices.Concat(to[:d], s[d:])
			x = c.op(graph.Expand, graph.Attrs{Extent: [2]int{int(n)}}, c.withShape(x, now[:d].Elements(),
				now[d:].Elements()))
		}
	}
	c.give(0, c.withShape(x, to...), to)
	return nil
}

// tiled is the shape of s when it is repeated along its dimensions.
func tiled(s graph.Shape, repeats []int64) (graph.Shape, error) {
	if len(repeats) != len(s) {
		return nil, fmt.Errorf("repeats %v do not fit shape %v", repeats, s)
	}
	to := graph.Shape{}
	for d, n := range repeats {
		if n < 1 || n > maxElements/int64(max(1, s[d])) {
			return nil, fmt.Errorf("repeats %v have no meaning for shape %v", repeats, s)
		}
		to = append(to, s[d]*int(n))
	}
	return to, countable(to)
}

func (c *call) expansion() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	extents, err := c.knownInts(1)
	if err != nil {
		return err
	}
	want, err := shapeOf(extents)
	if err != nil {
		return err
	}
	to, err := broadcast(s, want)
	if err != nil {
		return err
	}
	c.give(0, c.expand(x, to), to)
	return nil
}

// dropout drops where the node trains: by its flag, or before operator set 12 where all of the network does.
func (c *call) dropout() error {
	rate := c.float("ratio", 0.5)
	if c.hasInput(1) {
		var err error
		if rate, err = c.number(1); err != nil {
			return err
		}
	}
	trains := c.options.Train && c.model.Version() < 12
	if c.hasInput(2) {
		flag, err := c.number(2)
		if err != nil {
			return err
		}
		trains = flag != 0
	}
	if trains && rate > 0 && !c.options.Train {
		return fmt.Errorf("it drops a share of %v: outside of a training it is supported with 0", rate)
	}
	if c.outputIsRead(1) {
		v, _ := c.value(0)
		c.set(1, &value{shape: v.shape, whole: true, tensor: missing,
			known: &constant{shape: v.shape, whole: true, alike: true, ints: []int64{1}}})
		if trains && rate > 0 {
			return fmt.Errorf("its mask is read, which is not supported")
		}
	}
	if !trains || rate == 0 {
		return c.identity()
	}
	return unary(func(c *call, x graph.TensorID) graph.TensorID {
		return c.op(graph.Dropout, graph.Attrs{Rate: rate, Key: c.keys[c.node]}, x)
	})(c)
}

// gatherND takes pieces that known indices name.
func (c *call) gatherND() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	ids, err := c.constantInput(1)
	if err != nil {
		return err
	}
	places, piece, err := rows(ids, s, int(c.int("batch_dims", 0)))
	if err != nil {
		return err
	}
	if len(places) == 0 {
		return fmt.Errorf("it takes no element")
	}
	y, err := c.take(c.withShape(x, s.Elements()/piece.Elements(), piece.Elements()), 0, places)
	if err != nil {
		return err
	}
	shape := gatherNDShape(ids.shape, piece)
	c.give(0, c.withShape(y, shape...), shape)
	return nil
}

// gatherElements takes single elements that known indices name.
func (c *call) gatherElements() error {
	v, err := c.value(0)
	if err != nil {
		return err
	}
	if _, alike := uniformOf(v); alike { // whichever they are
		ids, err := c.value(1)
		if err != nil {
			return err
		}
		k := *v.known
		if k.shape = ids.shape; !k.alike {
			k.alike, k.ints, k.floats = true, k.ints[:min(1, len(k.ints))], k.floats[:min(1, len(k.floats))]
		}
		c.set(0, &value{shape: k.shape, whole: k.whole, known: &k, tensor: missing})
		return nil
	}
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	ids, err := c.constantInput(1)
	if err != nil {
		return err
	}
	all := &constant{shape: s, whole: true}
	if _, err := c.numbers(s.Elements()); err != nil {
		return err
	}
	for i := range s.Elements() {
		all.ints = append(all.ints, int64(i))
	}
	from, err := foldGatherElements(c, []*constant{all, ids})
	if err != nil {
		return err
	}
	places := make([]int, len(from.ints))
	for i, at := range from.ints {
		places[i] = int(at)
	}
	if len(places) == 0 {
		return fmt.Errorf("it takes no element")
	}
	y, err := c.take(c.withShape(x, s.Elements()), 0, places)
	if err != nil {
		return err
	}
	c.give(0, c.withShape(y, from.shape...), from.shape)
	return nil
}

// scatterND puts pieces where known indices say, or adds them there: that is a product with a matrix of zeros and ones.
func (c *call) scatterND() error {
	adds, err := c.scatterAdds()
	if err != nil {
		return err
	}
	data, err := c.value(0)
	if err != nil {
		return err
	}
	updates, err := c.value(2)
	if err != nil {
		return err
	}
	ids, err := c.constantInput(1)
	if err != nil {
		return err
	}
	s := data.shape
	places, piece, err := rows(ids, s, 0)
	if err != nil {
		return err
	}
	width := piece.Elements()
	if len(places) == 0 || updates.shape.Elements() != len(places)*width {
		return fmt.Errorf("it has %d updates of %d elements, and they have shape %v", len(places), width,
			updates.shape)
	}
	n := s.Elements() / width
	u, err := c.tensorOf(updates)
	if err != nil {
		return err
	}
	u = c.withShape(u, len(places), width)
	if adds {
		matrix, err := c.numbers(len(places) * n)
		if err != nil {
			return err
		}
		for i, p := range places {
			matrix[i*n+p] = 1
		}
		y, err := c.mapped(u, 0, n, matrix)
		if err != nil {
			return err
		}
		if fill, ok := uniformOf(data); !ok || fill != 0 {
			x, err := c.tensorOf(data)
			if err != nil {
				return err
			}
			y = c.sumOf(y, c.withShape(x, n, width))
		}
		c.give(0, c.withShape(y, s...), s)
		return nil
	}
	x, err := c.tensorOf(data)
	if err != nil {
		return err
	}
	from := make([]int, n)
	for i := range from {
		from[i] = i
	}
	for i, p := range places {
		from[p] = n + i
	}
	y, err := c.take(c.concat(0, c.withShape(x, n, width), u), 0, from)
	if err != nil {
		return err
	}
	c.give(0, c.withShape(y, s...), s)
	return nil
}

// triangle keeps the elements of matrices above or below a diagonal.
func (c *call) triangle() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	if len(s) < 2 {
		return fmt.Errorf("its input has shape %v, want a matrix", s)
	}
	last := s[len(s)-2:]
	ones := &constant{shape: slices.Clone(last), alike: true, floats: []float64{1}}
	in := []*constant{ones}
	if c.hasInput(1) {
		k, err := c.constantInput(1)
		if err != nil {
			return err
		}
		in = append(in, k)
	}
	k, err := foldTrilu(c, in)
	if err != nil {
		return err
	}
	mask, err := c.constant(k.shape, k.floats)
	if err != nil {
		return err
	}
	c.give(0, c.keep(c.expand(mask, s), x), s)
	return nil
}
