package task

import (
	"fmt"

	"tensile/data"
	"tensile/graph"
)

// classifier is what a graph that learns the classes of images is fed.
type classifier struct {
	images, labels graph.StorageID
	shape          graph.Shape // Shape of the images: N, C, H, W.
	classes        int
}

// findClassifier finds the inputs of a graph that has just these two: images, and a label for each.
func findClassifier(g *graph.Graph) (classifier, bool) {
	classes := labelsOf(g)
	c := classifier{images: -1, labels: -1}
	for _, s := range g.Storages {
		switch {
		case s.Role != graph.Input:
		case s.Holds == graph.Labels && c.labels < 0:
			c.labels, c.classes = s.ID, classes[s.ID]
		case s.Holds == graph.Images && c.images < 0:
			c.images, c.shape = s.ID, wholeImages(g, s)
		default:
			return c, false
		}
	}
	return c, c.classes > 0 && c.shape != nil && g.Storages[c.labels].Bytes == graph.Shape{c.shape[0]}.Bytes()
}

// labelsOf returns the storages that losses read class labels from, and how many classes there are.
func labelsOf(g *graph.Graph) map[graph.StorageID]int {
	classes := make(map[graph.StorageID]int)
	for _, op := range g.Ops {
		if op.Kind == graph.SoftmaxXent || op.Kind == graph.SoftmaxXentDX {
			fewest(classes, g.Tensors[op.Inputs[1]].Storage, g.Tensors[op.Inputs[0]].Shape[1])
		}
	}
	return classes
}

// classesOf returns the storages that hold whole numbers, labels or ids of a table's rows, and how many there may be.
func classesOf(g *graph.Graph) map[graph.StorageID]int {
	classes := labelsOf(g)
	for _, op := range g.Ops {
		switch op.Kind {
		case graph.Embedding:
			fewest(classes, g.Tensors[op.Inputs[1]].Storage, g.Tensors[op.Inputs[0]].Shape[0])
		case graph.EmbeddingDW:
			fewest(classes, g.Tensors[op.Inputs[0]].Storage, op.Attrs.Extent[0])
		case graph.SigmoidXent, graph.SigmoidXentDX:
			fewest(classes, g.Tensors[op.Inputs[1]].Storage, 2)
		}
	}
	return classes
}

// fewest lowers the number of classes of a storage to n.
func fewest(classes map[graph.StorageID]int, s graph.StorageID, n int) {
	if before, ok := classes[s]; ok {
		n = min(n, before)
	}
	classes[s] = n
}

// wholeImages returns the shape of the first tensor of four dimensions that covers a storage, or nil.
func wholeImages(g *graph.Graph, s graph.Storage) graph.Shape {
	for _, t := range g.Tensors {
		if t.Storage == s.ID && len(t.Shape) == 4 && t.Bytes() == s.Bytes {
			return t.Shape
		}
	}
	return nil
}

// Synthetic returns a set that fits a classifier, nil for other graphs.
func Synthetic(g *graph.Graph, seed uint64) *data.Dataset {
	c, ok := findClassifier(g)
	if !ok {
		return nil
	}
	return data.Synthetic(c.shape[1], c.shape[2], c.shape[3], c.classes, seed)
}

// Fit returns a data set as a graph learns from it, with images of its size, or the error why it cannot.
func Fit(g *graph.Graph, set *data.Dataset) (*data.Dataset, error) {
	c, ok := findClassifier(g)
	if !ok {
		return nil, fmt.Errorf("model %s has no inputs that hold images and labels, and cannot learn from %s: "+
			"leave --data out", g.Name, set.Name())
	}
	if set = set.Sized(c.shape[1], c.shape[2], c.shape[3]); set.AnySize() && c.shape[1] != 1 && c.shape[1] != 3 {
		return nil, fmt.Errorf("model %s takes images of %d channels, those of %s have 1 or 3: use a model that takes "+
			"such", g.Name, c.shape[1], set.Name())
	}
	channels, height, width := set.Shape()
	if channels != c.shape[1] || height != c.shape[2] || width != c.shape[3] {
		return nil, fmt.Errorf("model %s takes images of %dx%dx%d (channels, height, width), those of %s are "+
			"%dx%dx%d: use a model or a data set of the other's size",
			g.Name, c.shape[1], c.shape[2], c.shape[3], set.Name(), channels, height, width)
	}
	if c.classes < set.Classes() {
		return nil, fmt.Errorf("model %s has %d classes, %s has %d: use a model with as many", g.Name, c.classes,
			set.Name(), set.Classes())
	}
	return set, nil
}
