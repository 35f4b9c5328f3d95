package onnx

import (
	"fmt"
	"math"
	"slices"

	"tensile/graph"
)

// window is how a convolution or pooling of [N,C,H,W] slides.
type window struct {
	kernel, stride, dilation [2]int
	begin, end               [2]int // padding
	out                      [2]int
	partial                  bool // the last windows reach beyond the padding (ceil_mode)
}

// pixels is input 0 as [N,C,H,W]; one dimension of pixels becomes a row of them.
func (c *call) pixels() (x graph.TensorID, s graph.Shape, line bool, err error) {
	v, err := c.value(0)
	if err != nil {
		return missing, nil, false, err
	}
	if x, err = c.tensorOf(v); err != nil {
		return missing, nil, false, err
	}
	switch len(v.shape) {
	case 4:
		return x, v.shape, false, nil
	case 3:
		s = graph.Shape{v.shape[0], v.shape[1], 1, v.shape[2]}
		return c.as(x, s...), s, true, nil
	}
	return missing, nil, false, fmt.Errorf("its input has shape %v: images [N,C,H,W] and lines [N,C,W] are supported",
		v.shape)
}

// window reads the attributes of a window over s, whose extent is kernel where that is not an attribute.
func (c *call) window(s graph.Shape, kernel []int, line bool) (w window, err error) {
	two := func(name string, otherwise int) ([2]int, error) {
		v := c.ints(name)
		if v == nil {
			return [2]int{otherwise, otherwise}, nil
		}
		if line && len(v) == 1 {
			v = []int64{int64(otherwise), v[0]}
		}
		if len(v) != 2 || v[0] < 1 || v[1] < 1 || v[0] > 1<<20 || v[1] > 1<<20 {
			return [2]int{}, fmt.Errorf("%s %v has no meaning for shape %v", name, v, s)
		}
		return [2]int{int(v[0]), int(v[1])}, nil
	}
	if w.kernel, err = two("kernel_shape", 1); err != nil {
		return w, err
	}
	if kernel != nil {
		w.kernel = [2]int{kernel[0], kernel[1]}
	}
	if w.stride, err = two("strides", 1); err != nil {
		return w, err
	}
	if w.dilation, err = two("dilations", 1); err != nil {
		return w, err
	}
	pads := c.ints("pads")
	if line && len(pads) == 2 {
		pads = []int64{0, pads[0], 0, pads[1]}
	}
	auto := c.text("auto_pad", "NOTSET")
	for d := range 2 {
		reach := (w.kernel[d]-1)*w.dilation[d] + 1
		n := s[2+d]
		switch auto {
		case "NOTSET", "":
			if pads == nil {
				break
			}
			if len(pads) != 4 || pads[d] < 0 || pads[d+2] < 0 || pads[d] > 1<<20 || pads[d+2] > 1<<20 {
				return w, fmt.Errorf("pads %v have no meaning for shape %v", pads, s)
			}
			w.begin[d], w.end[d] = int(pads[d]), int(pads[d+2])
		case "VALID":
		case "SAME_UPPER", "SAME_LOWER":
			out := (n + w.stride[d] - 1) / w.stride[d]
			all := max(0, (out-1)*w.stride[d]+reach-n)
			w.begin[d], w.end[d] = all/2, all-all/2
			if auto == "SAME_LOWER" {
				w.begin[d], w.end[d] = w.end[d], w.begin[d]
			}
		default:
			return w, fmt.Errorf("auto_pad %.40q is not supported", auto)
		}
		room := n + w.begin[d] + w.end[d] - reach
		if room < 0 {
			return w, fmt.Errorf("a window of %d does not fit into %d with padding %d and %d", reach, n, w.begin[d],
				w.end[d])
		}
		w.out[d] = room/w.stride[d] + 1
		if c.int("ceil_mode", 0) != 0 && room%w.stride[d] != 0 {
			if w.out[d]*w.stride[d] < n+w.begin[d] { // the window begins within the image or the padding before it
				w.out[d]++
				w.partial = true
			}
		}
	}
	return w, nil
}

// plain reports whether a kind slides like this by itself.
func (w window) plain() bool {
	return w.begin == w.end && w.dilation == [2]int{1, 1} && !w.partial && w.begin[0] < w.kernel[0] &&
		w.begin[1] < w.kernel[1]
}

func (w window) attrs() graph.Attrs {
	return graph.Attrs{Kernel: w.kernel, Stride: w.stride, Pad: w.begin}
}

// bare is the window without padding and dilation, for an image that was padded and spread.
func (w window) bare() graph.Attrs { return graph.Attrs{Kernel: w.kernel, Stride: w.stride} }

// extent is what the windows reach over: the image, its padding, and beyond it where the last are partial.
func (w window) extent() (e [2]int) {
	for d := range 2 {
		e[d] = (w.out[d]-1)*w.stride[d] + (w.kernel[d]-1)*w.dilation[d] + 1
	}
	return e
}

// padded is an image with zeros around it, as far as windows reach.
func (c *call) padded(x graph.TensorID, w window) graph.TensorID {
	s := c.b.Shape(x)
	if e := w.extent(); e != [2]int{s[2], s[3]} || w.begin != [2]int{} {
		return c.op(graph.Pad, graph.Attrs{Pad: w.begin, Extent: e}, x)
	}
	return x
}

// dilated applies of, with a stride of 1, to each of the images that a dilation keeps apart, and takes what the strides
// leave. x is padded.
func (c *call) dilated(x graph.TensorID, w window, of func(x graph.TensorID, w window) graph.TensorID) graph.TensorID {
	if w.dilation == [2]int{1, 1} {
		return of(x, w)
	}
	s := c.b.Shape(x)
	d := w.dilation
	rows, columns := (s[2]+d[0]-1)/d[0], (s[3]+d[1]-1)/d[1]
	if e := [2]int{rows * d[0], columns * d[1]}; e != [2]int{s[2], s[3]} {
		x = c.op(graph.Pad, graph.Attrs{Extent: e}, x)
	}
	x = c.permute(c.as(x, s[0], s[1], rows, d[0], columns, d[1]), []int{3, 5, 0, 1, 2, 4})
	inner := window{kernel: w.kernel, stride: [2]int{1, 1}, dilation: [2]int{1, 1}}
	y := of(c.as(x, d[0]*d[1]*s[0], s[1], rows, columns), inner)
	t := c.b.Shape(y)
	y = c.permute(c.as(y, d[0], d[1], s[0], t[1], t[2], t[3]), []int{2, 3, 4, 0, 5, 1})
	y = c.as(y, s[0], t[1], t[2]*d[0], t[3]*d[1])
	for dim := range 2 {
		y = c.every(y, 2+dim, 0, w.out[dim], w.stride[dim])
	}
	return y
}

// image makes output 0, a line again if the input was one.
func (c *call) image(y graph.TensorID, line bool) {
	s := c.b.Shape(y)
	if line {
		s = graph.Shape{s[0], s[1], s[3]}
	}
	c.give(0, c.as(y, s...), s)
}

func (c *call) conv() error {
	x, s, line, err := c.pixels()
	if err != nil {
		return err
	}
	weights, err := c.weight(1)
	if err != nil {
		return err
	}
	k := c.b.Shape(weights)
	if line && len(k) == 3 {
		k = graph.Shape{k[0], k[1], 1, k[2]}
		weights = c.as(weights, k...)
	}
	if len(k) != 4 {
		return fmt.Errorf("its weights have shape %v, want [K,C,R,S]", k)
	}
	w, err := c.window(s, k[2:], line)
	if err != nil {
		return err
	}
	groups := int(c.int("group", 1))
	operands := []graph.TensorID{weights}
	if c.has(2) {
		bias, err := c.weight(2)
		if err != nil {
			return err
		}
		operands = append(operands, bias)
	}
	apply := func(x graph.TensorID, a graph.Attrs) graph.TensorID {
		if groups != 1 {
			a.Groups = groups
		}
		return c.op(graph.Conv2D, a, append([]graph.TensorID{x}, operands...)...)
	}
	if w.plain() {
		c.image(apply(x, w.attrs()), line)
		return c.b.Err()
	}
	c.image(c.dilated(c.padded(x, w), w, func(x graph.TensorID, w window) graph.TensorID {
		return apply(x, w.bare())
	}), line)
	return c.b.Err()
}

// beyond adds the lowest float to the padding of an image, so that it never is a maximum.
func (c *call) beyond(x graph.TensorID, s graph.Shape, w window) (graph.TensorID, error) {
	e := w.extent()
	mask, err := c.numbers(e[0] * e[1])
	if err != nil {
		return missing, err
	}
	any := false
	for i := range mask {
		row, column := i/e[1]-w.begin[0], i%e[1]-w.begin[1]
		if row < 0 || row >= s[2] || column < 0 || column >= s[3] {
			mask[i], any = -math.MaxFloat32, true
		}
	}
	if !any {
		return x, nil
	}
	m, err := c.constant(graph.Shape{1, 1, e[0], e[1]}, mask)
	if err != nil {
		return missing, err
	}
	return c.add(x, m, c.b.Shape(x)), nil
}

func (c *call) maxPool() error {
	x, s, line, err := c.pixels()
	if err != nil {
		return err
	}
	w, err := c.window(s, nil, line)
	if err != nil {
		return err
	}
	if c.wants(1) {
		return fmt.Errorf("its output of indices is not supported")
	}
	if w.plain() {
		c.image(c.op(graph.MaxPool, w.attrs(), x), line)
		return nil
	}
	if x, err = c.beyond(c.padded(x, w), s, w); err != nil {
		return err
	}
	c.image(c.dilated(x, w, func(x graph.TensorID, w window) graph.TensorID {
		return c.op(graph.MaxPool, w.bare(), x)
	}), line)
	return nil
}

func (c *call) avgPool() error {
	x, s, line, err := c.pixels()
	if err != nil {
		return err
	}
	w, err := c.window(s, nil, line)
	if err != nil {
		return err
	}
	all := c.int("count_include_pad", 0) != 0
	if w.plain() {
		a := w.attrs()
		a.Inside = !all && w.begin != [2]int{}
		c.image(c.op(graph.AvgPool, a, x), line)
		return nil
	}
	y := c.dilated(c.padded(x, w), w, func(x graph.TensorID, w window) graph.TensorID {
		return c.op(graph.AvgPool, w.bare(), x)
	})
	// the mean over the whole window becomes that over the pixels that count
	scale, err := c.numbers(w.out[0] * w.out[1])
	if err != nil {
		return err
	}
	for i := range scale {
		count := 1
		for d, at := range [2]int{i / w.out[1], i % w.out[1]} {
			n := 0
			for k := range w.kernel[d] {
				p := at*w.stride[d] + k*w.dilation[d] - w.begin[d]
				if p >= 0 && p < s[2+d] || all && p >= -w.begin[d] && p < s[2+d]+w.end[d] {
					n++
				}
			}
			count *= n
		}
		scale[i] = float64(w.kernel[0]*w.kernel[1]) / float64(count)
	}
	if slices.ContainsFunc(scale, func(f float64) bool { return f != 1 }) {
		m, err := c.constant(graph.Shape{1, 1, w.out[0], w.out[1]}, scale)
		if err != nil {
			return err
		}
		y = c.mul(y, m, c.b.Shape(y))
	}
	c.image(y, line)
	return nil
}

func (c *call) globalPool() error {
	x, s, line, err := c.pixels()
	if err != nil {
		return err
	}
	a := graph.Attrs{Kernel: [2]int{s[2], s[3]}, Stride: [2]int{1, 1}}
	c.image(c.op(graph.AvgPool, a, x), line)
	return nil
}

// pad adds zeros to the last two dimensions of an image.
func (c *call) pad() error {
	x, s, line, err := c.pixels()
	if err != nil {
		return err
	}
	pads := c.ints("pads")
	if pads == nil {
		if pads, err = c.knownInts(1); err != nil {
			return err
		}
	}
	if line && len(pads) == 6 {
		pads = []int64{pads[0], pads[1], 0, pads[2], pads[3], pads[4], 0, pads[5]}
	}
	fill := c.float("value", 0)
	if c.has(2) {
		if fill, err = c.number(2); err != nil {
			return err
		}
	}
	if c.text("mode", "constant") != "constant" || fill != 0 || c.has(3) || len(pads) != 8 || pads[0] != 0 ||
		pads[1] != 0 || pads[4] != 0 || pads[5] != 0 {
		return fmt.Errorf("pads %v in mode %.40q with %v: zeros around [H,W] are supported", pads,
			c.text("mode", "constant"), fill)
	}
	e := [2]int{s[2] + int(pads[2]+pads[6]), s[3] + int(pads[3]+pads[7])}
	c.image(c.op(graph.Pad, graph.Attrs{Pad: [2]int{int(pads[2]), int(pads[3])}, Extent: e}, x), line)
	return nil
}

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

// batchNorm normalises by the statistics of the batch where the node trains, or all of the network does, and moves the
// running ones; else by those.
func (c *call) batchNorm() error {
	v, err := c.value(0)
	if err != nil {
		return err
	}
	x, err := c.tensorOf(v)
	if err != nil {
		return err
	}
	if len(v.shape) < 2 {
		return fmt.Errorf("its input has shape %v, want [N,C,...]", v.shape)
	}
	channels := v.shape[1]
	x = c.as(x, v.shape[0], channels, 1, v.shape[2:].Elements())
	var p [4]graph.TensorID // scale, shift, running mean and variance
	for k := range p {
		role := graph.Parameter
		if k > 1 {
			role = graph.State
		}
		if u, err := c.value(k + 1); err == nil && u.fresh && u.tensor == missing && (k == 0 || k == 3) {
			u.known, u.fresh = &constant{shape: u.shape, alike: true, floats: []float64{1}}, false
			p[k] = c.b.Persistent(u.name, role, full(u.shape), graph.Init{Kind: graph.InitOne})
			u.tensor = p[k]
			continue
		}
		if p[k], err = c.stored(k+1, role); err != nil {
			return err
		}
		if got := c.b.Shape(p[k]); got.Elements() != channels {
			return fmt.Errorf("its input %d has shape %v, and its images have %d channels", k+1, got, channels)
		}
		p[k] = c.as(p[k], channels)
	}
	epsilon := graph.Attrs{Epsilon: c.float("epsilon", 1e-5)}
	trains := c.int("training_mode", 0) != 0
	if !trains && !c.options.Train {
		c.give(0, c.as(c.op(graph.BatchNorm, epsilon, x, p[2], p[3], p[0], p[1]), v.shape...), v.shape)
		return nil
	}
	stats := c.ops(graph.BatchNormStats, graph.Attrs{}, x)
	c.give(0, c.as(c.op(graph.BatchNorm, epsilon, x, stats[0], stats[1], p[0], p[1]), v.shape...), v.shape)
	count := v.shape.Elements() / channels
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
	}
	return nil
}

// layerNorm normalises over the dimensions from an axis on.
func (c *call) layerNorm() error {
	v, err := c.value(0)
	if err != nil {
		return err
	}
	x, err := c.tensorOf(v)
	if err != nil {
		return err
	}
	axis, err := c.axis("axis", -1, len(v.shape))
	if err != nil {
		return err
	}
	width := v.shape[axis:].Elements()
	rows := v.shape[:axis].Elements()
	gamma, err := c.weight(1)
	if err != nil {
		return err
	}
	if gamma, err = c.spread(gamma, v.shape[axis:]); err != nil {
		return err
	}
	gamma = c.as(gamma, width)
	var beta graph.TensorID
	if c.has(2) {
		if beta, err = c.weight(2); err != nil {
			return err
		}
		if beta, err = c.spread(beta, v.shape[axis:]); err == nil {
			beta = c.as(beta, width)
		}
	} else {
		var zeros []float64
		if zeros, err = c.numbers(width); err == nil {
			beta, err = c.constant(graph.Shape{width}, zeros)
		}
	}
	if err != nil {
		return err
	}
	y := c.ops(graph.LayerNorm, graph.Attrs{Epsilon: c.float("epsilon", 1e-5)}, c.as(x, rows, width), gamma, beta)
	c.give(0, c.as(y[0], v.shape...), v.shape)
	shape := slices.Clone(v.shape)
	for d := axis; d < len(shape); d++ {
		shape[d] = 1
	}
	for k := 1; k <= 2; k++ {
		c.give(k, c.as(y[k], shape...), shape)
	}
	return c.b.Err()
}
