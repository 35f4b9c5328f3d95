package onnxcases

import (
	"fmt"
	"math"
	"slices"

	"tensile/models/onnx"
)

// array is a tensor of the reference, row by row in float64.
type array struct {
	shape []int
	v     []float64
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func newArray(shape ...int) *array {
	return &array{slices.Clone(shape), make([]float64, elements(shape))}
}

// reference computes a value of a model node by node in float64: a slow, obvious interpreter, which shares no code with
// the importer but the reader of files. Batch normalisations use their running statistics, and nothing is dropped.
func reference(m *onnx.Model, feed map[string]*array, output string) (*array, error) {
	values := feed
	for i := range m.Graph.Initializers {
		t := &m.Graph.Initializers[i]
		a := &array{}
		for _, d := range t.Dims {
			a.shape = append(a.shape, int(d))
		}
		if v, err := t.Floats(); err == nil {
			for _, x := range v {
				a.v = append(a.v, float64(x))
			}
		} else if v, err := t.Ints(); err == nil {
			for _, x := range v {
				a.v = append(a.v, float64(x))
			}
		} else {
			return nil, err
		}
		values[t.Name] = a
	}
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		var in []*array
		for _, name := range n.Inputs {
			if values[name] == nil {
				return nil, fmt.Errorf("%v reads %s, which nothing before it makes", n, name)
			}
			in = append(in, values[name])
		}
		y, err := referenceNode(n, in)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", n, err)
		}
		values[n.Outputs[0]] = y
		if n.Outputs[0] == output {
			return y, nil
		}
	}
	return nil, fmt.Errorf("nothing makes %s", output)
}

// setting is an attribute, as a list of whole numbers or as a number.
func setting(n *onnx.Node, name string, otherwise ...int) []int {
	for _, a := range n.Attributes {
		if a.Name != name {
			continue
		}
		if a.Type == onnx.AttributeInt {
			return []int{int(a.Int)}
		}
		var v []int
		for _, x := range a.Ints {
			v = append(v, int(x))
		}
		return v
	}
	return otherwise
}

func number(n *onnx.Node, name string, otherwise float64) float64 {
	for _, a := range n.Attributes {
		if a.Name == name {
			return float64(a.Float)
		}
	}
	return otherwise
}

func referenceNode(n *onnx.Node, in []*array) (*array, error) {
	x := in[0]
	switch n.Op {
	case "Conv":
		return convolution(n, in), nil
	case "MaxPool", "AveragePool", "GlobalAveragePool":
		return pooling(n, x), nil
	case "Relu":
		y := newArray(x.shape...)
		for i, v := range x.v {
			y.v[i] = max(v, 0)
		}
		return y, nil
	case "LRN":
		return responses(n, x), nil
	case "BatchNormalization":
		y := newArray(x.shape...)
		epsilon, inner := number(n, "epsilon", 1e-5), elements(x.shape[2:])
		for i, v := range x.v {
			c := i / inner % x.shape[1]
			y.v[i] = (v-in[3].v[c])/math.Sqrt(in[4].v[c]+epsilon)*in[1].v[c] + in[2].v[c]
		}
		return y, nil
	case "Sum":
		y := newArray(x.shape...)
		for _, a := range in {
			if !slices.Equal(a.shape, x.shape) {
				return nil, fmt.Errorf("shapes %v and %v", x.shape, a.shape)
			}
			for i, v := range a.v {
				y.v[i] += v
			}
		}
		return y, nil
	case "Concat":
		axis := setting(n, "axis")[0]
		y := &array{shape: slices.Clone(x.shape)}
		for _, a := range in[1:] {
			y.shape[axis] += a.shape[axis]
		}
		for outer := range elements(x.shape[:axis]) {
			for _, a := range in {
				width := elements(a.shape[axis:])
				y.v = append(y.v, a.v[outer*width:(outer+1)*width]...)
			}
		}
		return y, nil
	case "Gemm":
		if setting(n, "transA", 0)[0] != 0 || setting(n, "transB", 0)[0] != 1 {
			return nil, fmt.Errorf("only A·Bᵀ is written here")
		}
		rows, width, columns := x.shape[0], x.shape[1], in[1].shape[0]
		y := newArray(rows, columns)
		for i := range y.v {
			r, c := i/columns, i%columns
			y.v[i] = in[2].v[c]
			for k := range width {
				y.v[i] += x.v[r*width+k] * in[1].v[c*width+k]
			}
		}
		return y, nil
	case "Reshape":
		y := &array{v: x.v}
		unknown := -1
		for i, d := range in[1].v {
			switch {
			case d == 0:
				d = float64(x.shape[i])
			case d < 0:
				unknown, d = i, 1
			}
			y.shape = append(y.shape, int(d))
		}
		if unknown >= 0 {
			y.shape[unknown] = len(x.v) / elements(y.shape)
		}
		if elements(y.shape) != len(x.v) {
			return nil, fmt.Errorf("%v is shaped as %v", x.shape, y.shape)
		}
		return y, nil
	case "Transpose":
		perm := setting(n, "perm")
		y := &array{v: make([]float64, len(x.v))}
		for _, p := range perm {
			y.shape = append(y.shape, x.shape[p])
		}
		at := make([]int, len(perm)) // of an element of y
		for i := range y.v {
			rest := i
			for d := len(perm) - 1; d >= 0; d-- {
				at[perm[d]] = rest % y.shape[d]
				rest /= y.shape[d]
			}
			from := 0
			for d, a := range at {
				from = from*x.shape[d] + a
			}
			y.v[i] = x.v[from]
		}
		return y, nil
	case "Dropout":
		return x, nil
	case "ConstantOfShape":
		y := &array{}
		for _, d := range x.v {
			y.shape = append(y.shape, int(d))
		}
		y.v = make([]float64, elements(y.shape)) // a weight that the test does not use
		return y, nil
	}
	return nil, fmt.Errorf("the reference lacks this operator")
}

// convolution adds up, for each output channel and each place of its kernel, a row of pixels after the other.
func convolution(n *onnx.Node, in []*array) *array {
	x, w := in[0], in[1]
	strides, pads := setting(n, "strides", 1, 1), setting(n, "pads", 0, 0, 0, 0)
	groups := setting(n, "group", 1)[0]
	height, width := x.shape[2], x.shape[3]
	kernel := w.shape[2:]
	rows := (height+pads[0]+pads[2]-kernel[0])/strides[0] + 1
	columns := (width+pads[1]+pads[3]-kernel[1])/strides[1] + 1
	y := newArray(x.shape[0], w.shape[0], rows, columns)
	each := w.shape[0] / groups // output channels of a group
	taken := make([]float64, columns)
	for image := range x.shape[0] {
		for k := range w.shape[0] {
			for c := range w.shape[1] {
				plane := (image*x.shape[1] + k/each*w.shape[1] + c) * height * width
				for r := range kernel[0] {
					for s := range kernel[1] {
						weight := w.v[((k*w.shape[1]+c)*kernel[0]+r)*kernel[1]+s]
						for row := range rows {
							i := row*strides[0] + r - pads[0]
							if i < 0 || i >= height {
								continue
							}
							for column := range taken {
								taken[column] = 0
								if j := column*strides[1] + s - pads[1]; j >= 0 && j < width {
									taken[column] = x.v[plane+i*width+j]
								}
							}
							to := ((image*w.shape[0]+k)*rows + row) * columns
							for column, v := range taken {
								y.v[to+column] += weight * v
							}
						}
					}
				}
			}
			if len(in) > 2 {
				to := (image*w.shape[0] + k) * rows * columns
				for i := range rows * columns {
					y.v[to+i] += in[2].v[k]
				}
			}
		}
	}
	return y
}

// pooling takes the maximum, or the mean of the pixels that are no padding.
func pooling(n *onnx.Node, x *array) *array {
	height, width := x.shape[2], x.shape[3]
	kernel, strides := setting(n, "kernel_shape", height, width), setting(n, "strides", 1, 1)
	pads := setting(n, "pads", 0, 0, 0, 0)
	rows := (height+pads[0]+pads[2]-kernel[0])/strides[0] + 1
	columns := (width+pads[1]+pads[3]-kernel[1])/strides[1] + 1
	y := newArray(x.shape[0], x.shape[1], rows, columns)
	for at := range y.v {
		plane, row, column := at/(rows*columns), at/columns%rows, at%columns
		most, sum, count := math.Inf(-1), 0.0, 0.0
		for r := range kernel[0] {
			for s := range kernel[1] {
				i, j := row*strides[0]+r-pads[0], column*strides[1]+s-pads[1]
				if i < 0 || i >= height || j < 0 || j >= width {
					continue
				}
				v := x.v[(plane*height+i)*width+j]
				most, sum, count = max(most, v), sum+v, count+1
			}
		}
		y.v[at] = most
		if n.Op != "MaxPool" {
			y.v[at] = sum / count
		}
	}
	return y
}

// responses divides each pixel by a power of the squares of its neighbours in other channels.
func responses(n *onnx.Node, x *array) *array {
	size := setting(n, "size")[0]
	alpha, beta, bias := number(n, "alpha", 1e-4), number(n, "beta", 0.75), number(n, "bias", 1)
	channels, inner := x.shape[1], x.shape[2]*x.shape[3]
	y := newArray(x.shape...)
	for i, v := range x.v {
		c := i / inner % channels
		squares := 0.0
		for k := max(0, c-(size-1)/2); k <= min(channels-1, c+size/2); k++ {
			other := x.v[i+(k-c)*inner]
			squares += other * other
		}
		y.v[i] = v / math.Pow(bias+alpha/float64(size)*squares, beta)
	}
	return y
}
