package models

import "tensile/graph"

// inceptionSize is the image size of the Inception networks, in pixels.
const inceptionSize = 299

// normalised is a convolution with its normalisation and ReLU.
type normalised struct {
	name   string
	out    int
	r, s   int  // kernel
	stride int  // 0: 1
	same   bool // padded so that an odd kernel of stride 1 keeps the image's size
}

// padded is a normalised convolution of stride 1 that keeps the image's size.
func padded(name string, out, r, s int) normalised { return normalised{name, out, r, s, 1, true} }

// inner is one without padding.
func inner(name string, out, r, stride int) normalised {
	return normalised{name, out, r, r, stride, false}
}

// tower appends convolutions one after the other.
func (n *net) tower(prefix string, x graph.TensorID, layers ...normalised) graph.TensorID {
	for _, l := range layers {
		a := graph.Attrs{Kernel: [2]int{l.r, l.s}, Stride: [2]int{l.stride, l.stride}}
		if l.same {
			a.Pad = [2]int{l.r / 2, l.s / 2}
		}
		name := prefix + l.name
		x = n.filter(name, x, n.thin(l.out), a)
		x = n.relu(name+".relu", n.norm(name+".bn", x, graph.InitOne))
	}
	return x
}

// smooth is the 3x3 mean that keeps the image's size.
func (n *net) smooth(name string, x graph.TensorID) graph.TensorID {
	return n.avgPool(name, x, window{kernel: 3, stride: 1, pad: 1})
}

// halve is the 3x3 maximum over every other pixel, without padding.
func (n *net) halve(name string, x graph.TensorID) graph.TensorID {
	return n.maxPool(name, x, window{kernel: 3, stride: 2})
}
