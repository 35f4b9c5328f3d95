package models

import "tensile/graph"

// alexnet is the network of Krizhevsky et al. as SuperNeurons lists its layers: two groups in three of the
// convolutions, and local response normalisation with the paper's constants before the first two pools. Its 227 pixels
// leave 6 after three pools. Like vgg it has no normalisation to absorb large steps.
var alexnet = model{
	image: 227, channels: 3, rate: 0.1,
	smallest: func(int) int { return 67 },
	layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
		across := graph.Attrs{Length: 5, Factor: 1e-4, Exponent: 0.75, Epsilon: 2}
		layers := []struct {
			name   string
			out    int
			w      window
			groups int
			lrn    bool
			pool   string
		}{
			{"conv1", 96, window{kernel: 11, stride: 4}, 1, true, "pool1"},
			{"conv2", 256, window{kernel: 5, stride: 1, pad: 2}, 2, true, "pool2"},
			{"conv3", 384, window{kernel: 3, stride: 1, pad: 1}, 1, false, ""},
			{"conv4", 384, window{kernel: 3, stride: 1, pad: 1}, 2, false, ""},
			{"conv5", 256, window{kernel: 3, stride: 1, pad: 1}, 2, false, "pool5"},
		}
		for _, l := range layers {
			n.b.SetLayer(l.name)
			a := l.w.attrs()
			if l.groups > 1 {
				a.Groups = l.groups
			}
			x = n.relu(l.name+".relu", n.filterBias(l.name, x, n.thin(l.out), a))
			if l.lrn {
				x = n.addOp(l.name+".lrn", graph.LRN, across, x)
			}
			if l.pool != "" {
				n.b.SetLayer(l.pool)
				x = n.maxPool(l.pool, x, window{kernel: 3, stride: 2})
			}
		}
		return n.classifier(n.flatten(x), 4096, classes)
	},
}
