package local

import (
	"cmp"
	"context"
	"fmt"

	"tensile/controller"
	"tensile/data"
	"tensile/device"
	"tensile/executor"
	"tensile/graph"
	"tensile/models"
	"tensile/models/task"
	"tensile/scheduler/planner"
)

// Evaluation is the forward pass of a task's network, ready to be tried on test images.
type Evaluation struct {
	task task.Task
	test *data.Dataset
	// batch is how many images the graph takes at once.
	batch int
	// err is why an image could not be read. nil: all were.
	err error
}

// NewEvaluation makes the forward pass of a task, or says why it has none.
func NewEvaluation(t task.Task, test *data.Dataset) (*Evaluation, error) {
	g, err := models.Evaluation(t.Graph)
	if err != nil {
		return nil, err
	}
	t.Graph = g
	return &Evaluation{task: t, test: test, batch: g.Tensors[logits(t.Graph)].Shape[0]}, nil
}

// logits is the tensor that a forward pass makes last: a row of scores for each image.
func logits(g *graph.Graph) graph.TensorID {
	last := g.Ops[len(g.Ops)-1]
	return last.Outputs[0]
}

// Images is the number of images that the network is tried on.
func (e *Evaluation) Images() int { return e.test.Examples() }

// Run plans the forward pass for a device, takes all test images through it once, in batches of the training's size,
// and returns how many have the highest score at their class. learned holds the persistent storages by name. A row of
// scores with a NaN is wrong. budget 0: no limit.
func (e *Evaluation) Run(ctx context.Context, d device.Device, policy string, budget graph.Bytes,
	learned map[string][]float32) (correct int, err error) {
	for _, s := range e.task.Graph.Storages {
		if n := int(s.Bytes / graph.ElementBytes); s.Role.Persistent() && len(learned[s.Name]) != n {
			return 0, fmt.Errorf("evaluate %s: %s has %d elements, want %d", e.task.Name, s.Name, len(learned[s.Name]),
				n)
		}
	}
	o := Options{Config: controller.Config{Policy: policy, Budget: budget, NoReplan: true},
		Iterations: (e.Images() + e.batch - 1) / e.batch}
	forward := func(t task.Task, iterations int, _ func(int, float32)) executor.Spec {
		return executor.Spec{Graph: t.Graph, Iterations: iterations,
			Init: func(s graph.Storage, to []float32) { copy(to, learned[s.Name]) },
			JobOptions: device.JobOptions{Name: t.Name, Input: e.fill,
				Output: func(iteration int, _ graph.StorageID, from []float32) { correct += e.count(iteration, from) }}}
	}
	_, err = train(ctx, d, planner.Of(d, planner.Roofline(d.Facts())), []task.Task{e.task}, o, forward)
	if err = cmp.Or(err, e.err); err != nil {
		return 0, fmt.Errorf("evaluate %s: %w", e.task.Name, err)
	}
	return correct, nil
}

// fill writes the images of a batch, and zeros after the last image.
func (e *Evaluation) fill(iteration int, _ graph.StorageID, memory device.Memory) {
	to := memory.Float32()
	size := len(to) / e.batch
	clear(to)
	for i := range min(e.batch, e.Images()-iteration*e.batch) {
		if _, err := e.test.Example(iteration*e.batch+i, to[i*size:(i+1)*size]); err != nil {
			e.err = err
		}
	}
}

// count returns how many images of a batch have the highest score at their class.
func (e *Evaluation) count(iteration int, scores []float32) (correct int) {
	channels, height, width := e.test.Shape()
	image := make([]float32, channels*height*width)
	classes := len(scores) / e.batch
	for i := range min(e.batch, e.Images()-iteration*e.batch) {
		class, err := e.test.Example(iteration*e.batch+i, image)
		if err != nil {
			e.err = err
		} else if argmax(scores[i*classes:(i+1)*classes]) == class {
			correct++
		}
	}
	return correct
}

// argmax is the index of the highest score, the first of equal ones. -1: a score is NaN.
func argmax(scores []float32) int {
	best := 0
	for i, v := range scores {
		if v != v {
			return -1
		}
		if v > scores[best] {
			best = i
		}
	}
	return best
}
