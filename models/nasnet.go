package models

import (
	"fmt"

	"tensile/graph"
)

// nasnet is NASNet-A of Zoph et al. (2018): three rows of normal cells, the channels doubled and the image halved by a
// reduction cell between rows. filters is what one operation of a cell makes in the first row, stem what the first
// convolution makes, repeats the normal cells in a row. Where an operation halves the image it is padded on both sides
// alike.
//
// Beside the output of a reduction, the first cell after it reads one of the reduction's two inputs: the older one if
// skip is true, as NASNet-A large does, else the newer one, as mobile does (skip_reduction in Keras' NASNet).
func nasnet(image, stem, filters, repeats int, skip bool) model {
	return model{
		image: image, channels: 3, rate: 1,
		smallest: normalising(35, 19),
		layers: func(n *net, x graph.TensorID, classes int) graph.TensorID {
			n.epsilon = 1e-3
			stem, filters := n.thin(stem), n.thin(filters)
			n.b.SetLayer("conv0")
			before := n.norm("conv0.bn", n.conv("conv0", x, stem, window{kernel: 3, stride: 2}), graph.InitOne)
			x = n.reduceFromImage("stem1", before, filters/4)
			x, before = n.reduceCell("stem2", before, x, filters/2, (*net).skim), x
			for row := range 3 {
				width := filters << row
				if row > 0 {
					newer := x
					x = n.reduceCell(fmt.Sprintf("reduce%d", row), before, newer, width, (*net).project)
					if !skip {
						before = newer
					}
				}
				fit := (*net).skim
				for i := range repeats {
					x, before = n.normalCell(fmt.Sprintf("row%d.cell%d", row+1, i+1), before, x, width, fit), x
					fit = (*net).project
				}
			}
			n.b.SetLayer("pool")
			x = n.dropout("dropout", n.globalAvgPool("pool", n.relu("relu", x)), 0.5)
			n.b.SetLayer("fc")
			return n.linear("fc", n.flatten(x), classes, linearGain)
		},
	}
}

// fitted makes the older input of a cell fit the newer one, by project or skim.
type fitted func(n *net, name string, x graph.TensorID, out int) graph.TensorID

// project is a normalised 1x1 convolution of the ReLU of x.
func (n *net) project(name string, x graph.TensorID, out int) graph.TensorID {
	x = n.conv(name, n.relu(name+".relu", x), out, window{kernel: 1, stride: 1})
	return n.norm(name+".bn", x, graph.InitOne)
}

// skim is project for an older input that is twice as large as the newer one, the factorised reduction: half of the
// channels come from every other pixel from the first on, half from the second on.
func (n *net) skim(name string, x graph.TensorID, out int) graph.TensorID {
	x = n.relu(name+".relu", x)
	s := n.b.Shape(x)
	second := n.addOp(name+".moved", graph.Pad, graph.Attrs{Pad: [2]int{-1, -1}, Extent: [2]int{s[2], s[3]}}, x)
	half := func(name string, x graph.TensorID) graph.TensorID {
		x = n.avgPool(name+".pick", x, window{kernel: 1, stride: 2})
		return n.conv(name, x, out/2, window{kernel: 1, stride: 1})
	}
	return n.norm(name+".bn", n.concat(name+".both", half(name+".1", x), half(name+".2", second)), graph.InitOne)
}

// separable is a ReLU, a depthwise convolution that may halve the image, a 1x1 convolution and a normalisation, and all
// of it again at the same size.
func (n *net) separable(name string, x graph.TensorID, kernel, stride, out int) graph.TensorID {
	for i := range 2 {
		name := fmt.Sprintf("%s.%d", name, i+1)
		x = n.relu(name+".relu", x)
		a := window{kernel: kernel, stride: stride, pad: kernel / 2}.attrs()
		a.Groups = n.b.Shape(x)[1]
		x = n.filter(name+".depth", x, a.Groups, a)
		x = n.norm(name+".bn", n.conv(name+".point", x, out, window{kernel: 1, stride: 1}), graph.InitOne)
		stride = 1
	}
	return x
}

// normalCell joins its older input and five sums of operations on its two inputs.
func (n *net) normalCell(name string, before, x graph.TensorID, width int, fit fitted) graph.TensorID {
	n.b.SetLayer(name)
	p := name + "."
	left := fit(n, p+"left", before, width)
	right := n.project(p+"right", x, width)
	sep := func(name string, x graph.TensorID, kernel int) graph.TensorID {
		return n.separable(p+name, x, kernel, 1, width)
	}
	return n.concat(name, left,
		n.add(p+"sum1", sep("1a", right, 5), sep("1b", left, 3)),
		n.add(p+"sum2", sep("2a", left, 5), sep("2b", left, 3)),
		n.add(p+"sum3", n.smooth(p+"3a", right), left),
		n.add(p+"sum4", n.smooth(p+"4a", left), n.smooth(p+"4b", left)),
		n.add(p+"sum5", sep("5a", right, 3), right))
}

// reduceCell halves the image of x and makes four times width channels.
func (n *net) reduceCell(name string, before, x graph.TensorID, width int, fit fitted) graph.TensorID {
	n.b.SetLayer(name)
	left := fit(n, name+".left", before, width)
	return n.reduce(name, left, n.project(name+".right", x, width), width)
}

// reduceFromImage is the reduction cell of one input, whose older input is the output of the first convolution itself.
func (n *net) reduceFromImage(name string, x graph.TensorID, width int) graph.TensorID {
	n.b.SetLayer(name)
	return n.reduce(name, x, n.project(name+".right", x, width), width)
}

// reduce is what a reduction cell does with its inputs.
func (n *net) reduce(name string, left, right graph.TensorID, width int) graph.TensorID {
	p := name + "."
	pool := window{kernel: 3, stride: 2, pad: 1}
	sep := func(name string, x graph.TensorID, kernel, stride int) graph.TensorID {
		return n.separable(p+name, x, kernel, stride, width)
	}
	sum1 := n.add(p+"sum1", sep("1a", right, 5, 2), sep("1b", left, 7, 2))
	sum2 := n.add(p+"sum2", n.maxPool(p+"2a", right, pool), sep("2b", left, 7, 2))
	sum3 := n.add(p+"sum3", n.avgPool(p+"3a", right, pool), sep("3b", left, 5, 2))
	sum4 := n.add(p+"sum4", n.smooth(p+"4a", sum1), sum2)
	sum5 := n.add(p+"sum5", sep("5a", sum1, 3, 1), n.maxPool(p+"5b", right, pool))
	return n.concat(name, sum2, sum3, sum4, sum5)
}
