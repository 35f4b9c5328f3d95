package models

import (
	"fmt"

	"tensile/graph"
)

// resnet returns the residual network of bottlenecks with these numbers of blocks in its four stages.
func resnet(blocks [4]int) model {
	return residual(blocks, func(n *net, name string, x graph.TensorID, stage int, halve bool) graph.TensorID {
		return n.bottleneck(name, x, n.thin(64<<stage), halve)
	})
}

// plainResnet returns the shallower form, of blocks of two 3x3 convolutions.
func plainResnet(blocks [4]int) model {
	return residual(blocks, func(n *net, name string, x graph.TensorID, stage int, halve bool) graph.TensorID {
		stride := 1
		if halve {
			stride = 2
		}
		width := n.thin(64 << stage)
		return n.twoConvs(name, x, width, stride, func(x graph.TensorID) graph.TensorID {
			if !halve {
				return x
			}
			x = n.conv(name+".down", x, width, window{kernel: 1, stride: stride})
			return n.norm(name+".down.bn", x, graph.InitOne)
		})
	})
}

// residual is a network of four stages of blocks, halved from the second stage on.
func residual(blocks [4]int, block func(n *net, name string, x graph.TensorID, stage int,
	halve bool) graph.TensorID) model {
	return model{
		image: imageNet, channels: 3, rate: 1,
		smallest: normalising(33, 1),
		layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
			n.b.SetLayer("conv1")
			x = n.conv("conv1", x, n.thin(64), window{kernel: 7, stride: 2, pad: 3})
			x = n.relu("conv1.relu", n.norm("conv1.bn", x, graph.InitOne))
			n.b.SetLayer("pool1")
			x = n.maxPool("pool1", x, window{kernel: 3, stride: 2, pad: 1})
			for stage, count := range blocks {
				for i := range count {
					x = block(n, fmt.Sprintf("stage%d.block%d", stage+1, i+1), x, stage, stage > 0 && i == 0)
				}
			}
			return n.pooledClasses("pool2", x, classes)
		},
	}
}

// resnetCIFAR is the residual network for small images with n blocks in each of its three stages, of 16, 32 and
// 64 channels. Its shortcuts have no parameters (option A of He et al.): every other pixel, and zeros for the new
// channels.
func resnetCIFAR(blocks int) model {
	return model{
		image: 32, channels: 3, rate: 1,
		smallest: normalising(5, 1),
		layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
			n.b.SetLayer("conv1")
			x = n.conv("conv1", x, n.thin(16), window{kernel: 3, stride: 1, pad: 1})
			x = n.relu("conv1.relu", n.norm("conv1.bn", x, graph.InitOne))
			for stage := range 3 {
				for block := range blocks {
					name := fmt.Sprintf("stage%d.block%d", stage+1, block+1)
					x = n.cifarBlock(name, x, n.thin(16<<stage), stage > 0 && block == 0)
				}
			}
			return n.pooledClasses("pool", x, classes)
		},
	}
}

func (n *net) cifarBlock(name string, x graph.TensorID, width int, halve bool) graph.TensorID {
	stride := 1
	if halve {
		stride = 2
	}
	return n.twoConvs(name, x, width, stride, func(x graph.TensorID) graph.TensorID {
		if !halve {
			return x
		}
		x = n.maxPool(name+".down", x, window{kernel: 1, stride: 2})
		in := n.b.Shape(x)[1]
		a := graph.Attrs{Dim: 1, Begin: (width - in) / 2, Length: in, Extent: [2]int{width}}
		return n.addOp(name+".widen", graph.SliceDX, a, x)
	})
}

// twoConvs is a residual block of two 3x3 convolutions, the first of the given stride, beside a shortcut.
func (n *net) twoConvs(name string, x graph.TensorID, width, stride int,
	shortcut func(graph.TensorID) graph.TensorID) graph.TensorID {
	n.b.SetLayer(name)
	y := n.conv(name+".conv1", x, width, window{kernel: 3, stride: stride, pad: 1})
	y = n.relu(name+".relu1", n.norm(name+".bn1", y, graph.InitOne))
	y = n.conv(name+".conv2", y, width, window{kernel: 3, stride: 1, pad: 1})
	y = n.norm(name+".bn2", y, graph.InitZero)
	return n.relu(name+".relu2", n.add(name+".add", y, shortcut(x)))
}

// pooledClasses is the mean over the pixels and a linear layer.
func (n *net) pooledClasses(pool string, x graph.TensorID, classes int) graph.TensorID {
	n.b.SetLayer(pool)
	x = n.flatten(n.globalAvgPool(pool, x))
	n.b.SetLayer("fc")
	return n.linear("fc", x, classes, linearGain)
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
	y = n.add(name+".add", y, x)
	return n.relu(name+".relu3", y)
}
