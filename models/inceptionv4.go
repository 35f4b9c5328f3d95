package models

import (
	"fmt"

	"tensile/graph"
)

// inceptionV4 is the network of Szegedy et al. (2017), figures 3 to 9.
var inceptionV4 = model{
	image: inceptionSize, channels: 3, rate: 1,
	smallest: normalising(107, 75),
	layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
		n.epsilon = 1e-3
		x = n.v4Stem("stem", x)
		for i := range 4 {
			x = n.v4Three(fmt.Sprintf("a%d", i+1), x)
		}
		x = n.v4HalveFirst("reduceA", x)
		for i := range 7 {
			x = n.v4Seven(fmt.Sprintf("b%d", i+1), x)
		}
		x = n.v4HalveSecond("reduceB", x)
		for i := range 3 {
			x = n.v4Wide(fmt.Sprintf("c%d", i+1), x)
		}
		n.b.SetLayer("pool")
		x = n.dropout("dropout", n.globalAvgPool("pool", x), 0.2)
		n.b.SetLayer("fc")
		return n.linear("fc", n.flatten(x), classes, linearGain)
	},
}

func (n *net) v4Stem(name string, x graph.TensorID) graph.TensorID {
	n.b.SetLayer(name)
	p := name + "."
	x = n.tower(p, x, inner("conv1", 32, 3, 2), inner("conv2", 32, 3, 1), padded("conv3", 64, 3, 3))
	x = n.concat(p+"3a", n.halve(p+"pool1", x), n.tower(p, x, inner("conv4", 96, 3, 2)))
	x = n.concat(p+"4a",
		n.tower(p, x, padded("3x3.1", 64, 1, 1), inner("3x3.2", 96, 3, 1)),
		n.tower(p, x, padded("7x7.1", 64, 1, 1), padded("7x7.2", 64, 1, 7), padded("7x7.3", 64, 7, 1),
			inner("7x7.4", 96, 3, 1)))
	return n.concat(p+"5a", n.tower(p, x, inner("conv5", 192, 3, 2)), n.halve(p+"pool2", x))
}

// v4Three is Inception-A: 1x1, one and two 3x3 convolutions.
func (n *net) v4Three(name string, x graph.TensorID) graph.TensorID {
	n.b.SetLayer(name)
	p := name + "."
	return n.concat(name,
		n.tower(p, x, padded("1x1", 96, 1, 1)),
		n.tower(p, x, padded("3x3.1", 64, 1, 1), padded("3x3.2", 96, 3, 3)),
		n.tower(p, x, padded("double.1", 64, 1, 1), padded("double.2", 96, 3, 3), padded("double.3", 96, 3, 3)),
		n.tower(p, n.smooth(p+"mean", x), padded("mean.1x1", 96, 1, 1)))
}

func (n *net) v4HalveFirst(name string, x graph.TensorID) graph.TensorID {
	n.b.SetLayer(name)
	p := name + "."
	return n.concat(name,
		n.tower(p, x, inner("3x3", 384, 3, 2)),
		n.tower(p, x, padded("double.1", 192, 1, 1), padded("double.2", 224, 3, 3), inner("double.3", 256, 3, 2)),
		n.halve(p+"pool", x))
}

// v4Seven is Inception-B, of factorised 7x7 convolutions.
func (n *net) v4Seven(name string, x graph.TensorID) graph.TensorID {
	n.b.SetLayer(name)
	p := name + "."
	return n.concat(name,
		n.tower(p, x, padded("1x1", 384, 1, 1)),
		n.tower(p, x, padded("7x7.1", 192, 1, 1), padded("7x7.2", 224, 1, 7), padded("7x7.3", 256, 7, 1)),
		n.tower(p, x, padded("double.1", 192, 1, 1), padded("double.2", 192, 7, 1), padded("double.3", 224, 1, 7),
			padded("double.4", 224, 7, 1), padded("double.5", 256, 1, 7)),
		n.tower(p, n.smooth(p+"mean", x), padded("mean.1x1", 128, 1, 1)))
}

func (n *net) v4HalveSecond(name string, x graph.TensorID) graph.TensorID {
	n.b.SetLayer(name)
	p := name + "."
	return n.concat(name,
		n.tower(p, x, padded("3x3.1", 192, 1, 1), inner("3x3.2", 192, 3, 2)),
		n.tower(p, x, padded("7x7.1", 256, 1, 1), padded("7x7.2", 256, 1, 7), padded("7x7.3", 320, 7, 1),
			inner("7x7.4", 320, 3, 2)),
		n.halve(p+"pool", x))
}

// v4Wide is Inception-C, whose towers end in a 1x3 and a 3x1 convolution side by side.
func (n *net) v4Wide(name string, x graph.TensorID) graph.TensorID {
	n.b.SetLayer(name)
	p := name + "."
	fan := func(name string, x graph.TensorID) (a, b graph.TensorID) {
		return n.tower(p, x, padded(name+".a", 256, 1, 3)), n.tower(p, x, padded(name+".b", 256, 3, 1))
	}
	plain := n.tower(p, x, padded("1x1", 256, 1, 1))
	singleA, singleB := fan("3x3", n.tower(p, x, padded("3x3.1", 384, 1, 1)))
	doubleA, doubleB := fan("double",
		n.tower(p, x, padded("double.1", 384, 1, 1), padded("double.2", 448, 3, 1), padded("double.3", 512, 1, 3)))
	mean := n.tower(p, n.smooth(p+"mean", x), padded("mean.1x1", 256, 1, 1))
	return n.concat(name, plain, singleA, singleB, doubleA, doubleB, mean)
}
