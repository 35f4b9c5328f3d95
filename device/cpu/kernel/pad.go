package kernel

import "tensile/device/cpu/gemm"

// pad: x -> y, each plane moved by Pad into a plane of Extent, zero where nothing came.
func pad[T gemm.Float](c *Call[T]) {
	x, y, a := c.In[0], c.Out[0], c.Attrs
	in, out := c.InShapes[0], c.OutShapes[0]
	h, w, planes := in[2], in[3], in[0]*in[1]
	top, bottom := max(0, a.Pad[0]), min(out[2], a.Pad[0]+h)
	left, right := max(0, a.Pad[1]), min(out[3], a.Pad[1]+w)
	clear(y)
	for n := range planes {
		from, to := item(x, n, planes), item(y, n, planes)
		for p := top; p < bottom; p++ {
			copy(to[p*out[3]+left:p*out[3]+right], from[(p-a.Pad[0])*w+left-a.Pad[1]:])
		}
	}
}
