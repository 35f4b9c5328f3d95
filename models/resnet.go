package models

import (
	"fmt"

	"tensile/graph"
)

// resnet returns the bottleneck residual network with these numbers of blocks in its four stages. It takes images of
// any size, but batch normalisation needs two values per channel: a lone image must leave more than one pixel at 1/32.
func resnet(blocks [4]int) model {
	return model{
		image: imageNet, channels: 3, rate: 1,
		smallest: func(batch int) int {
			if batch == 1 {
				return 33
			}
			return 1
		},
		layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
			n.b.SetLayer("conv1")
			x = n.conv("conv1", x, 64, window{kernel: 7, stride: 2, pad: 3})
			x = n.relu("conv1.relu", n.norm("conv1.bn", x, graph.InitOne))
			n.b.SetLayer("pool1")
			x = n.maxPool("pool1", x, window{kernel: 3, stride: 2, pad: 1})
			for stage, count := range blocks {
				for block := range count {
					name := fmt.Sprintf("stage%d.block%d", stage+1, block+1)
					x = n.bottleneck(name, x, 64<<stage, stage > 0 && block == 0)
				}
			}
			n.b.SetLayer("pool2")
			x = n.flatten(n.globalAvgPool("pool2", x))
			n.b.SetLayer("fc")
			return n.linear("fc", x, classes, linearGain)
		},
	}
}

// bottleneck is a residual block of width channels inside and four times as many outside. halve makes its 3x3
// convolution, and the shortcut, step over every other pixel. The shortcut is projected where its shape changes. The
// scale of the last normalisation begins at zero, so that a block begins as its shortcut and a deep network learns from
// the first iterations on.
func (n *net) bottleneck(name string, x graph.TensorID, width int, halve bool) graph.TensorID {
	n.b.SetLayer(name)
	stride, out := 1, 4*width
	if halve {
		stride = 2
	}
	y := n.conv(name+".conv1", x, width, window{kernel: 1, stride: 1})
	y = n.relu(name+".relu1", n.norm(name+".bn1", y, graph.InitOne))
	y = n.conv(name+".conv2", y, width, window{kernel: 3, stride: stride, pad: 1})
	y = n.relu(name+".relu2", n.norm(name+".bn2", y, graph.InitOne))
	y = n.conv(name+".conv3", y, out, window{kernel: 1, stride: 1})
	y = n.norm(name+".bn3", y, graph.InitZero)
	if halve || n.b.Shape(x)[1] != out {
		x = n.conv(name+".down", x, out, window{kernel: 1, stride: stride})
		x = n.norm(name+".down.bn", x, graph.InitOne)
	}
	y = n.one(name+".add", graph.Add, graph.Attrs{}, y, x)
	return n.relu(name+".relu3", y)
}
