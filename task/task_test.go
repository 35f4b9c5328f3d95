package task

import (
	"math"
	"slices"
	"testing"

	"tensile/device"
	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/models"
)

// Tasks whose inputs are images and labels are fed from their data set: in every iteration one batch, to both inputs.
func TestFeedImages(t *testing.T) {
	g, err := models.Build("lenet", models.Config{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	task, err := Open(g, 3, "")
	if err != nil {
		t.Fatal(err)
	}
	c, ok := findClassifier(task.Graph)
	if !ok {
		t.Fatal("lenet is no classifier")
	}
	feed := task.Feeder()
	for _, iteration := range []int{0, 1, 0, 7} {
		images, labels := device.NewMemory(c.shape.Bytes()), device.NewMemory(16)
		wantImages, wantLabels := make([]float32, c.shape.Elements()), make([]float32, 4)
		task.Data.Fill(iteration, wantImages, wantLabels)
		feed(iteration, c.labels, labels)
		feed(iteration, c.images, images)
		if !slices.Equal(images.Float32(), wantImages) || !slices.Equal(labels.Float32(), wantLabels) {
			t.Errorf("iteration %d: fed other images or labels (%v, want %v) than those of the set", iteration,
				labels.Float32(), wantLabels)
		}
	}
}

// Other graphs are fed noise: classes where labels are read, normal values elsewhere; the same in every run, and
// another in every iteration, job and input.
func TestFeedNoise(t *testing.T) {
	g := devicetest.Tiny() // x: 4x6, labels: 4 of 3 classes
	if _, ok := findClassifier(g); ok || Synthetic(g, 1) != nil {
		t.Fatal("rows of 6 numbers count as images")
	}
	inputs := make(map[string]graph.StorageID)
	for _, s := range g.Storages {
		inputs[s.Name] = s.ID
	}
	task := Task{Graph: g, Seed: 1}
	feed := func(task Task, iteration int, s string, n int) []float32 {
		to := device.NewMemory(graph.Shape{n}.Bytes())
		task.Feeder()(iteration, inputs[s], to)
		return to.Float32()
	}
	x := feed(task, 0, "x", 24)
	if !slices.Equal(x, feed(task, 0, "x", 24)) {
		t.Error("the noise of an iteration differs between two runs")
	}
	other := task
	other.Seed = 2
	if slices.Equal(x, feed(task, 1, "x", 24)) || slices.Equal(x, feed(other, 0, "x", 24)) {
		t.Error("the noise is the same in another iteration or job")
	}
	var classes [3]int
	for iteration := range 50 {
		for _, label := range feed(task, iteration, "labels", 4) {
			if label != 0 && label != 1 && label != 2 {
				t.Fatalf("label %v of 3 classes", label)
			}
			classes[int(label)]++
		}
	}
	if slices.Contains(classes[:], 0) {
		t.Errorf("of 200 labels %v are of each class", classes)
	}
	var sum, squares float64
	for _, v := range feed(task, 0, "x", 10000) {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	if mean, variance := sum/10000, squares/10000; math.Abs(mean) > 0.05 || math.Abs(variance-1) > 0.1 {
		t.Errorf("noise of mean %v and variance %v", mean, variance)
	}
}

// Every label input is fed classes, also when a graph has two losses over different numbers of classes.
func TestTwoLosses(t *testing.T) {
	b := graph.NewBuilder("two")
	image := b.Input("image", graph.Anything, graph.Float32, graph.Shape{2, 1, 2, 3})
	near, far := b.Input("near", graph.Anything, graph.Float32, graph.Shape{2}), b.Input("far", graph.Anything,
		graph.Float32, graph.Shape{2})
	x := b.View("x", image, 0, graph.Shape{2, 6})
	b.Output(b.Op("loss6", graph.SoftmaxXent, graph.Attrs{}, x, near)[0])
	b.Output(b.Op("again", graph.SoftmaxXent, graph.Attrs{}, x, near)[0])
	y := b.Op("y", graph.Linear, graph.Attrs{}, x, b.Persistent("w", graph.Parameter, graph.Shape{2, 6},
		graph.Init{Kind: graph.InitOne}))[0]
	b.Output(b.Op("loss2", graph.SoftmaxXent, graph.Attrs{}, y, far)[0])
	b.Output(b.Op("mixed", graph.SoftmaxXent, graph.Attrs{}, y, near)[0])
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	classes := labelsOf(g)
	if len(classes) != 2 || classes[1] != 2 || classes[2] != 2 {
		t.Errorf("classes of the label inputs are %v, want 2 (the fewest of its losses) for 1 and 2 for 2", classes)
	}
	if _, ok := findClassifier(g); ok {
		t.Error("a graph with two label inputs counts as a classifier of images")
	}
}
