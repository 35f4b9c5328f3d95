package models

import "tensile/graph"

// lenet needs 12 pixels: half of them, less the border of the second 5x5 window, are the 2 that the last pool takes.
var lenet = model{
	image: 28, channels: 1, rate: 1,
	smallest: func(int) int { return 12 },
	layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
		half := window{kernel: 2, stride: 2}
		n.b.SetLayer("conv1")
		x = n.relu("conv1.relu", n.convBias("conv1", x, n.thin(6), window{kernel: 5, stride: 1, pad: 2}))
		n.b.SetLayer("pool1")
		x = n.maxPool("pool1", x, half)
		n.b.SetLayer("conv2")
		x = n.relu("conv2.relu", n.convBias("conv2", x, n.thin(16), window{kernel: 5, stride: 1}))
		n.b.SetLayer("pool2")
		x = n.flatten(n.maxPool("pool2", x, half))
		n.b.SetLayer("fc1")
		x = n.relu("fc1.relu", n.linear("fc1", x, n.thin(120), reluGain))
		n.b.SetLayer("fc2")
		x = n.relu("fc2.relu", n.linear("fc2", x, n.thin(84), reluGain))
		n.b.SetLayer("fc3")
		return n.linear("fc3", x, classes, linearGain)
	},
}
