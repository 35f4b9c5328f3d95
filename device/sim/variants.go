package sim

import (
	"math/bits"

	"tensile/device"
	"tensile/graph"
)

// implicit is the variant that every op has, with the latency that Options say. For a convolution it is the implicit
// product of matrices, which needs no workspace.
var implicit = device.Variant{Name: "roofline", Bits: "roofline"}

// Variants returns the ways to execute an op, the implicit one first. A convolution has cuDNN's others too, with
// workspaces and shares of the time that docs/simulator.md gives with their sources. A device without data has no bits:
// those of all variants are equal.
func (d *Device) Variants(g *graph.Graph, op graph.OpID) device.Variants {
	all := device.Variants{implicit}
	c, ok := convolutionOf(g, op)
	if !ok {
		return all
	}
	add := func(name string, workspace graph.Bytes, share int) {
		all = append(all, device.Variant{Name: name, Scratch: (workspace + align - 1) / align * align,
			Bits: implicit.Bits, Share: share})
	}
	add("gemm", c.columns(), 1360)
	if c.winograd() {
		add("winograd", c.tiles(), 814)
	}
	if c.fft() {
		add("fft", c.spectra(), 846)
	}
	return all
}

// convolution is what the variants of a convolution depend on, whichever half of it is computed.
type convolution struct {
	kind  graph.Kind
	attrs *graph.Attrs
	x, y  graph.Shape // input and output of the forward half
}

// convolutionOf returns the geometry of a convolution with variants: of one group, with a kernel larger than one.
func convolutionOf(g *graph.Graph, op graph.OpID) (c convolution, ok bool) {
	o := &g.Ops[op]
	shape := func(t graph.TensorID) graph.Shape { return g.Tensors[t].Shape }
	switch o.Kind {
	case graph.Conv2D:
		c = convolution{o.Kind, &o.Attrs, shape(o.Inputs[0]), shape(o.Outputs[0])}
	case graph.Conv2DDW:
		c = convolution{o.Kind, &o.Attrs, shape(o.Inputs[0]), shape(o.Inputs[1])}
	case graph.Conv2DDX:
		c = convolution{o.Kind, &o.Attrs, shape(o.Outputs[0]), shape(o.Inputs[0])}
	default:
		return c, false
	}
	return c, o.Attrs.Groups <= 1 && o.Attrs.Kernel != [2]int{1, 1}
}

// columns are the windows of one image, a matrix of C*R*S by P*Q.
func (c *convolution) columns() graph.Bytes {
	return c.size(c.x[1], c.attrs.Kernel[0], c.attrs.Kernel[1], c.y[2], c.y[3])
}

// winograd reports whether there is F(2x2, 3x3): forward and for the data's gradient, and for as many channels as it
// was found faster with.
func (c *convolution) winograd() bool {
	return c.kind != graph.Conv2DDW && c.attrs.Kernel == [2]int{3, 3} && c.dense() && min(c.x[1], c.y[1]) >= 32
}

// tiles are the transformed filters of F(2x2, 3x3): 16 elements each.
func (c *convolution) tiles() graph.Bytes { return c.size(16, c.x[1], c.y[1]) }

// fft reports whether there is one: its images are up to 256 by 256 with their padding, and its kernels so large that
// it is faster.
func (c *convolution) fft() bool {
	return c.dense() && c.attrs.Kernel[0]*c.attrs.Kernel[1] >= 25 && c.extent() <= 256
}

// spectra are those of all images, filters and outputs, half of S by S complex numbers each where S is the extent up to
// a power of two, and 11 % that two logged workspaces have above that.
func (c *convolution) spectra() graph.Bytes {
	s := 1 << bits.Len(uint(c.extent()-1))
	planes := c.x[0]*c.x[1] + c.x[1]*c.y[1] + c.x[0]*c.y[1]
	return c.size(2, planes, s, s/2+1) / 100 * 111
}

// extent is the larger side of an image with its padding.
func (c *convolution) extent() int {
	return max(c.x[2]+2*c.attrs.Pad[0], c.x[3]+2*c.attrs.Pad[1])
}

// dense reports whether windows start at every element.
func (c *convolution) dense() bool { return c.attrs.Stride == [2]int{1, 1} }

// size returns the bytes of n elements.
func (c *convolution) size(extents ...int) graph.Bytes {
	n := graph.ElementBytes
	for _, e := range extents {
		n *= graph.Bytes(e)
	}
	return n
}
