package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"

	"tensile/controller/local"
	"tensile/device"
	"tensile/device/cpu"
	"tensile/graph"
	"tensile/models"
	"tensile/models/task"
)

// mostLooked is how many multiplications a look at a batch may take: a second or two on a CPU.
const mostLooked = 20e9

// scoring are the kinds of ops whose outputs are scores and no probabilities: nobody looks at them.
var scoring = []graph.Kind{graph.Linear, graph.MatMul, graph.Conv2D}

// tellTwice prints a line if the scores of a network from a file are probabilities.
func tellTwice(ctx context.Context, t *task.Task) error {
	is, err := hasSoftmaxTwice(ctx, t)
	if is {
		fmt.Fprintf(os.Stderr, "tensile: %s: the rows that its loss takes for scores are probabilities, as each "+
			"sums up to 1: softmax cross-entropy makes a softmax of them; export the scores instead\n", t.Source)
	}
	return err
}

// hasSoftmaxTwice looks at the first batch of a network from a file and reports whether what goes into its softmax
// cross-entropy are probabilities already, which no rule of the import has seen. What cannot be looked at is none.
func hasSoftmaxTwice(ctx context.Context, t *task.Task) (bool, error) {
	if t.Source == "" {
		return false, nil
	}
	g, err := models.Evaluation(t.Graph)
	if err != nil || len(g.Ops) == 0 || models.MACs(g) > mostLooked {
		return false, nil
	}
	last := g.Ops[len(g.Ops)-1] // which makes the scores
	for last.Kind == graph.Transpose || last.Kind == graph.Bias {
		before := slices.IndexFunc(g.Ops, func(op graph.Op) bool {
			return slices.Contains(g.Writes(op.ID), g.Version(last.Inputs[0]))
		})
		if before < 0 {
			return false, nil
		}
		last = g.Ops[before]
	}
	if slices.Contains(scoring, last.Kind) {
		return false, nil
	}
	classes := 0
	for _, op := range t.Graph.Ops {
		if op.Kind == graph.SoftmaxXent {
			classes = t.Graph.Tensors[op.Inputs[0]].Shape[1]
		}
	}
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		return false, err
	}
	defer d.Close()
	own := make(map[string]graph.Storage) // of the training
	for _, s := range t.Graph.Storages {
		own[s.Name] = s
	}
	var unread error
	feed := t.Feeder(func(err error) { unread = err })
	shares := false
	err = local.Execute(ctx, d, local.Execution{Graph: g, Iterations: 1,
		Init: func(s graph.Storage, to []float32) { t.Init(own[s.Name], to) },
		Input: func(i int, s graph.StorageID, to device.Memory) {
			feed(i, own[g.Storages[s].Name].ID, to)
		},
		Output: func(_ int, _ graph.StorageID, from []float32) { shares = sumUp(from, classes) }})
	if err != nil || unread != nil {
		return false, context.Cause(ctx) // the training says what is wrong
	}
	return shares, nil
}

// sumUp reports whether the numbers of each row lie in [0, 1] and sum to 1, up to rounding.
func sumUp(numbers []float32, row int) bool {
	for r := range slices.Chunk(numbers, row) {
		sum := 0.0
		for _, v := range r {
			if !(v >= 0 && v <= 1) {
				return false
			}
			sum += float64(v)
		}
		if math.Abs(sum-1) > 1e-4 {
			return false
		}
	}
	return len(numbers) > 0
}
