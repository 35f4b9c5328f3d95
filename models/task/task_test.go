package task

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tensile/data/weights"
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
	task, err := Open(nil, g, 3, "")
	if err != nil {
		t.Fatal(err)
	}
	c, ok := findClassifier(task.Graph)
	if !ok {
		t.Fatal("lenet is no classifier")
	}
	feed := task.Feeder(nil)
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
		task.Feeder(nil)(iteration, inputs[s], to)
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

// A task begins with the contents that another of its graph was kept with, to the bit; what a file lacks is made up. A
// file of another network, or without what the graph wants of it, is an error.
func TestBegin(t *testing.T) {
	g, err := models.Build("lenet", models.Config{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	trained := Task{Graph: g, Seed: 9}
	contents := make(map[graph.StorageID][]float32)
	for _, s := range g.Storages {
		if s.Role.Persistent() {
			contents[s.ID] = make([]float32, s.Bytes/graph.ElementBytes)
			trained.Init(s, contents[s.ID])
		}
	}
	write := func(f weights.File) string {
		path := filepath.Join(t.TempDir(), "w.safetensors")
		if err := weights.Write(nil, path, f); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := trained.File(5, contents)
	part := whole
	part.Tensors = whole.Tensors[1:]
	missing := whole.Tensors[0].Name
	for _, file := range []weights.File{whole, part} {
		task := Task{Graph: g, Seed: 1}
		if err := task.Begin(write(file)); err != nil {
			t.Fatal(err)
		}
		for _, s := range g.Storages {
			if !s.Role.Persistent() {
				continue
			}
			got, made := make([]float32, s.Bytes/graph.ElementBytes), make([]float32, s.Bytes/graph.ElementBytes)
			task.Init(s, got)
			weights.Initialise(s, 1, made)
			want := contents[s.ID]
			if len(file.Tensors) < len(whole.Tensors) && s.Name == missing {
				want = made
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s begins with %v ..., want %v ...", s.Name, got[0], want[0])
			}
		}
	}

	wants := *g
	wants.Storages = slices.Clone(g.Storages)
	for i, s := range wants.Storages {
		if s.Name == missing {
			wants.Storages[i].Init = &graph.Init{Kind: graph.InitFile}
		}
	}
	if err := wants.Validate(); err != nil {
		t.Fatal(err)
	}
	other := weights.File{Tensors: []weights.Tensor{{Name: "else", Shape: graph.Shape{1}, Data: []float32{1}}}}
	large := weights.File{Tensors: []weights.Tensor{{Name: missing, Shape: graph.Shape{1}, Data: []float32{1}}}}
	for _, test := range []struct {
		graph      *graph.Graph
		path, want string
	}{
		{g, write(other), "none of its 1 tensors is called like a parameter of lenet"},
		{g, write(large), "tensor " + missing + " has 1 elements"},
		{g, "nowhere", "nowhere"},
		{&wants, "", "name that file with --weights"},
		{&wants, write(part), "there is no tensor " + missing},
		{&wants, write(other), "which graph lenet begins with; it has else: save its tensors under the network's "},
		{&wants, write(whole), ""},
	} {
		task := Task{Graph: test.graph, Seed: 1}
		err := task.Begin(test.path)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.path, err, test.want)
		}
	}
}

// A task begins with a state_dict of torch; a tensor in another layout, or a file of another network, is refused.
func TestBeginTorch(t *testing.T) {
	path := filepath.Join("..", "..", "data", "weights", "testdata", "small.pt")
	begun := func(name string, shape graph.Shape) (Task, error) {
		b := graph.NewBuilder("small")
		x := b.Input("x", graph.Anything, graph.Float32, shape)
		p := b.Persistent(name, graph.Parameter, shape, graph.Init{Kind: graph.InitOne})
		b.Output(b.Op("loss", graph.MeanSquare, graph.Attrs{}, p, x)[0])
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		task := Task{Graph: g}
		return task, task.Begin(path)
	}
	task, err := begun("transposed", graph.Shape{3, 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range task.Graph.Storages {
		if s.Name == "transposed" {
			got := make([]float32, 6)
			task.Init(s, got)
			if want := []float32{-1, -0.625, -0.875, -0.5, -0.75, -0.375}; !slices.Equal(got, want) {
				t.Errorf("begins with %v, want %v", got, want)
			}
		}
	}
	for name, want := range map[string]string{
		"whole": "small.pt: tensor whole has shape [2 3], and graph small wants [3 2]: save it in that layout",
		"half": "small.pt: tensor half has 5 elements, and graph small wants 6: it is of another network, or of " +
			"another size",
		"elsewhere": "small.pt: none of its 12 tensors is called like a parameter of small: it is of another network",
	} {
		if _, err := begun(name, graph.Shape{3, 2}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}
