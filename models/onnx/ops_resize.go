package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"tensile/graph"
)

// Images of another size, and padding of any kind.

// scaling is how a dimension is scaled: element j of the result stands at some place between the elements before.
type scaling struct {
	from, to int
	scale    float64
	way      string // coordinate_transformation_mode
}

// position is the place of element j.
func (r scaling) position(j int) float64 {
	of := func(v float64) float64 {
		if float64(r.to) == r.scale*float64(r.from) { // whole where it is whole
			return v * float64(r.from) / float64(r.to)
		}
		return v / r.scale
	}
	switch r.way {
	case "asymmetric":
		return of(float64(j))
	case "align_corners":
		if r.to == 1 {
			return 0
		}
		return float64(j) * float64(r.from-1) / float64(r.to-1)
	case "pytorch_half_pixel":
		if r.to == 1 {
			return 0
		}
	}
	return of(float64(j)+0.5) - 0.5
}

// resize scales dimensions one after the other: nearest neighbours by a whole factor are repeated, all else is a
// product with a matrix.
func (c *call) resize() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	all, err := c.scalings(s)
	if err != nil {
		return err
	}
	for d, r := range all {
		if r.to == r.from && r.scale == 1 {
			continue
		}
		s = slices.Clone(s)
		if s[d] = r.to; countable(s) != nil {
			return countable(s)
		}
		weights, err := c.interpolation(r)
		if err != nil {
			return err
		}
		if n := r.to / r.from; n*r.from == r.to && repeats(weights, n) {
			x = c.op(graph.Expand, graph.Attrs{Extent: [2]int{n}}, c.withShape(x, s[:d].Elements()*r.from,
				s[d+1:].Elements()))
			x = c.withShape(x, s...)
			continue
		}
		matrix, err := c.numbers(r.from * r.to)
		if err != nil {
			return err
		}
		for j, taps := range weights {
			for _, t := range taps {
				matrix[t.from*r.to+j] += t.weight
			}
		}
		if x, err = c.mapped(x, d, r.to, matrix); err != nil {
			return err
		}
	}
	c.give(0, x, s)
	return nil
}

// scalings are those of all dimensions of s.
func (c *call) scalings(s graph.Shape) ([]scaling, error) {
	way, scalesAt, sizesAt := c.text("coordinate_transformation_mode", "half_pixel"), 2, 3
	if c.node.Op == "Upsample" || c.model.Version() < 11 {
		way, scalesAt, sizesAt = "asymmetric", 1, -1
	}
	if !slices.Contains([]string{"half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"}, way) {
		return nil, fmt.Errorf("coordinate_transformation_mode %.40q is not supported", way)
	}
	if c.int("antialias", 0) != 0 || c.text("keep_aspect_ratio_policy", "stretch") != "stretch" {
		return nil, errors.New("antialias and keep_aspect_ratio_policy are not supported")
	}
	all := make([]scaling, len(s))
	for d, n := range s {
		all[d] = scaling{from: n, to: n, scale: 1, way: way}
	}
	axes := c.ints("axes")
	if axes == nil {
		for d := range s {
			axes = append(axes, int64(d))
		}
	}
	var sizes []int64
	var scales []float64
	if a := c.setting("scales", AttributeFloats); a != nil && c.node.Op == "Upsample" {
		for _, v := range a.Floats {
			scales = append(scales, float64(v))
		}
	}
	if sizesAt >= 0 && c.hasInput(sizesAt) {
		var err error
		if sizes, err = c.knownInts(sizesAt); err != nil {
			return nil, err
		}
	}
	if c.hasInput(scalesAt) {
		k, err := c.constantInput(scalesAt)
		if err != nil {
			return nil, err
		}
		if n := k.elements(); n > maxRank {
			return nil, fmt.Errorf("it has %d scales", n)
		}
		for i := range k.elements() {
			scales = append(scales, k.float(i))
		}
	}
	if len(scales)+len(sizes) != len(axes) {
		return nil, fmt.Errorf("%d scales or sizes do not fit %d dimensions", len(scales)+len(sizes), len(axes))
	}
	for i, a := range axes {
		d, err := place(a, len(s))
		if err != nil {
			return nil, err
		}
		r := &all[d]
		to := 0.0
		if sizes != nil {
			to = float64(sizes[i])
			r.scale = to / float64(r.from)
		} else {
			r.scale = scales[i]
			to = math.Floor(float64(float32(r.from) * float32(r.scale))) // scales are float32
		}
		if !(to >= 1 && to <= maxElements) {
			return nil, fmt.Errorf("it scales %d elements to %v", r.from, to)
		}
		r.to = int(to)
	}
	return all, nil
}

// tap is what an element of the result takes of one before.
type tap struct {
	from   int
	weight float64
}

// repeats reports whether each element is taken n times, one after the other.
func repeats(weights [][]tap, n int) bool {
	for j, taps := range weights {
		if len(taps) != 1 || taps[0] != (tap{j / n, 1}) {
			return false
		}
	}
	return true
}

// maxScaled bounds an extent to which is scaled.
const maxScaled = 1 << 16

// interpolation is what each element of a scaled dimension is made of.
func (c *call) interpolation(r scaling) ([][]tap, error) {
	if r.to > maxScaled {
		return nil, fmt.Errorf("it scales to %d elements, of which there may be %d", r.to, maxScaled)
	}
	inside := func(i float64) int { return int(max(0, min(float64(r.from-1), i))) }
	var of func(x float64) []tap
	switch mode := c.text("mode", "nearest"); mode {
	case "nearest":
		round, err := c.rounding()
		if err != nil {
			return nil, err
		}
		of = func(x float64) []tap { return []tap{{inside(round(x)), 1}} }
	case "linear", "bilinear":
		of = func(x float64) []tap {
			low := math.Floor(x)
			return []tap{{inside(low), 1 - (x - low)}, {inside(low + 1), x - low}}
		}
	case "cubic":
		a, leave := c.float("cubic_coeff_a", -0.75), c.int("exclude_outside", 0) != 0
		of = func(x float64) (taps []tap) {
			low, total := math.Floor(x), 0.0
			for i := low - 1; i <= low+2; i++ {
				d := math.Abs(x - i)
				w := ((a*d-5*a)*d+8*a)*d - 4*a
				if d <= 1 {
					w = ((a+2)*d-(a+3))*d*d + 1
				}
				if leave && (i < 0 || i > float64(r.from-1)) {
					continue
				}
				taps, total = append(taps, tap{inside(i), w}), total+w
			}
			for i := range taps {
				if leave {
					taps[i].weight /= total
				}
			}
			return taps
		}
	default:
		return nil, fmt.Errorf("mode %.40q is none of nearest, linear and cubic", mode)
	}
	weights := make([][]tap, r.to)
	for j := range weights {
		weights[j] = of(r.position(j))
	}
	return weights, nil
}

// rounding is how the nearest element is found.
func (c *call) rounding() (func(x float64) float64, error) {
	way := c.text("nearest_mode", "round_prefer_floor")
	if c.node.Op == "Upsample" || c.model.Version() < 11 {
		way = "floor"
	}
	switch way {
	case "floor":
		return math.Floor, nil
	case "ceil":
		return math.Ceil, nil
	case "round_prefer_floor":
		return func(x float64) float64 { return math.Ceil(x - 0.5) }, nil
	case "round_prefer_ceil":
		return func(x float64) float64 { return math.Floor(x + 0.5) }, nil
	}
	return nil, fmt.Errorf("nearest_mode %.40q is not supported", way)
}

// pad adds elements around, or takes some off.
func (c *call) pad() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	pads := c.ints("pads")
	if pads == nil {
		if pads, err = c.knownInts(1); err != nil {
			return err
		}
	}
	axes := make([]int64, len(s))
	for d := range axes {
		axes[d] = int64(d)
	}
	if c.hasInput(3) {
		if axes, err = c.knownInts(3); err != nil {
			return err
		}
	}
	if len(pads) != 2*len(axes) {
		return fmt.Errorf("%d pads do not fit %d dimensions", len(pads), len(axes))
	}
	begin, to := make([]int, len(s)), slices.Clone(s)
	for i, a := range axes {
		d, err := place(a, len(s))
		if err != nil {
			return err
		}
		low, high := pads[i], pads[i+len(axes)]
		if max(low, high, -low, -high) > 1<<30 || min(low, high) < -(1<<30) || low <= -int64(s[d]) ||
			int64(s[d])+high <= 0 || int64(s[d])+low+high < 1 {
			return fmt.Errorf("pads %v have no meaning for shape %v", pads, s)
		}
		begin[d], to[d] = int(low), s[d]+int(low+high)
	}
	if err := countable(to); err != nil {
		return err
	}
	mode := c.text("mode", "constant")
	if mode == "constant" {
		x, err = c.surrounded(x, s, begin, to)
	} else {
		for d := range s {
			if err == nil && (begin[d] != 0 || to[d] != s[d]) {
				x, err = c.mirrored(x, mode, d, begin[d], to[d])
			}
		}
	}
	if err != nil {
		return err
	}
	c.give(0, x, to)
	return nil
}

// surrounded puts x of shape s into a tensor of a constant, from begin on; a negative place cuts off.
func (c *call) surrounded(x graph.TensorID, s graph.Shape, begin []int, to graph.Shape) (graph.TensorID, error) {
	fill := c.float("value", 0)
	if c.hasInput(2) {
		var err error
		if fill, err = c.number(2); err != nil {
			return missing, err
		}
	}
	outside := graph.Shape{} // extents of what is around
	for d := range s {
		if begin[d] > 0 || to[d]-begin[d] > s[d] {
			outside = append(outside, to[d])
		} else {
			outside = append(outside, 1)
		}
	}
	if len(s) == 4 && begin[0] == 0 && begin[1] == 0 && to[0] == s[0] && to[1] == s[1] {
		x = c.op(graph.Pad, graph.Attrs{Pad: [2]int{begin[2], begin[3]}, Extent: [2]int{to[2], to[3]}}, x)
	} else {
		for d := range s {
			low, high := max(0, -begin[d]), min(s[d], to[d]-begin[d])
			x = c.slice(x, d, low, high-low)
			if to[d] != high-low {
				x = c.op(graph.SliceDX, graph.Attrs{Dim: d, Begin: max(0, begin[d]), Length: high - low,
					Extent: [2]int{to[d]}}, x)
			}
		}
	}
	if fill == 0 || outside.Elements() == 1 {
		return x, nil
	}
	mask, err := c.numbers(outside.Elements())
	if err != nil {
		return missing, err
	}
	steps := strides(outside)
	for i := range mask {
		for d, n := range outside {
			if at := i/steps[d]%n - begin[d]; n > 1 && (at < 0 || at >= s[d]) {
				mask[i] = fill
			}
		}
	}
	around, err := c.constant(outside, mask)
	if err != nil {
		return missing, err
	}
	return c.add(x, around, to), nil
}

// mirrored pads a dimension with its own elements.
func (c *call) mirrored(x graph.TensorID, mode string, d, begin, to int) (graph.TensorID, error) {
	n := c.b.Shape(x)[d]
	if to > mostGathered+n {
		return missing, fmt.Errorf("it pads %d elements to %d, and %d may be added", n, to, mostGathered)
	}
	places := make([]int, to)
	for i := range places {
		at := i - begin
		switch mode {
		case "edge":
			at = max(0, min(n-1, at))
		case "wrap":
			at = (at%n + n) % n
		case "reflect":
			if period := 2 * (n - 1); period > 0 {
				at = (at%period + period) % period
				at = min(at, period-at)
			} else {
				at = 0
			}
		default:
			return missing, fmt.Errorf("mode %.40q is none of constant, edge, reflect and wrap", mode)
		}
		places[i] = at
	}
	return c.take(x, d, places)
}

// depthToSpace exchanges channels for pixels in blocks, or the other way round.
func (c *call) depthToSpace() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	block := c.int("blocksize", 0)
	if len(s) != 4 || block < 1 || block > 1<<20 {
		return fmt.Errorf("its input has shape %v, and its blocks %d pixels: want [N,C,H,W] and at least 1", s, block)
	}
	b := int(block)
	mode := c.text("mode", "DCR")
	if mode != "DCR" && mode != "CRD" {
		return fmt.Errorf("mode %.40q is none of DCR and CRD", mode)
	}
	if c.node.Op == "SpaceToDepth" {
		if s[2]%b != 0 || s[3]%b != 0 {
			return fmt.Errorf("blocks of %d do not divide %v", b, s)
		}
		order := []int{0, 3, 5, 1, 2, 4}
		if mode == "CRD" {
			order = []int{0, 1, 3, 5, 2, 4}
		}
		x = c.permute(c.withShape(x, s[0], s[1], s[2]/b, b, s[3]/b, b), order)
		s = graph.Shape{s[0], s[1] * b * b, s[2] / b, s[3] / b}
	} else {
		if s[1]%(b*b) != 0 {
			return fmt.Errorf("blocks of %d do not divide %v", b, s)
		}
		depth := s[1] / (b * b)
		if mode == "DCR" {
			x = c.permute(c.withShape(x, s[0], b, b, depth, s[2], s[3]), []int{0, 3, 4, 1, 5, 2})
		} else {
			x = c.permute(c.withShape(x, s[0], depth, b, b, s[2], s[3]), []int{0, 1, 4, 2, 5, 3})
		}
		s = graph.Shape{s[0], depth, s[2] * b, s[3] * b}
	}
	c.give(0, c.withShape(x, s...), s)
	return nil
}
