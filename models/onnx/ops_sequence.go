package onnx

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// Sequences are lists of values while a model is imported; no op makes one.

// piece is a range of a value along a dimension.
func (c *call) piece(v *value, axis, begin, n int) (*value, error) {
	s := slices.Clone(v.shape)
	s[axis] = n
	if v.known != nil {
		extent, inner := v.shape[axis], v.shape[axis+1:].Elements()
		k, err := gathered(v.known, s, func(i int) int {
			return (i/inner/n*extent+begin+i/inner%n)*inner + i%inner
		})
		if err != nil {
			return nil, err
		}
		if err := c.afford(k); err != nil {
			return nil, err
		}
		return &value{shape: s, whole: k.whole, known: k, tensor: missing}, nil
	}
	x, err := c.tensorOf(v)
	if err != nil {
		return nil, err
	}
	return &value{shape: s, tensor: c.slice(c.withShape(x, v.shape...), axis, begin, n)}, nil
}

// sequence makes output 0: a list of values.
func (c *call) sequence(items []*value) {
	c.set(0, &value{tensor: missing, items: items, listed: true})
}

// list is input k, a sequence.
func (c *call) list(k int) ([]*value, error) {
	v, err := c.value(k)
	if err != nil {
		return nil, err
	}
	if !v.listed {
		return nil, fmt.Errorf("its input %.80q is no sequence", c.node.Inputs[k])
	}
	return v.items, nil
}

func (c *call) sequenceConstruct() error {
	var items []*value
	for k := range c.node.Inputs {
		v, err := c.value(k)
		if err != nil {
			return err
		}
		items = append(items, v)
	}
	c.sequence(items)
	return nil
}

func (c *call) sequenceAt() error {
	items, err := c.list(0)
	if err != nil {
		return err
	}
	at, err := c.number(1)
	if err != nil {
		return err
	}
	i, err := indexPlace(int64(at), len(items))
	if err != nil {
		return err
	}
	same := *items[i]
	if same.init != nil || same.input { // it keeps the name of its parameter or input
		if _, err := c.tensorOf(items[i]); err != nil {
			return err
		}
		same.tensor, same.init, same.input = items[i].tensor, nil, false
	}
	c.set(0, &same)
	return nil
}

// pieces are a value's pieces of sizes along a dimension.
func (c *call) pieces(v *value, axis int, sizes []int64) (all []*value, err error) {
	begin := 0
	for _, n := range sizes {
		if n < 1 || n > int64(v.shape[axis]-begin) {
			return nil, fmt.Errorf("it splits %d into %v", v.shape[axis], sizes)
		}
		item, err := c.piece(v, axis, begin, int(n))
		if err != nil {
			return nil, err
		}
		all = append(all, item)
		begin += int(n)
	}
	if begin != v.shape[axis] {
		return nil, fmt.Errorf("it splits %d into %v", v.shape[axis], sizes)
	}
	return all, nil
}

// splitToSequence splits into pieces of a size or of several.
func (c *call) splitToSequence() error {
	v, err := c.value(0)
	if err != nil {
		return err
	}
	axis, err := c.axis("axis", 0, len(v.shape))
	if err != nil {
		return err
	}
	each, sizes := int64(1), []int64(nil)
	if c.hasInput(1) {
		k, err := c.constantInput(1)
		if err != nil {
			return err
		}
		if sizes, err = c.knownInts(1); err != nil {
			return err
		}
		if len(k.shape) == 0 {
			each, sizes = sizes[0], nil
		}
	}
	if sizes == nil {
		if n := int64(v.shape[axis]); each < 1 || n/each > maxInts {
			return fmt.Errorf("it splits %d into pieces of %d", n, each)
		}
		sizes = evenly(v.shape[axis], each)
	}
	items, err := c.pieces(v, axis, sizes)
	if err != nil {
		return err
	}
	if !c.hasInput(1) && c.int("keepdims", 1) == 0 {
		for _, item := range items {
			item.shape = slices.Delete(slices.Clone(item.shape), axis, axis+1)
			if item.known != nil {
				item.known.shape = item.shape
			} else {
				item.tensor = c.withShape(item.tensor, item.shape...)
			}
		}
	}
	c.sequence(items)
	return nil
}

func (c *call) concatFromSequence() error {
	items, err := c.list(0)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return fmt.Errorf("it joins a sequence without elements")
	}
	rank := len(items[0].shape)
	stacks := c.int("new_axis", 0) != 0
	if stacks {
		rank++
	}
	axis, err := c.axis("axis", 0, rank)
	if err != nil {
		return err
	}
	var parts []graph.TensorID
	for _, v := range items {
		x, err := c.tensorOf(v)
		if err != nil {
			return err
		}
		s := v.shape
		if stacks {
			if len(s) != rank-1 {
				return fmt.Errorf("it stacks shapes %v and %v", items[0].shape, s)
			}
			s = slices.Insert(slices.Clone(s), axis, 1)
		}
		parts = append(parts, c.withShape(x, s...))
	}
	y := c.concat(axis, parts...)
	c.give(0, y, c.b.Shape(y))
	return nil
}
