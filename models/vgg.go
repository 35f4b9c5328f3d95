package models

import (
	"fmt"

	"tensile/graph"
)

// vgg is the network of Simonyan and Zisserman with the given numbers of 3x3 convolutions in its five stages: columns
// A, B, D and E of their table 1. It halves the image five times, so it needs 32 pixels. Without normalisation a large
// step of the 138 million weights kills ReLUs for good; a tenth of the usual learning rates (Adam: 1e-4) keeps it
// training.
func vgg(convs [5]int) model {
	return model{
		image: imageNet, channels: 3, rate: 0.1,
		smallest: func(int) int { return 32 },
		layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
			n.stages(&x, convs, func(name string, x graph.TensorID, out int) graph.TensorID {
				return n.relu(name+".relu", n.convBias(name, x, out, window{kernel: 3, stride: 1, pad: 1}))
			})
			return n.classifier(n.flatten(x), 4096, classes)
		},
	}
}

// vggCIFAR is the network of the same depth for small images: normalised convolutions, smaller linear layers. At the 32
// pixels of CIFAR one pixel is left; at batch 1 a normalisation wants two before the last pool.
func vggCIFAR(convs [5]int) model {
	return model{
		image: 32, channels: 3, rate: 1,
		smallest: func(int) int { return 32 },
		layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
			n.stages(&x, convs, func(name string, x graph.TensorID, out int) graph.TensorID {
				x = n.convBias(name, x, out, window{kernel: 3, stride: 1, pad: 1})
				return n.relu(name+".relu", n.norm(name+".bn", x, graph.InitOne))
			})
			n.b.SetLayer("fc6")
			x = n.relu("fc6.relu", n.linear("fc6", n.dropout("fc6.in.dropout", n.flatten(x), 0.5), n.thin(512),
				reluGain))
			x = n.dropout("fc6.dropout", x, 0.5)
			n.b.SetLayer("fc7")
			return n.linear("fc7", x, classes, linearGain)
		},
	}
}

// stages appends five stages of 3x3 convolutions, each followed by a pool that halves the image.
func (n *net) stages(x *graph.TensorID, convs [5]int, layer func(name string, x graph.TensorID,
	out int) graph.TensorID) {
	for i, count := range convs {
		for j := range count {
			name := fmt.Sprintf("conv%d_%d", i+1, j+1)
			n.b.SetLayer(name)
			*x = layer(name, *x, n.thin(min(512, 64<<i)))
		}
		pool := fmt.Sprintf("pool%d", i+1)
		n.b.SetLayer(pool)
		*x = n.maxPool(pool, *x, window{kernel: 2, stride: 2})
	}
}

// classifier is two hidden layers with dropout and one that makes the classes: x[N,I] -> [N,classes].
func (n *net) classifier(x graph.TensorID, hidden, classes int) graph.TensorID {
	for _, name := range []string{"fc6", "fc7"} {
		n.b.SetLayer(name)
		x = n.relu(name+".relu", n.linear(name, x, n.thin(hidden), reluGain))
		x = n.dropout(name+".dropout", x, 0.5)
	}
	n.b.SetLayer("fc8")
	return n.linear("fc8", x, classes, linearGain)
}
