package models

import (
	"fmt"

	"tensile/graph"
)

// vgg16 halves the image five times, so it needs 32 pixels. Without normalisation a large step of the 138 million
// weights kills ReLUs for good; a tenth of the usual learning rates (Adam: 1e-4) keeps it training.
var vgg16 = model{
	image: imageNet, channels: 3, rate: 0.1,
	smallest: func(int) int { return 32 },
	layers:   vgg16Layers,
}

func vgg16Layers(n *net, x graph.TensorID, classes int) graph.TensorID {
	stages := []struct{ convs, channels int }{{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}
	for i, stage := range stages {
		for j := range stage.convs {
			name := fmt.Sprintf("conv%d_%d", i+1, j+1)
			n.b.SetLayer(name)
			x = n.relu(name+".relu", n.convBias(name, x, stage.channels, window{kernel: 3, stride: 1, pad: 1}))
		}
		pool := fmt.Sprintf("pool%d", i+1)
		n.b.SetLayer(pool)
		x = n.maxPool(pool, x, window{kernel: 2, stride: 2})
	}
	x = n.flatten(x)
	for _, name := range []string{"fc6", "fc7"} {
		n.b.SetLayer(name)
		x = n.relu(name+".relu", n.linear(name, x, 4096, reluGain))
		x = n.dropout(name+".dropout", x, 0.5)
	}
	n.b.SetLayer("fc8")
	return n.linear("fc8", x, classes, linearGain)
}
