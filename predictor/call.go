package predictor

// Call is one op as the model sees it: what it computes, and in which sizes.
type Call struct {
	Kind string // linear, bmm, conv, add, ... in public data; a graph.Kind where we measured
	Form Form
	Dims Dims
	Load float64 // share of the device that others use, 0 to 1
}

// Form says what the dims of a call mean, and which network predicts it.
type Form uint8

// Forms.
const (
	Gemm   Form = iota // B products of M x N and N x K: N is summed over
	Conv               // B images of C x H x W to K x P x Q, by windows of R x S
	Stream             // elementwise, rows, pools: M rows of K elements at most
	forms
)

func (f Form) String() string { return [...]string{"gemm", "conv", "stream"}[f] }

// Dims are the sizes of a call. Those that its form does not name are 0.
type Dims struct {
	B, M, N, K       int
	C, H, W, P, Q    int
	R, S, Stride     int
	Read, Write, Ops int // Set for streams: elements read, elements written, operations.
}

// product is the call as matrix products, a convolution as the one of its unfolded input.
func (c *Call) product() (b, m, n, k float64) {
	d := &c.Dims
	if c.Form == Conv {
		return 1, float64(d.B) * float64(d.P*d.Q), float64(d.C) * float64(d.R*d.S), float64(d.K)
	}
	return float64(max(1, d.B)), float64(d.M), float64(d.N), float64(d.K)
}

// flops is the arithmetic of the call.
func (c *Call) flops() float64 {
	if c.Form == Stream {
		return float64(c.Dims.Ops)
	}
	b, m, n, k := c.product()
	return 2 * b * m * n * k
}

// bytes is the traffic of the call in float32, each operand once.
func (c *Call) bytes() float64 {
	b, m, n, k := c.product()
	switch c.Form {
	case Conv:
		return 4 * (c.Dims.inputElements() + n*k + m*k)
	case Stream:
		return 4 * float64(c.Dims.Read+c.Dims.Write)
	}
	return 4 * b * (m*n + n*k + m*k)
}

// inputElements is the number of elements of a convolution's images.
func (d *Dims) inputElements() float64 { return float64(d.B) * float64(d.C) * float64(d.H*d.W) }

// stream are the dims of an op on rows of elements that reads and writes the given numbers of operands of that size.
func stream(rows, width, read, written int) Dims {
	n := rows * width
	return Dims{M: rows, K: width, Read: read * n, Write: written * n, Ops: (read + written) * n}
}
