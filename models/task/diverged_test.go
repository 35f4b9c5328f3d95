package task

import (
	"math"
	"strings"
	"testing"

	"tensile/graph"
)

func TestCheckLoss(t *testing.T) {
	for _, loss := range []float32{0, -3, math.MaxFloat32} {
		if err := CheckLoss(2, loss); err != nil {
			t.Errorf("loss %v: %v", loss, err)
		}
	}
	for loss, want := range map[float64]string{math.NaN(): "NaN", math.Inf(1): "+Inf", math.Inf(-1): "-Inf"} {
		err := CheckLoss(2, float32(loss))
		if d, ok := err.(*DivergedError); !ok || d.Iteration != 2 ||
			!strings.HasPrefix(err.Error(), "the loss of iteration 2 (counted from 0) is "+want+": lower --lr") {
			t.Errorf("loss %v: %v", loss, err)
		}
	}
	if err := CheckLoss(0, float32(math.NaN())); err == nil || strings.Contains(err.Error(), "--lr") {
		t.Errorf("of the first iteration, before which nothing was learned: %v", err)
	}
}

// A parameter is a finite number, a state may be infinite, and what nothing changes may be anything.
func TestCheck(t *testing.T) {
	b := graph.NewBuilder("g")
	w := b.Persistent("w", graph.Parameter, graph.Shape{2}, graph.Init{Kind: graph.InitZero})
	m := b.Persistent("w.m", graph.State, graph.Shape{2}, graph.Init{Kind: graph.InitZero})
	mask := b.Persistent("mask", graph.State, graph.Shape{2}, graph.Init{Kind: graph.InitZero})
	dw := b.Op("dw", graph.Add, graph.Attrs{}, w, mask)[0]
	b.Op("w.update", graph.Momentum, graph.Attrs{LearningRate: 1e-50}, w, dw, m)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	task := Task{Graph: g}
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, test := range []struct {
		w, m, mask float32
		want       string
	}{
		{1, 1, 1, ""}, {1, 1, nan, ""}, {1, 1, inf, ""}, {1, inf, 1, ""},
		{nan, 1, 1, "w has become NaN after 5 iterations: "}, {inf, 1, 1, "w has become -Inf after 5 iterations: "},
		{1, nan, 1, "w.m has become NaN after 5 iterations: "},
	} {
		err := task.Check(5, map[graph.StorageID][]float32{0: {1, test.w}, 1: {1, test.m}, 2: {1, test.mask}})
		if (err != nil) != (test.want != "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("of %+v: %v", test, err)
		}
	}
	if err := task.Check(5, nil); err != nil {
		t.Errorf("on a device without data: %v", err)
	}
	if !task.IsFrozen() { // as float32 the rate is 0
		t.Error("its parameter changes")
	}
	g.Ops[1].Attrs.LearningRate = 1e-10
	if task.IsFrozen() {
		t.Error("its parameter stays")
	}
	g.Ops = g.Ops[:1]
	if task.IsFrozen() {
		t.Error("a graph without updates is said to have a learning rate of 0")
	}
}
