package bench

import (
	"math/rand/v2"

	"tensile/executor"
	"tensile/graph"
	"tensile/weights"
)

// spec makes a task ready for the executor. The first element of its first output is the loss; losses is written by the
// job's host lane, an entry per iteration, which may be read once that iteration's report has come.
func (t Task) spec(losses []float32) executor.Spec {
	loss := t.Graph.OutputStorage()
	return executor.Spec{
		Name: t.Name, Graph: t.Graph, Seed: t.Seed, Iterations: len(losses),
		Init:  func(s graph.Storage, to []float32) { weights.Initialise(s, t.Seed, to) },
		Input: t.feeder(),
		Output: func(iteration int, s graph.StorageID, from []float32) {
			if s == loss {
				losses[iteration] = from[0]
			}
		},
	}
}

// feeder returns the loader of a task's inputs: images and labels of the data set, or noise for other inputs. It takes
// no memory before it is first called, which a device without data never does.
func (t Task) feeder() func(iteration int, s graph.StorageID, to []float32) {
	c, ok := findClassifier(t.Graph)
	if !ok || t.Data == nil {
		return t.noise(labelsOf(t.Graph))
	}
	var images, labels []float32
	filled := -1
	return func(iteration int, s graph.StorageID, to []float32) {
		if images == nil {
			images, labels = make([]float32, c.shape.Elements()), make([]float32, c.shape[0])
		}
		if filled != iteration { // one fill serves both inputs of an iteration
			t.Data.Fill(iteration, images, labels)
			filled = iteration
		}
		if s == c.labels {
			copy(to, labels)
		} else {
			copy(to, images)
		}
	}
}

// noise fills inputs of any shape, the same in every run: classes for labels, normal values elsewhere.
func (t Task) noise(classes map[graph.StorageID]int) func(iteration int, s graph.StorageID, to []float32) {
	return func(iteration int, s graph.StorageID, to []float32) {
		random := rand.New(rand.NewPCG(t.Seed, uint64(iteration)<<32|uint64(s)))
		n, label := classes[s]
		for i := range to {
			if label {
				to[i] = float32(random.IntN(n))
			} else {
				to[i] = float32(random.NormFloat64())
			}
		}
	}
}
