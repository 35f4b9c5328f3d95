package onnx

import (
	"math"
	"slices"
)

// Exporters write a GELU for operator sets that have none as x·½·(1 + erf(x/√2)), which takes more time than one
// operator, and memory for what lies in between.

// findGELUs finds the nodes that are a GELU together. The last of them is imported as one, and the others are left out
// unless something else reads what they make. It may be called when it is known what is fed.
func (i *importer) findGELUs(nodes []*Node) {
	for _, n := range nodes {
		if n.Op == "Mul" {
			i.findGELU(n)
		}
	}
}

// findGELU finds that of which a product is the last node.
func (i *importer) findGELU(last *Node) {
	factor, factors, inner := i.factors(last, mostInner)
	if len(factors) != 2 || !isClose(factor, 0.5) {
		return
	}
	for k, name := range factors {
		x := factors[1-k]
		sum := i.made(name, "Add")
		erf, by := i.termsOf(sum)
		if sum == nil || by != 1 || i.made(erf, "Erf") == nil || !i.fed[x] {
			continue
		}
		scaled := i.made(i.maker[erf].Inputs[0], "Div", "Mul")
		if scaled == nil {
			continue
		}
		scale, of, _ := i.factors(scaled, mostInner)
		if len(of) != 1 || of[0] != x || !isClose(scale, 1/math.Sqrt2) {
			continue
		}
		i.instead[last] = &Node{Name: last.Name, Op: "Gelu", Inputs: []string{x}, Outputs: last.Outputs,
			index: last.index}
		left := map[*Node]bool{last: true}
		for _, n := range append(inner, sum, i.maker[erf], scaled) { // each before those of which it is made
			left[n] = !slices.ContainsFunc(i.readers[n.Outputs[0]], func(r *Node) bool { return !left[r] }) &&
				!i.outputs[n.Outputs[0]]
			if left[n] {
				i.instead[n] = nil
			}
		}
		return
	}
}

// mostInner is how deep products inside of a product count as its own: a GELU has one inside of its last. A file may
// have a chain of products without end.
const mostInner = 2

// isClose reports whether a number is what a GELU has there. One that is no number is not.
func isClose(v, want float64) bool { return math.Abs(v-want) <= 1e-6 }

// made is the node that makes a value, if it is one of these operators; nil: it is none.
func (i *importer) made(name string, ops ...string) *Node {
	n := i.maker[name]
	if name == "" || n == nil || !slices.Contains(ops, n.Op) || len(n.Inputs) == 0 && n.Op != "Constant" {
		return nil
	}
	return n
}

// factors are those of a product or a quotient: numbers, multiplied, and other values. Those of an inner product, which
// is read nowhere else, count as its own, down to a depth.
func (i *importer) factors(n *Node, depth int) (number float64, others []string, inner []*Node) {
	number = 1
	for k, in := range n.Inputs {
		v, ok := i.numberOf(in)
		from := i.made(in, "Mul")
		_, replaced := i.instead[from]
		switch {
		case ok && n.Op == "Div" && k == 1:
			number /= v
		case ok && k < 2 && (n.Op == "Mul" || k == 1):
			number *= v
		case from != nil && depth > 0 && !replaced && n.Op == "Mul" && len(i.readers[in]) == 1 && !i.outputs[in]:
			by, of, more := i.factors(from, depth-1)
			number, others, inner = number*by, append(others, of...), append(append(inner, from), more...)
		default:
			others = append(others, in)
		}
	}
	return number, others, inner
}

// termsOf are those of a sum of a value and a number; "": it is none.
func (i *importer) termsOf(sum *Node) (of string, number float64) {
	if sum == nil || len(sum.Inputs) != 2 {
		return "", 0
	}
	for k, in := range sum.Inputs {
		if v, ok := i.numberOf(in); ok {
			return sum.Inputs[1-k], v
		}
	}
	return "", 0
}

// numberOf is the number that a value is, if it is one without dimensions.
func (i *importer) numberOf(name string) (float64, bool) {
	var k *constant
	if n := i.made(name, "Constant"); n != nil {
		c := &call{importer: i, node: n}
		a := c.attribute("value")
		if a != nil && a.Tensor != nil && len(a.Tensor.Dims) > 0 || c.attribute("value_floats") != nil {
			return 0, false // it may be large, and each of its readers asks
		}
		k, _ = foldConstant(c, nil) // an error is told where the node is imported
	} else if v := i.values[name]; v != nil {
		k = v.known
	}
	if k == nil || k.whole || len(k.shape) > 0 {
		return 0, false
	}
	number, err := k.scalar()
	return number, err == nil
}
