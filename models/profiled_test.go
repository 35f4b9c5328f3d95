package models

import (
	"fmt"

	"tensile/graph"
)

// Networks that were profiled and that models does not offer, of the same layers.

// torchAlexNet is the form of AlexNet that was profiled: fewer filters, no groups, no normalisation, dropout before the
// linear layers. models offers the form of the paper.
var torchAlexNet = model{
	image: 224, channels: 3, rate: 0.1,
	smallest: func(int) int { return 63 },
	layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
		pool := window{kernel: 3, stride: 2}
		conv := func(name string, out int, w window) {
			x = n.relu(name+".relu", n.convBias(name, x, out, w))
		}
		conv("conv1", 64, window{kernel: 11, stride: 4, pad: 2})
		x = n.maxPool("pool1", x, pool)
		conv("conv2", 192, window{kernel: 5, stride: 1, pad: 2})
		x = n.maxPool("pool2", x, pool)
		for i, out := range []int{384, 256, 256} {
			conv(fmt.Sprintf("conv%d", i+3), out, window{kernel: 3, stride: 1, pad: 1})
		}
		x = n.flatten(n.maxPool("pool5", x, pool))
		for _, name := range []string{"fc6", "fc7"} {
			x = n.relu(name+".relu", n.linear(name, n.dropout(name+".dropout", x, 0.5), 4096, reluGain))
		}
		return n.linear("fc8", x, classes, linearGain)
	},
}

// squeezeNet is SqueezeNet 1.0. The profiled one rounds the size behind its second pool up, which padding does here.
var squeezeNet = model{
	image: 224, channels: 3, rate: 0.1,
	smallest: func(int) int { return 63 },
	layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
		conv := func(name string, x graph.TensorID, out int, w window) graph.TensorID {
			return n.relu(name+".relu", n.convBias(name, x, out, w))
		}
		one := window{kernel: 1, stride: 1}
		x = n.maxPool("pool1", conv("conv1", x, 96, window{kernel: 7, stride: 2}), window{kernel: 3, stride: 2})
		for i, squeezed := range []int{16, 16, 32, 32, 48, 48, 64, 64} {
			name := fmt.Sprintf("fire%d", i+2)
			x = conv(name+".squeeze", x, squeezed, one)
			x = n.concat(name, conv(name+".1x1", x, 4*squeezed, one), conv(name+".3x3", x, 4*squeezed,
				window{kernel: 3, stride: 1, pad: 1}))
			switch i {
			case 2:
				x = n.maxPool("pool2", x, window{kernel: 3, stride: 2, pad: 1})
			case 6:
				x = n.maxPool("pool3", x, window{kernel: 3, stride: 2})
			}
		}
		return n.flatten(n.globalAvgPool("pool4", conv("classes", n.dropout("dropout", x, 0.5), classes, one)))
	},
}
