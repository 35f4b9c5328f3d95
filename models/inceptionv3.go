package models

import (
	"fmt"

	"tensile/graph"
)

// inceptionV3 is the network of Szegedy et al. (2016) without its auxiliary classifier, in the form of torchvision.
var inceptionV3 = model{
	image: inceptionSize, channels: 3, rate: 1,
	smallest: normalising(107, 75),
	layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
		n.epsilon = 1e-3
		n.b.SetLayer("stem")
		x = n.tower("stem.", x, inner("conv1", 32, 3, 2), inner("conv2", 32, 3, 1), padded("conv3", 64, 3, 3))
		x = n.halve("stem.pool1", x)
		x = n.tower("stem.", x, inner("conv4", 80, 1, 1), inner("conv5", 192, 3, 1))
		x = n.halve("stem.pool2", x)
		for i, pooled := range []int{32, 64, 64} {
			x = n.v3Five(fmt.Sprintf("a%d", i+1), x, pooled)
		}
		x = n.v3HalveFirst("b", x)
		for i, width := range []int{128, 160, 160, 192} {
			x = n.v3Seven(fmt.Sprintf("c%d", i+1), x, width)
		}
		x = n.v3HalveSecond("d", x)
		for i := range 2 {
			x = n.v3Wide(fmt.Sprintf("e%d", i+1), x)
		}
		n.b.SetLayer("pool")
		x = n.dropout("dropout", n.globalAvgPool("pool", x), 0.5)
		n.b.SetLayer("fc")
		return n.linear("fc", n.flatten(x), classes, linearGain)
	},
}

// v3Five is the module of 1x1, 5x5 and two 3x3 convolutions.
func (n *net) v3Five(name string, x graph.TensorID, pooled int) graph.TensorID {
	n.b.SetLayer(name)
	p := name + "."
	return n.concat(name,
		n.tower(p, x, padded("1x1", 64, 1, 1)),
		n.tower(p, x, padded("5x5.1", 48, 1, 1), padded("5x5.2", 64, 5, 5)),
		n.tower(p, x, padded("3x3.1", 64, 1, 1), padded("3x3.2", 96, 3, 3), padded("3x3.3", 96, 3, 3)),
		n.tower(p, n.smooth(p+"mean", x), padded("mean.1x1", pooled, 1, 1)))
}

func (n *net) v3HalveFirst(name string, x graph.TensorID) graph.TensorID {
	n.b.SetLayer(name)
	p := name + "."
	return n.concat(name,
		n.tower(p, x, inner("3x3", 384, 3, 2)),
		n.tower(p, x, padded("double.1", 64, 1, 1), padded("double.2", 96, 3, 3), inner("double.3", 96, 3, 2)),
		n.halve(p+"pool", x))
}

// v3Seven is the module of factorised 7x7 convolutions of width channels inside.
func (n *net) v3Seven(name string, x graph.TensorID, width int) graph.TensorID {
	n.b.SetLayer(name)
	p := name + "."
	return n.concat(name,
		n.tower(p, x, padded("1x1", 192, 1, 1)),
		n.tower(p, x, padded("7x7.1", width, 1, 1), padded("7x7.2", width, 1, 7), padded("7x7.3", 192, 7, 1)),
		n.tower(p, x, padded("double.1", width, 1, 1), padded("double.2", width, 7, 1), padded("double.3", width, 1, 7),
			padded("double.4", width, 7, 1), padded("double.5", 192, 1, 7)),
		n.tower(p, n.smooth(p+"mean", x), padded("mean.1x1", 192, 1, 1)))
}

func (n *net) v3HalveSecond(name string, x graph.TensorID) graph.TensorID {
	n.b.SetLayer(name)
	p := name + "."
	return n.concat(name,
		n.tower(p, x, padded("3x3.1", 192, 1, 1), inner("3x3.2", 320, 3, 2)),
		n.tower(p, x, padded("7x7.1", 192, 1, 1), padded("7x7.2", 192, 1, 7), padded("7x7.3", 192, 7, 1),
			inner("7x7.4", 192, 3, 2)),
		n.halve(p+"pool", x))
}

// v3Wide is the module whose 3x3 convolutions end in a 1x3 and a 3x1 side by side.
func (n *net) v3Wide(name string, x graph.TensorID) graph.TensorID {
	n.b.SetLayer(name)
	p := name + "."
	fan := func(name string, x graph.TensorID) graph.TensorID {
		return n.concat(p+name,
			n.tower(p, x, padded(name+".a", 384, 1, 3)), n.tower(p, x, padded(name+".b", 384, 3, 1)))
	}
	return n.concat(name,
		n.tower(p, x, padded("1x1", 320, 1, 1)),
		fan("3x3", n.tower(p, x, padded("3x3.1", 384, 1, 1))),
		fan("double", n.tower(p, x, padded("double.1", 448, 1, 1), padded("double.2", 384, 3, 3))),
		n.tower(p, n.smooth(p+"mean", x), padded("mean.1x1", 192, 1, 1)))
}
