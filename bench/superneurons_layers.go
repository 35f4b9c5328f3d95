package bench

import (
	"fmt"
	"strings"
	"time"

	"tensile/graph"
	"tensile/scheduler"
)

// paperLayer is a layer of a network as the SuperNeurons paper lists them.
type paperLayer struct {
	name string
	kind graph.Kind
	out  [3]int // of an image: channels, height, width
	from []int  // layers that it reads; nil: the one before
}

// paperAlexNet is the network of the paper's footnote 3, at the sizes of Krizhevsky et al.
func paperAlexNet() []paperLayer {
	return []paperLayer{
		{"CONV1", graph.Conv2D, [3]int{96, 55, 55}, nil}, {"RELU1", graph.ReLU, [3]int{96, 55, 55}, nil},
		{"LRN1", graph.LRN, [3]int{96, 55, 55}, nil}, {"POOL1", graph.MaxPool, [3]int{96, 27, 27}, nil},
		{"CONV2", graph.Conv2D, [3]int{256, 27, 27}, nil}, {"RELU2", graph.ReLU, [3]int{256, 27, 27}, nil},
		{"LRN2", graph.LRN, [3]int{256, 27, 27}, nil}, {"POOL2", graph.MaxPool, [3]int{256, 13, 13}, nil},
		{"CONV3", graph.Conv2D, [3]int{384, 13, 13}, nil}, {"RELU3", graph.ReLU, [3]int{384, 13, 13}, nil},
		{"CONV4", graph.Conv2D, [3]int{384, 13, 13}, nil}, {"RELU4", graph.ReLU, [3]int{384, 13, 13}, nil},
		{"CONV5", graph.Conv2D, [3]int{256, 13, 13}, nil}, {"RELU5", graph.ReLU, [3]int{256, 13, 13}, nil},
		{"POOL5", graph.MaxPool, [3]int{256, 6, 6}, nil},
		{"FC1", graph.Linear, [3]int{4096, 1, 1}, nil}, {"RELU6", graph.ReLU, [3]int{4096, 1, 1}, nil},
		{"Dropout1", graph.Dropout, [3]int{4096, 1, 1}, nil},
		{"FC2", graph.Linear, [3]int{4096, 1, 1}, nil}, {"RELU7", graph.ReLU, [3]int{4096, 1, 1}, nil},
		{"Dropout2", graph.Dropout, [3]int{4096, 1, 1}, nil},
		{"FC3", graph.Linear, [3]int{1000, 1, 1}, nil}, {"Softmax", graph.SoftmaxXent, [3]int{1000, 1, 1}, nil},
	}
}

// paperResNet is the residual network of He et al. with these numbers of blocks. The projections of shortcuts have no
// normalisation: with it, four layers more would be executed again than table 1 says.
func paperResNet(blocks [4]int) []paperLayer {
	var all []paperLayer
	add := func(name string, kind graph.Kind, channels, size int, from ...int) int {
		all = append(all, paperLayer{name, kind, [3]int{channels, size, size}, from})
		return len(all) - 1
	}
	add("CONV1", graph.Conv2D, 64, 112)
	add("BN1", graph.BatchNorm, 64, 112)
	add("RELU1", graph.ReLU, 64, 112)
	x := add("POOL1", graph.MaxPool, 64, 56)
	for stage, count := range blocks {
		width, size := 64<<stage, 56>>stage
		for block := range count {
			name := fmt.Sprintf("%d.%d", stage+1, block+1)
			before := size
			if stage > 0 && block == 0 {
				before = 2 * size // the second convolution has stride 2
			}
			add("CONV"+name+"a", graph.Conv2D, width, before, x)
			add("BN"+name+"a", graph.BatchNorm, width, before)
			add("RELU"+name+"a", graph.ReLU, width, before)
			add("CONV"+name+"b", graph.Conv2D, width, size)
			add("BN"+name+"b", graph.BatchNorm, width, size)
			add("RELU"+name+"b", graph.ReLU, width, size)
			add("CONV"+name+"c", graph.Conv2D, 4*width, size)
			y := add("BN"+name+"c", graph.BatchNorm, 4*width, size)
			if block == 0 {
				x = add("CONV"+name+"d", graph.Conv2D, 4*width, size, x)
			}
			add("ADD"+name, graph.Add, 4*width, size, y, x)
			x = add("RELU"+name+"c", graph.ReLU, 4*width, size)
		}
	}
	add("POOL2", graph.AvgPool, 2048, 1)
	add("FC", graph.Linear, 1000, 1)
	add("Softmax", graph.SoftmaxXent, 1000, 1)
	return all
}

// layered is a network of the paper's layers as a job. It has data tensors alone, as the paper counts memory: no
// parameters and their gradients. Gradients of ReLU, LRN and BN, and both passes of softmax, are made in place; the
// backward pass of the first convolution does not read the batch. With that AlexNet has the paper's 36 tensors of
// 2189.437 MB. Each op takes a millisecond.
func layered(name string, layers []paperLayer, image [3]int, batch int) scheduler.Job {
	l := &layering{g: &graph.Graph{Name: name}, batch: batch}
	data := l.storage("DATA", graph.Input, image)
	y := make([]graph.TensorID, len(layers))   // what each layer makes
	users := make([]int, len(layers))          // layers that read it
	dy := make([]graph.TensorID, len(layers))  // its gradient so far
	forward := make([]graph.OpID, len(layers)) // the op
	inputs := make([][]graph.TensorID, len(layers))
	for i, layer := range layers {
		from := layer.from
		if from == nil && i > 0 {
			from = []int{i - 1}
		}
		for _, k := range from {
			inputs[i] = append(inputs[i], y[k])
			users[k]++
		}
		layers[i].from, dy[i] = from, graph.TensorID(-1)
		in := inputs[i]
		switch {
		case i == 0:
			in = []graph.TensorID{data}
		case layer.kind == graph.BatchNorm: // its mean is a state of no size to speak of
			in = append(in[:1:1], l.storage(layer.name+".mean", graph.State, [3]int{1, 0, 0}))
		}
		if layer.kind == graph.SoftmaxXent {
			y[i] = l.nextVersion(in[0])
		} else {
			y[i] = l.storage(layer.name, graph.Activation, layer.out)
		}
		forward[i] = l.op(layer.name, layer.kind, graph.Forward, graph.NoOp, in, y[i])
	}
	for i := len(layers) - 1; i >= 0; i-- {
		layer := &layers[i]
		name := layer.name + ".b"
		if i == len(layers)-1 {
			dx := l.storage(name, graph.Gradient, layer.out)
			l.op(name, graph.SoftmaxXentDX, graph.Backward, forward[i], []graph.TensorID{y[i]}, dx)
			dy[layer.from[0]] = dx
			continue
		}
		g := dy[i]
		switch layer.kind {
		case graph.Conv2D, graph.Linear:
			if i == 0 {
				l.op(name, layer.kind, graph.Backward, forward[i], []graph.TensorID{g}, l.storage(name, graph.Gradient,
					[3]int{1, 0, 0}))
				continue
			}
			l.gradient(name, layers, dy, i, forward[i], []graph.TensorID{inputs[i][0], g}, layer.from[0])
		case graph.Add:
			dy[layer.from[0]] = l.sum(name, layers, dy, forward[i], layer.from[0], g)
			l.gradient(name+".2", layers, dy, i, forward[i], []graph.TensorID{g}, layer.from[1])
		case graph.ReLU, graph.LRN, graph.BatchNorm:
			dx := l.nextVersion(g)
			l.op(name, layer.kind, graph.Backward, forward[i], []graph.TensorID{inputs[i][0], y[i], g}, dx)
			dy[layer.from[0]] = l.sum(name, layers, dy, forward[i], layer.from[0], dx)
		default:
			l.gradient(name, layers, dy, i, forward[i], []graph.TensorID{inputs[i][0], y[i], g}, layer.from[0])
		}
	}
	j := scheduler.Job{Name: name, Graph: l.g}
	for range l.g.Ops {
		j.Latency = append(j.Latency, time.Millisecond)
	}
	return j
}

// layering is a graph in the making.
type layering struct {
	g     *graph.Graph
	batch int
}

// storage adds a storage with a number of values per image, or with one value if there is no size.
func (l *layering) storage(name string, role graph.Role, out [3]int) graph.TensorID {
	shape := graph.Shape{l.batch, out[0], out[1], out[2]}
	if out[1] == 0 {
		shape = graph.Shape{1}
	}
	id := graph.StorageID(len(l.g.Storages))
	l.g.Storages = append(l.g.Storages, graph.Storage{ID: id, Name: name, Role: role,
		Bytes: graph.StorageBytes(shape, graph.Float32)})
	return l.tensor(name, id, 0, shape)
}

func (l *layering) tensor(name string, s graph.StorageID, version int, shape graph.Shape) graph.TensorID {
	id := graph.TensorID(len(l.g.Tensors))
	l.g.Tensors = append(l.g.Tensors, graph.Tensor{ID: id, Name: name, Storage: s, Version: version, Shape: shape})
	return id
}

// nextVersion is the version of a storage behind a tensor.
func (l *layering) nextVersion(t graph.TensorID) graph.TensorID {
	x := l.g.Tensors[t]
	return l.tensor(x.Name, x.Storage, x.Version+1, x.Shape)
}

func (l *layering) op(name string, kind graph.Kind, phase graph.Phase, forward graph.OpID, in []graph.TensorID,
	out graph.TensorID) graph.OpID {
	id := graph.OpID(len(l.g.Ops))
	// Only the kinds of forward ops say of which kind a layer is; those of backward ops are not looked at.
	l.g.Ops = append(l.g.Ops, graph.Op{ID: id, Name: name, Kind: kind, Phase: phase, Forward: forward, Inputs: in,
		Outputs: []graph.TensorID{out}})
	return id
}

// gradient adds the op that makes the gradient of what layer from has made, in a storage of its own.
func (l *layering) gradient(name string, layers []paperLayer, dy []graph.TensorID, i int, forward graph.OpID,
	in []graph.TensorID, from int) {
	dx := l.storage(name, graph.Gradient, layers[from].out)
	l.op(name, layers[i].kind, graph.Backward, forward, in, dx)
	dy[from] = l.sum(name, layers, dy, forward, from, dx)
}

// sum adds a gradient of what a layer has made to the one that is there, in place.
func (l *layering) sum(name string, layers []paperLayer, dy []graph.TensorID, forward graph.OpID, layer int,
	dx graph.TensorID) graph.TensorID {
	if dy[layer] < 0 {
		return dx
	}
	sum := l.nextVersion(dy[layer])
	l.op(strings.TrimSuffix(name, ".b")+".sum", graph.Accumulate, graph.Backward, forward,
		[]graph.TensorID{dy[layer], dx}, sum)
	return sum
}
