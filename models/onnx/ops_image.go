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
		return c.withShape(x, s...), s, true, nil
	}
	return missing, nil, false, fmt.Errorf("its input has shape %v: images [N,C,H,W] and lines [N,C,W] are supported",
		v.shape)
}

// pair is an attribute with a number for each dimension of pixels, from least on, which is also that of a dimension
// that a line does not have. line says that s was one.
func (c *call) pair(name string, least int, s graph.Shape, line bool) (p [2]int, err error) {
	v := c.ints(name)
	if v == nil {
		return [2]int{least, least}, nil
	}
	if line && len(v) == 1 {
		v = []int64{int64(least), v[0]}
	}
	if len(v) != 2 || min(v[0], v[1]) < int64(least) || max(v[0], v[1]) > 1<<20 {
		return p, fmt.Errorf("%s %v has no meaning for shape %v", name, v, s)
	}
	return [2]int{int(v[0]), int(v[1])}, nil
}

// sliding reads the attributes of a window over s that do not depend on how far it slides: kernel is its extent where
// that is not an attribute. The padding is that of the attribute pads.
func (c *call) sliding(s graph.Shape, kernel []int, line bool) (w window, err error) {
	if w.kernel, err = c.pair("kernel_shape", 1, s, line); err != nil {
		return w, err
	}
	if kernel != nil {
		w.kernel = [2]int{kernel[0], kernel[1]}
	}
	if w.stride, err = c.pair("strides", 1, s, line); err != nil {
		return w, err
	}
	if w.dilation, err = c.pair("dilations", 1, s, line); err != nil {
		return w, err
	}
	pads := c.ints("pads")
	if line && len(pads) == 2 {
		pads = []int64{0, pads[0], 0, pads[1]}
	}
	if pads != nil && (len(pads) != 4 || slices.Min(pads) < 0 || slices.Max(pads) > 1<<20) {
		return w, fmt.Errorf("pads %v have no meaning for shape %v", pads, s)
	}
	for d := range 2 {
		if pads != nil {
			w.begin[d], w.end[d] = int(pads[d]), int(pads[d+2])
		}
	}
	return w, nil
}

// window reads the attributes of a window over s, whose extent is kernel where that is not an attribute.
func (c *call) window(s graph.Shape, kernel []int, line bool) (w window, err error) {
	if w, err = c.sliding(s, kernel, line); err != nil {
		return w, err
	}
	auto := c.text("auto_pad", "NOTSET")
	for d := range 2 {
		reach := (w.kernel[d]-1)*w.dilation[d] + 1
		n := s[2+d]
		switch auto {
		case "NOTSET", "":
		case "VALID":
			w.begin[d], w.end[d] = 0, 0
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
	x = c.permute(c.withShape(x, s[0], s[1], rows, d[0], columns, d[1]), []int{3, 5, 0, 1, 2, 4})
	inner := window{kernel: w.kernel, stride: [2]int{1, 1}, dilation: [2]int{1, 1}}
	y := of(c.withShape(x, d[0]*d[1]*s[0], s[1], rows, columns), inner)
	if c.b.Err() != nil {
		return y
	}
	t := c.b.Shape(y)
	y = c.permute(c.withShape(y, d[0], d[1], s[0], t[1], t[2], t[3]), []int{2, 3, 4, 0, 5, 1})
	y = c.withShape(y, s[0], t[1], t[2]*d[0], t[3]*d[1])
	for dim := range 2 {
		y = c.strided(y, 2+dim, 0, w.out[dim], w.stride[dim])
	}
	return y
}

// image makes output 0, a line again if the input was one.
func (c *call) image(y graph.TensorID, line bool) {
	s := c.b.Shape(y)
	if line && c.b.Err() == nil {
		s = graph.Shape{s[0], s[1], s[3]}
	}
	c.give(0, c.withShape(y, s...), s)
}

// filters are the weights of a convolution, [K,C,R,S], and its bias, missing if it has none. line says that the input
// was a line, as the weights are then.
func (c *call) filters(line bool) (weights, bias graph.TensorID, err error) {
	bias = missing
	if weights, err = c.weight(1); err != nil {
		return weights, bias, err
	}
	k := c.b.Shape(weights)
	if line && len(k) == 3 {
		k = graph.Shape{k[0], k[1], 1, k[2]}
		weights = c.withShape(weights, k...)
	}
	if len(k) != 4 {
		return weights, bias, fmt.Errorf("its weights have shape %v, want four dimensions", k)
	}
	if c.hasInput(2) {
		bias, err = c.weight(2)
	}
	return weights, bias, err
}

// grouped are the attributes of a convolution in groups.
func (c *call) grouped(a graph.Attrs) graph.Attrs {
	if groups := c.int("group", 1); groups != 1 {
		a.Groups = int(groups)
	}
	return a
}

func (c *call) conv() error {
	x, s, line, err := c.pixels()
	if err != nil {
		return err
	}
	weights, bias, err := c.filters(line)
	if err != nil {
		return err
	}
	w, err := c.window(s, c.b.Shape(weights)[2:], line)
	if err != nil {
		return err
	}
	apply := func(x graph.TensorID, a graph.Attrs) graph.TensorID {
		operands := []graph.TensorID{x, weights}
		if bias != missing {
			operands = append(operands, bias)
		}
		return c.op(graph.Conv2D, c.grouped(a), operands...)
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

// convTranspose is the gradient of a convolution with the same weights in what that reads. Its padding is cut off.
func (c *call) convTranspose() error {
	x, s, line, err := c.pixels()
	if err != nil {
		return err
	}
	weights, bias, err := c.filters(line)
	if err != nil {
		return err
	}
	w, err := c.sliding(s, c.b.Shape(weights)[2:], line)
	if err != nil {
		return err
	}
	if w.dilation != [2]int{1, 1} {
		return fmt.Errorf("dilations %v: 1 is supported", w.dilation)
	}
	more, err := c.pair("output_padding", 0, s, line)
	if err != nil {
		return err
	}
	auto := c.text("auto_pad", "NOTSET")
	out := c.ints("output_shape")
	if line && len(out) == 1 {
		out = []int64{1, out[0]}
	}
	if out != nil && len(out) != 2 {
		return fmt.Errorf("output_shape %v has no meaning for shape %v", out, s)
	}
	var full [2]int // without padding
	for d := range 2 {
		full[d] = (s[2+d]-1)*w.stride[d] + w.kernel[d]
		total := 0
		switch {
		case out != nil:
			total = full[d] + more[d] - int(max(-maxElements, min(maxElements, out[d])))
		case auto == "SAME_UPPER" || auto == "SAME_LOWER":
			total = full[d] + more[d] - s[2+d]*w.stride[d]
		case auto == "VALID":
			w.begin[d], w.end[d] = 0, 0
			fallthrough
		case auto == "NOTSET" || auto == "":
			w.out[d] = full[d] + more[d] - w.begin[d] - w.end[d]
			continue
		default:
			return fmt.Errorf("auto_pad %.40q is not supported", auto)
		}
		if total = max(0, total); out != nil && full[d]+more[d]-total != int(out[d]) {
			return fmt.Errorf("output_shape %v is larger than what it makes", out)
		}
		w.begin[d], w.end[d] = total-total/2, total/2
		if auto == "SAME_UPPER" {
			w.begin[d], w.end[d] = w.end[d], w.begin[d]
		}
		w.out[d] = full[d] + more[d] - total
	}
	var y graph.TensorID
	if w.plain() && more[0] < w.stride[0] && more[1] < w.stride[1] {
		a := w.attrs()
		a.Extent = w.out
		y = c.op(graph.Conv2DDX, c.grouped(a), x, weights)
	} else {
		a := w.bare()
		a.Extent = full
		y = c.op(graph.Conv2DDX, c.grouped(a), x, weights)
		y = c.op(graph.Pad, graph.Attrs{Pad: [2]int{-w.begin[0], -w.begin[1]}, Extent: w.out}, y)
	}
	if bias != missing && c.b.Err() == nil {
		to := c.b.Shape(y)
		if got := c.b.Shape(bias); got.Elements() != to[1] {
			return fmt.Errorf("its bias has shape %v, and it makes %d channels", got, to[1])
		}
		y = c.add(y, c.withShape(bias, 1, to[1], 1, 1), to)
	}
	c.image(y, line)
	return c.b.Err()
}

// padLowest adds the lowest float to the padding of an image, so that it never is a maximum.
func (c *call) padLowest(x graph.TensorID, s graph.Shape, w window) (graph.TensorID, error) {
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
	if c.outputIsRead(1) {
		return fmt.Errorf("its output of indices is not supported")
	}
	if w.plain() {
		c.image(c.op(graph.MaxPool, w.attrs(), x), line)
		return nil
	}
	if x, err = c.padLowest(c.padded(x, w), s, w); err != nil {
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
			low, high := 0, s[2+d] // that count
			if all {
				low, high = min(0, -w.begin[d]), max(high, high+w.end[d])
			}
			first, dilation := at*w.stride[d]-w.begin[d], w.dilation[d]
			from := max(0, (max(0, low-first)+dilation-1)/dilation)
			to := min(w.kernel[d], (max(0, high-first)+dilation-1)/dilation)
			count *= max(0, to-from)
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
	k := graph.AvgPool
	if c.node.Op == "GlobalMaxPool" {
		k = graph.MaxPool
	}
	c.image(c.op(k, graph.Attrs{Kernel: [2]int{s[2], s[3]}, Stride: [2]int{1, 1}}, x), line)
	return nil
}
