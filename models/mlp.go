package models

import (
	"fmt"

	"tensile/graph"
)

var mlp = model{
	image: 28, channels: 1, rate: 1,
	smallest: func(int) int { return 1 },
	layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
		x = n.flatten(x)
		for i := 1; i <= 3; i++ {
			name := fmt.Sprintf("fc%d", i)
			n.b.SetLayer(name)
			x = n.relu(name+".relu", n.linear(name, x, n.thin(1024), reluGain))
		}
		n.b.SetLayer("fc4")
		return n.linear("fc4", x, classes, linearGain)
	},
}
