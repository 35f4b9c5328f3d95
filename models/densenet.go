package models

import (
	"fmt"

	"tensile/graph"
)

// densenet is the network of Huang et al. with bottlenecks and compression by half (DenseNet-BC) and a growth of 32
// channels. Each layer's output joins the tensor of all before it by a concat of two, as the layers of a block see it;
// so does the graph that the reference figures of memory are of, and the gradient of the joined tensor is a running
// sum.
func densenet(blocks [4]int) model {
	return model{
		image: imageNet, channels: 3, rate: 1,
		smallest: normalising(61, 29),
		layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
			n.b.SetLayer("conv1")
			x = n.conv("conv1", x, n.thin(64), window{kernel: 7, stride: 2, pad: 3})
			x = n.relu("conv1.relu", n.norm("conv1.bn", x, graph.InitOne))
			n.b.SetLayer("pool1")
			x = n.maxPool("pool1", x, window{kernel: 3, stride: 2, pad: 1})
			for i, layers := range blocks {
				for j := range layers {
					x = n.grow(fmt.Sprintf("block%d.layer%d", i+1, j+1), x)
				}
				if i < len(blocks)-1 {
					x = n.transition(fmt.Sprintf("transition%d", i+1), x)
				}
			}
			n.b.SetLayer("norm5")
			return n.pooledClasses("pool5", n.relu("norm5.relu", n.norm("norm5", x, graph.InitOne)), classes)
		},
	}
}

// growth is the number of channels that a layer adds.
const growth = 32

// grow appends one layer of a dense block.
func (n *net) grow(name string, x graph.TensorID) graph.TensorID {
	n.b.SetLayer(name)
	y := n.normConv(name+".1", x, 4*n.thin(growth), window{kernel: 1, stride: 1})
	y = n.normConv(name+".2", y, n.thin(growth), window{kernel: 3, stride: 1, pad: 1})
	return n.concat(name, x, y)
}

func (n *net) transition(name string, x graph.TensorID) graph.TensorID {
	n.b.SetLayer(name)
	x = n.normConv(name, x, n.b.Shape(x)[1]/2, window{kernel: 1, stride: 1})
	return n.addOp(name+".pool", graph.AvgPool, window{kernel: 2, stride: 2}.attrs(), x)
}

// normConv is a convolution of the normalised input, rather than one whose output is.
func (n *net) normConv(name string, x graph.TensorID, out int, w window) graph.TensorID {
	x = n.relu(name+".relu", n.norm(name+".bn", x, graph.InitOne))
	return n.conv(name+".conv", x, out, w)
}
