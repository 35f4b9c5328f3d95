package onnx

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// Whole numbers that are fed index tables, and are Int64. Where a network computes with them, as with token ids that it
// compares, it has them as floats: rows of a table of 0, 1, 2, ... that they index too. What such floats index is a
// product with ones where they are.

// moving are operators that hand on elements of their first input, or of all that Concat and Sequences take.
var moving = []string{"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Tile", "Slice",
	"Gather", "GatherND", "GatherElements", "Concat", "Split"}

// counting are operators that make whole numbers of whole numbers.
var counting = []string{"Add", "Sub", "Mul", "Neg", "Abs", "CumSum", "Max", "Min", "Clip", "Where", "ReduceSum",
	"ReduceMax", "ReduceMin", "Sign"}

// classify notes which outputs of the node are truth values or whole numbers that are floats.
func (c *call) classify() {
	op := c.node.Op
	moves := slices.Contains(moving, op)
	if !moves && !slices.Contains(counting, op) {
		return
	}
	truth, numbers := moves, true
	for k, name := range c.node.Inputs {
		v := c.values[name]
		if name == "" || moves && k > 0 && op != "Concat" {
			continue
		}
		truth = truth && v.truth
		numbers = numbers && (v.truth || v.numbers || v.counts || v.whole)
	}
	for _, name := range c.node.Outputs {
		if v := c.values[name]; v != nil && name != "" && !v.whole && v.known == nil {
			v.truth, v.numbers = v.truth || truth, v.numbers || numbers && !truth
		}
	}
}

// number is the tensor of a value as floats, also of whole numbers that are known or fed.
func (c *call) number32(v *value) (graph.TensorID, error) {
	if !v.whole {
		return c.tensorOf(v)
	}
	if v.known != nil {
		all, err := c.numbers(v.known.elements())
		if err != nil {
			return missing, err
		}
		for i := range all {
			all[i] = v.known.float(i)
		}
		return c.constant(v.shape, all)
	}
	ids, err := c.tensorOf(v)
	if err != nil {
		return missing, err
	}
	n := c.tableOf(v.name)
	if n == 0 {
		return missing, fmt.Errorf("it computes with whole numbers that are fed, %.80q, and no table says how many of "+
			"them there are: export the network with an input of floats for this", v.name)
	}
	table, err := c.numbers(n)
	if err != nil {
		return missing, err
	}
	for i := range table {
		table[i] = float64(i)
	}
	rows, err := c.constant(graph.Shape{n, 1}, table)
	if err != nil {
		return missing, err
	}
	y := c.op(graph.Embedding, graph.Attrs{}, rows, c.withShape(ids, v.shape.Elements()))
	return c.withShape(y, full(v.shape)...), nil
}

// tableOf is how many rows the smallest table has that whole numbers index; 0: they index none.
func (c *call) tableOf(name string) int {
	for n := c.maker[name]; n != nil && len(n.Inputs) > 0 && slices.Contains(moving, n.Op); n = c.maker[name] {
		name = n.Inputs[0]
	}
	least := 0
	seen := map[string]bool{name: true}
	for left := []string{name}; len(left) > 0; left = left[1:] {
		for _, n := range c.readers[left[0]] {
			if n.Op == "Gather" && len(n.Inputs) == 2 && n.Inputs[1] == left[0] {
				if v := c.values[n.Inputs[0]]; v != nil && len(v.shape) > 0 && (least == 0 || v.shape[0] < least) {
					least = v.shape[0]
				}
			} else if slices.Contains(moving, n.Op) && n.Inputs[0] == left[0] {
				for _, out := range n.Outputs {
					if !seen[out] {
						seen[out] = true
						left = append(left, out)
					}
				}
			}
		}
	}
	return least
}

// gatherNumbers takes the rows of a table that floats name, which hold whole numbers.
func (c *call) gatherNumbers(table graph.TensorID, s graph.Shape, ids *value) (graph.TensorID, error) {
	rows, width, count := s[0], s[1:].Elements(), ids.shape.Elements()
	if rows > maxFolded/max(1, count) {
		return missing, fmt.Errorf("its indices %.80q are computed of what is fed: %d of a table of %d rows are more "+
			"than is supported", ids.name, count, rows)
	}
	numbers, err := c.numbers(rows)
	if err != nil {
		return missing, err
	}
	for i := range numbers {
		numbers[i] = float64(i)
	}
	places, err := c.constant(graph.Shape{1, rows}, numbers)
	if err != nil {
		return missing, err
	}
	to := graph.Shape{count, rows}
	d := c.add(c.expand(c.withShape(ids.tensor, count, 1), to), c.affine(places, -1, 0), to)
	square := c.product(d, d)
	is, err := c.positive(c.affine(square, -1, 0.25), to) // half a row away at most
	if err != nil {
		return missing, err
	}
	return c.op(graph.MatMul, graph.Attrs{}, c.withShape(is, 1, count, rows), c.withShape(table, 1, rows, width)), nil
}
