package onnx

import (
	"fmt"
	"slices"

	"tensile/graph"
)

func (c *call) lrn() error {
	size := c.int("size", 0)
	if size < 1 || size%2 == 0 || size > 1<<20 {
		return fmt.Errorf("size %d: odd sizes are supported", size)
	}
	x, _, line, err := c.pixels()
	if err != nil {
		return err
	}
	a := graph.Attrs{Length: int(size), Factor: c.float("alpha", 1e-4) / float64(size), Exponent: c.float("beta", 0.75),
		Epsilon: c.float("bias", 1)}
	c.image(c.op(graph.LRN, a, x), line)
	return nil
}

// factor is input k, kept with a role; what was left out of the file begins as ones.
func (c *call) factor(k int, role graph.Role) (graph.TensorID, error) {
	if u, err := c.value(k); err == nil && u.fresh && u.tensor == missing {
		u.known, u.fresh = &constant{shape: u.shape, alike: true, floats: []float64{1}}, false
		u.tensor = c.b.Persistent(u.name, role, full(u.shape), graph.Init{Kind: graph.InitOne})
		return u.tensor, nil
	}
	return c.stored(k, role)
}

// batchNorm normalises by the statistics of the batch where the node trains, or all of the network does, and moves the
// running ones; else by those.
func (c *call) batchNorm() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	if len(s) < 2 {
		return fmt.Errorf("its input has shape %v, want [N,C,...]", s)
	}
	channels := s[1]
	x = c.withShape(x, s[0], channels, 1, s[2:].Elements())
	var p [4]graph.TensorID // scale, shift, running mean and variance
	for k := range p {
		role := graph.Parameter
		if k > 1 {
			role = graph.State
		}
		if k == 0 || k == 3 {
			p[k], err = c.factor(k+1, role)
		} else {
			p[k], err = c.stored(k+1, role)
		}
		if err != nil {
			return err
		}
		if got := c.b.Shape(p[k]); got.Elements() != channels {
			return fmt.Errorf("its input %d has shape %v, and its images have %d channels", k+1, got, channels)
		}
		p[k] = c.withShape(p[k], channels)
	}
	epsilon := graph.Attrs{Epsilon: c.float("epsilon", 1e-5)}
	trains := c.int("training_mode", 0) != 0
	if !trains && !c.options.Train {
		c.give(0, c.withShape(c.op(graph.BatchNorm, epsilon, x, p[2], p[3], p[0], p[1]), s...), s)
		return nil
	}
	stats := c.ops(graph.BatchNormStats, graph.Attrs{}, x)
	c.give(0, c.withShape(c.op(graph.BatchNorm, epsilon, x, stats[0], stats[1], p[0], p[1]), s...), s)
	count := s.Elements() / channels
	share := 1 - float64(float32(c.float("momentum", 0.9)))
	variance := stats[1]
	if c.model.Producer != "pytorch" { // ONNX moves towards the biased variance, torch and batch_norm_update do not
		variance = c.affine(variance, float64(count-1)/float64(count), 0)
	}
	if c.b.Peek().Storages[c.b.Peek().Tensors[p[2]].Storage].Role == graph.Input {
		// of a case that stands alone: what is fed is not updated in place
		for k, now := range []graph.TensorID{stats[0], stats[1]} {
			sum := c.op(graph.Add, graph.Attrs{}, c.affine(p[k+2], 1-share, 0), c.affine(now, share, 0))
			c.give(k+1, sum, graph.Shape{channels})
		}
		return nil
	}
	running := c.ops(graph.BatchNormUpdate, graph.Attrs{Momentum: share, Length: count}, stats[0], variance, p[2], p[3])
	for k, t := range running {
		c.give(k+1, t, graph.Shape{channels})
		if v, err := c.value(k + 3); err == nil { // the next node that has them moves them on from there
			v.tensor = t
		}
	}
	return nil
}

// layerNorm normalises over the dimensions from an axis on.
func (c *call) layerNorm() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	axis, err := c.axis("axis", -1, len(s))
	if err != nil {
		return err
	}
	width := s[axis:].Elements()
	rows := s[:axis].Elements()
	gamma, err := c.factor(1, graph.Parameter)
	if err != nil {
		return err
	}
	if gamma, err = c.spread(gamma, s[axis:]); err != nil {
		return err
	}
	gamma = c.withShape(gamma, width)
	var beta graph.TensorID
	if c.hasInput(2) {
		if beta, err = c.weight(2); err != nil {
			return err
		}
		if beta, err = c.spread(beta, s[axis:]); err == nil {
			beta = c.withShape(beta, width)
		}
	} else {
		beta, err = c.zeros(graph.Shape{width})
	}
	if err != nil {
		return err
	}
	y := c.ops(graph.LayerNorm, graph.Attrs{Epsilon: c.float("epsilon", 1e-5)}, c.withShape(x, rows, width), gamma,
		beta)
	c.give(0, c.withShape(y[0], s...), s)
	shape := slices.Clone(s)
	for d := axis; d < len(shape); d++ {
		shape[d] = 1
	}
	for k := 1; k <= 2; k++ {
		c.give(k, c.withShape(y[k], shape...), shape)
	}
	return c.b.Err()
}

// groupNorm normalises each image by its own statistics: those of each channel (InstanceNormalization), or of each
// group of channels. To the kinds of batch normalisation these are channels of one image.
func (c *call) groupNorm() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	if len(s) < 3 {
		return fmt.Errorf("its input has shape %v, want [N,C,...]", s)
	}
	groups := s[1]
	if c.node.Op == "GroupNormalization" {
		if n := c.int("num_groups", 0); n < 1 || n > int64(s[1]) || s[1]%int(n) != 0 {
			return fmt.Errorf("%d groups do not divide %d channels", n, s[1])
		} else {
			groups = int(n)
		}
	}
	var p [2]graph.TensorID // scale and shift
	var width [2]int
	for k := range p {
		if k == 0 {
			p[k], err = c.factor(1, graph.Parameter)
		} else {
			p[k], err = c.weight(k + 1)
		}
		if err != nil {
			return err
		}
		width[k] = c.b.Shape(p[k]).Elements()
		if width[k] != s[1] && width[k] != groups {
			return fmt.Errorf("its input %d has shape %v, and its images have %d channels", k+1, c.b.Shape(p[k]), s[1])
		}
	}
	if width[0] != width[1] {
		return fmt.Errorf("its inputs 1 and 2 have shapes %v and %v", c.b.Shape(p[0]), c.b.Shape(p[1]))
	}
	x = c.withShape(x, 1, s[0]*groups, 1, s.Elements()/(s[0]*groups))
	stats := c.ops(graph.BatchNormStats, graph.Attrs{}, x)
	in := []graph.TensorID{x, stats[0], stats[1]}
	each := width[0] != groups // channel has a scale, and each group has some
	for k, fill := range []float64{1, 0} {
		if each {
			alike := slices.Repeat([]float64{fill}, s[0]*groups)
			if t, err := c.constant(graph.Shape{s[0] * groups}, alike); err != nil {
				return err
			} else {
				in = append(in, t)
			}
			continue
		}
		in = append(in, c.withShape(c.expand(c.withShape(p[k], 1, groups), graph.Shape{s[0], groups}), s[0]*groups))
	}
	y := c.withShape(c.op(graph.BatchNorm, graph.Attrs{Epsilon: c.float("epsilon", 1e-5)}, in...), s...)
	if each {
		channels := slices.Repeat(graph.Shape{1}, len(s)-1)
		channels[0] = s[1]
		y = c.add(c.mul(y, c.withShape(p[0], channels...), s), c.withShape(p[1], channels...), s)
	}
	c.give(0, y, s)
	return c.b.Err()
}
