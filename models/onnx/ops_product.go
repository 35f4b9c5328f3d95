package onnx

import (
	"fmt"
	"slices"
	"strings"

	"tensile/graph"
)

// gemm is alpha·A·B + beta·C.
func (c *call) gemm() error {
	a, err := c.tensor(0)
	if err != nil {
		return err
	}
	b, err := c.weight(1)
	if err != nil {
		return err
	}
	sa, sb := c.b.Shape(a), c.b.Shape(b)
	if len(sa) != 2 || len(sb) != 2 {
		return fmt.Errorf("it multiplies %v and %v, want matrices", sa, sb)
	}
	at := graph.Attrs{TransposeA: c.int("transA", 0) != 0, TransposeB: c.int("transB", 0) != 0}
	alpha, beta := c.float("alpha", 1), c.float("beta", 1)
	m, n := sa[0], sb[1]
	if at.TransposeA {
		m = sa[1]
	}
	if at.TransposeB {
		n = sb[0]
	}
	shape := graph.Shape{m, n}
	var bias graph.TensorID = missing
	if c.hasInput(2) && beta != 0 {
		if bias, err = c.weight(2); err != nil {
			return err
		}
		if beta != 1 {
			bias = c.affine(bias, beta, 0)
		}
		v, _ := c.value(2)
		if s, err := broadcast(v.shape, shape); err != nil || !slices.Equal(s, shape) {
			return fmt.Errorf("its input 2 of shape %v does not broadcast to %v", v.shape, shape)
		}
	}
	var y graph.TensorID
	if row := bias != missing && slices.Equal(c.b.Shape(bias), graph.Shape{n}); alpha == 1 && !at.TransposeA &&
		at.TransposeB && (row || bias == missing) {
		operands := []graph.TensorID{a, b}
		if row {
			operands = append(operands, bias)
		}
		y = c.op(graph.Linear, graph.Attrs{}, operands...)
	} else {
		y = c.op(graph.MatMul, at, c.withShape(a, 1, sa[0], sa[1]), c.withShape(b, 1, sb[0], sb[1]))
		if alpha != 1 {
			y = c.affine(y, alpha, 0)
		}
		if y = c.withShape(y, m, n); bias != missing {
			y = c.add(y, bias, shape)
		}
	}
	c.give(0, y, shape)
	return nil
}

// matmul multiplies the matrices of the last two dimensions; the others are broadcast.
func (c *call) matmul() error {
	var t [2]graph.TensorID
	var s [2]graph.Shape
	var turned [2]bool
	for k := range t {
		v, err := c.value(k)
		if err != nil {
			return err
		}
		if s[k], turned[k] = v.shape, v.turned != nil; turned[k] {
			t[k], err = c.tensorOf(v.turned)
		} else {
			t[k], err = c.weight(k)
		}
		if err != nil {
			return err
		}
		if len(v.shape) == 0 {
			return fmt.Errorf("its input %d is a number", k)
		}
	}
	lineA, lineB := len(s[0]) == 1, len(s[1]) == 1
	if lineA {
		s[0] = graph.Shape{1, s[0][0]}
	}
	if lineB {
		s[1] = graph.Shape{s[1][0], 1}
	}
	ra, rb := len(s[0]), len(s[1])
	m, k, n := s[0][ra-2], s[0][ra-1], s[1][rb-1]
	batch, err := broadcast(s[0][:ra-2], s[1][:rb-2])
	if err != nil {
		return err
	}
	if s[1][rb-2] != k {
		return fmt.Errorf("it multiplies %v and %v, which do not fit", s[0], s[1])
	}
	one := s[1][:rb-2].Elements() == 1 // matrix for all rows
	if one && turned[0] && batch.Elements() > 1 {
		t[0], turned[0] = c.permute(t[0], exchangeLast(ra)), false
	}
	for i := range t {
		from := slices.Clone(s[i])
		rows, columns := &from[len(from)-2], &from[len(from)-1]
		if turned[i] {
			*rows, *columns = *columns, *rows
		}
		switch {
		case one && i == 0 && !turned[0]:
			t[0] = c.withShape(t[0], 1, s[0].Elements()/k, k)
		case one:
			t[i] = c.withShape(t[i], 1, *rows, *columns)
		default:
			t[i] = c.expand(c.withShape(t[i], from...), append(slices.Clone(batch), *rows, *columns))
			t[i] = c.withShape(t[i], batch.Elements(), *rows, *columns)
		}
	}
	y := c.op(graph.MatMul, graph.Attrs{TransposeA: turned[0], TransposeB: turned[1]}, t[0], t[1])
	shape := slices.Clone(batch)
	if !lineA {
		shape = append(shape, m)
	}
	if !lineB {
		shape = append(shape, n)
	}
	c.give(0, c.withShape(y, shape...), shape)
	return nil
}

// softmax over a dimension; before operator set 13 over all from it on.
func (c *call) softmax() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	axis, err := c.axis("axis", c.softmaxAxis(), len(s))
	if err != nil {
		return err
	}
	last := s[axis:].Elements() == s[axis]
	var perm []int
	rows, width := s[:axis].Elements(), s[axis:].Elements()
	if c.model.Version() >= 13 && !last {
		for d := range s {
			if d != axis {
				perm = append(perm, d)
			}
		}
		perm = append(perm, axis)
		x = c.permute(x, perm)
		rows, width = s.Elements()/s[axis], s[axis]
	}
	shape := c.b.Shape(x)
	y := c.op(graph.Softmax, graph.Attrs{Factor: 1}, c.withShape(x, 1, rows, width))
	if c.node.Op == "LogSoftmax" {
		y = c.op(graph.Log, graph.Attrs{}, y)
	}
	y = c.withShape(y, shape...)
	if perm != nil {
		back := make([]int, len(perm))
		for d, p := range perm {
			back[p] = d
		}
		y = c.permute(y, back)
	}
	c.give(0, c.withShape(y, s...), s)
	return nil
}

// softmaxAxis is the axis of a softmax that names none.
func (c *call) softmaxAxis() int64 {
	if c.model.Version() < 13 {
		return 1
	}
	return -1
}

// crossEntropy is the loss of a network that has its own, [N,C,...] and [N,...].
func (c *call) crossEntropy() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	if len(s) < 2 {
		return fmt.Errorf("its scores have shape %v, want [N,C,...]", s)
	}
	classes, rows := s[1], s.Elements()/s[1]
	perm := []int{0}
	for d := 2; d < len(s); d++ {
		perm = append(perm, d)
	}
	logits := c.withShape(c.permute(x, append(perm, 1)), rows, classes)
	labels, err := c.value(1)
	if err != nil {
		return err
	}
	ignored, ignores := c.attribute("ignore_index"), false
	if ignored != nil {
		ignores = ignored.Int >= 0
	}
	reduction := c.text("reduction", "mean")
	if labels.known == nil {
		if reduction != "mean" || c.hasInput(2) || ignores {
			return fmt.Errorf("reduction %.20q, class weights or an ignored class: where labels are fed, the mean "+
				"over labels that are not negative is supported", reduction)
		}
		if labels.tensor == missing {
			labels.whole = false
			labels.tensor = c.b.Input(labels.name, graph.Labels, graph.Float32, full(labels.shape))
		}
		if classes == 1 {
			return fmt.Errorf("its scores of shape %v are of one class, of which cross-entropy is 0 whatever the "+
				"weights are: export the network without it, and use --loss mse", s)
		}
		out := c.ops(graph.SoftmaxXent, graph.Attrs{}, logits, c.withShape(labels.tensor, rows))
		c.give(0, out[0], graph.Shape{})
		c.loss = true
		if c.outputIsRead(1) {
			return fmt.Errorf("its output of logarithms is read, which is supported where labels are known")
		}
		return nil
	}
	return c.crossEntropyOf(logits, labels.known, s, reduction)
}

// crossEntropyOf is the loss of known labels, in any of its forms.
func (c *call) crossEntropyOf(logits graph.TensorID, labels *constant, s graph.Shape, reduction string) error {
	rows, classes := c.b.Shape(logits)[0], c.b.Shape(logits)[1]
	shares := c.op(graph.Softmax, graph.Attrs{Factor: 1}, c.withShape(logits, 1, rows, classes))
	scores := c.withShape(c.op(graph.Log, graph.Attrs{}, shares), rows, classes)
	each := slices.Concat(graph.Shape{s[0]}, s[2:])
	if c.outputIsRead(1) {
		back := []int{0, len(s) - 1}
		for d := 1; d < len(s)-1; d++ {
			back = append(back, d)
		}
		c.give(1, c.permute(c.withShape(scores, slices.Concat(each, graph.Shape{classes})...), back), s)
	}
	chosen, err := c.numbers(rows * classes)
	if err != nil {
		return err
	}
	total := 0.0
	ignored := c.attribute("ignore_index")
	// class weights are fed by those who ask for a case, or come from the file
	weight := func(int) float64 { return 1 }
	if c.hasInput(2) {
		k, err := c.constantInput(2)
		if err != nil {
			return err
		}
		if k.elements() != classes {
			return fmt.Errorf("it has %d weights for %d classes", k.elements(), classes)
		}
		weight = k.float
	}
	if labels.elements() != rows {
		return fmt.Errorf("it has %d labels for %d rows", labels.elements(), rows)
	}
	places, err := labels.allInts()
	if err != nil {
		return err
	}
	for r, label := range places {
		if ignored != nil && label == ignored.Int {
			continue
		}
		if label < 0 || label >= int64(classes) {
			return fmt.Errorf("label %d is none of %d classes", label, classes)
		}
		w := weight(int(label))
		chosen[r*classes+int(label)] = -w
		total += w
	}
	mask, err := c.constant(graph.Shape{rows, classes}, chosen)
	if err != nil {
		return err
	}
	terms := c.op(graph.Mul, graph.Attrs{}, scores, mask)
	y := c.withShape(c.op(graph.SumOver, graph.Attrs{}, c.withShape(terms, rows, classes, 1)), rows)
	switch reduction {
	case "none":
		c.give(0, c.withShape(y, each...), each)
		return nil
	case "mean", "sum":
		y = c.op(graph.SumOver, graph.Attrs{}, c.withShape(y, 1, rows, 1))
		if reduction == "mean" {
			y = c.affine(y, 1/total, 0)
		}
		c.give(0, c.withShape(y, 1), graph.Shape{})
		return nil
	}
	return fmt.Errorf("reduction %.40q is none of none, mean and sum", reduction)
}

// einsum is a product of one or two operands whose dimensions have letters: those that the result lacks are summed up.
func (c *call) einsum() error {
	terms, to, found := strings.Cut(strings.ReplaceAll(c.text("equation", ""), " ", ""), "->")
	from := strings.Split(terms, ",")
	if len(from) != len(c.node.Inputs) || len(from) > 2 || !found {
		return fmt.Errorf("equation %.80q: one or two operands, and what they make, are supported",
			c.text("equation", ""))
	}
	if strings.ContainsFunc(strings.Join(from, "")+to, func(r rune) bool {
		return r != '.' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return fmt.Errorf("equation %.80q: letters a to z and A to Z are supported", c.text("equation", ""))
	}
	extents := make(map[rune]int)
	var operands []graph.TensorID
	for k, term := range from {
		x, err := c.weight(k)
		if err != nil {
			return err
		}
		s := c.b.Shape(x)
		if v, _ := c.value(k); len(v.shape) != len(s) || len(term) != len(s) {
			return fmt.Errorf("equation %.80q does not fit shape %v", c.text("equation", ""), v.shape)
		}
		for d, letter := range term {
			n, seen := extents[letter]
			if strings.Count(term, string(letter)) > 1 || seen && n != s[d] || letter == '.' {
				return fmt.Errorf("equation %.80q: a letter twice in an operand, one of two extents, and ... are not "+
					"supported", c.text("equation", ""))
			}
			extents[letter] = s[d]
		}
		operands = append(operands, x)
	}
	for _, letter := range to {
		if _, ok := extents[letter]; !ok || strings.Count(to, string(letter)) > 1 {
			return fmt.Errorf("equation %.80q has no meaning", c.text("equation", ""))
		}
	}
	y, made := c.contracted(operands, from, to, extents)
	shape := graph.Shape{}
	perm := []int{}
	for _, letter := range to {
		shape, perm = append(shape, extents[letter]), append(perm, strings.IndexRune(made, letter))
	}
	c.give(0, c.withShape(c.permute(y, perm), shape...), shape)
	return c.b.Err()
}

// contracted is the product of operands with dimensions from, all summed up but those of to. It has the letters made.
func (c *call) contracted(operands []graph.TensorID, from []string, to string, extents map[rune]int) (
	y graph.TensorID, made string) {
	sized := func(letters string) (s graph.Shape) {
		for _, letter := range letters {
			s = append(s, extents[letter])
		}
		return s
	}
	only := func(letters string, keep func(letter rune) bool) string {
		return strings.Map(func(letter rune) rune {
			if keep(letter) {
				return letter
			}
			return -1
		}, letters)
	}
	for k, term := range from { // what is in no other place is summed up first
		elsewhere := to
		if len(from) == 2 {
			elsewhere += from[1-k]
		}
		over := make([]bool, len(term))
		for d, letter := range term {
			over[d] = !strings.ContainsRune(elsewhere, letter)
		}
		operands[k], _ = c.sum(operands[k], sized(term), over)
		from[k] = only(term, func(letter rune) bool { return strings.ContainsRune(elsewhere, letter) })
		operands[k] = c.withShape(operands[k], sized(from[k])...)
	}
	if len(from) == 1 {
		return operands[0], from[0]
	}
	a, b := from[0], from[1]
	both := func(letter rune) bool { return strings.ContainsRune(a, letter) && strings.ContainsRune(b, letter) }
	batch := only(to, both)
	summed := only(a, func(letter rune) bool { return both(letter) && !strings.ContainsRune(to, letter) })
	rows := only(a, func(letter rune) bool { return !both(letter) })
	columns := only(b, func(letter rune) bool { return !both(letter) })
	arrange := func(t graph.TensorID, is, want string) graph.TensorID {
		perm := []int{}
		for _, letter := range want {
			perm = append(perm, strings.IndexRune(is, letter))
		}
		return c.permute(t, perm)
	}
	n := sized(batch).Elements()
	y = c.op(graph.MatMul, graph.Attrs{},
		c.withShape(arrange(operands[0], a, batch+rows+summed), n, sized(rows).Elements(), sized(summed).Elements()),
		c.withShape(arrange(operands[1], b, batch+summed+columns), n, sized(summed).Elements(),
			sized(columns).Elements()))
	made = batch + rows + columns
	return c.withShape(y, sized(made)...), made
}
