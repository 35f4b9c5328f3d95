package local

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"tensile/data"
	"tensile/graph"
	"tensile/models/task"
)

// writeMNIST makes a training set of one black and one white image of two pixels, and a test set of images all of this
// value with these labels.
func writeMNIST(t *testing.T, value byte, labels []byte) *data.Dataset {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, magic uint32, content []byte, extents ...int) {
		file := binary.BigEndian.AppendUint32(nil, magic)
		for _, e := range extents {
			file = binary.BigEndian.AppendUint32(file, uint32(e))
		}
		if err := os.WriteFile(filepath.Join(dir, name), append(file, content...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("train-images-idx3-ubyte", 0x803, []byte{0, 0, 255, 255}, 2, 1, 2)
	write("train-labels-idx1-ubyte", 0x801, []byte{0, 1}, 2)
	pixels := make([]byte, 2*len(labels))
	for i := range pixels {
		pixels[i] = value
	}
	write("t10k-images-idx3-ubyte", 0x803, pixels, len(labels), 1, 2)
	write("t10k-labels-idx1-ubyte", 0x801, labels, len(labels))
	d, err := data.Open(nil, dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// normalised is a network that names class 1 where the first pixel, normalised, is positive, and class 0 elsewhere.
// Nearly all that it knows is dropped out while it trains.
func normalised(t *testing.T) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("normalised")
	const batch = 4
	x := b.Input("input", graph.Images, graph.Float32, graph.Shape{batch, 1, 1, 2})
	labels := b.Input("labels", graph.Labels, graph.Float32, graph.Shape{batch})
	one, zero := graph.Init{Kind: graph.InitOne}, graph.Init{Kind: graph.InitZero}
	vector := func(name string, role graph.Role, init graph.Init, shape ...int) graph.TensorID {
		return b.Persistent(name, role, shape, init)
	}
	stats := b.Op("stats", graph.BatchNormStats, graph.Attrs{}, x)
	y := b.Op("norm", graph.BatchNorm, graph.Attrs{Epsilon: 1e-5}, x, stats[0], stats[1],
		vector("gamma", graph.Parameter, one, 1), vector("beta", graph.Parameter, zero, 1))[0]
	b.Op("running", graph.BatchNormUpdate, graph.Attrs{Momentum: 0.1, Length: 2 * batch}, stats[0], stats[1],
		vector("mean", graph.State, zero, 1), vector("variance", graph.State, one, 1))
	y = b.Op("dropout", graph.Dropout, graph.Attrs{Rate: 0.99, Key: 1}, y)[0]
	y = b.Op("fc", graph.Linear, graph.Attrs{}, b.View("rows", y, 0, graph.Shape{batch, 2}),
		vector("w", graph.Parameter, zero, 3, 2))[0]
	b.Output(b.Op("loss", graph.SoftmaxXent, graph.Attrs{}, y, labels)[0])
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A network is tried on all test images, the last batch not being full, with running statistics and without dropout.
// The images are normalised as those that it learned from: all white ones are at +1 then, which statistics of their own
// would make zero.
func TestEvaluation(t *testing.T) {
	learned := map[string][]float32{"gamma": {1}, "beta": {0}, "mean": {0}, "variance": {1}, "w": {0, 0, 1, 0, -9, 0}}
	for _, test := range []struct {
		value   byte
		labels  []byte
		correct int
	}{
		{255, []byte{1, 1, 0, 1, 2, 1, 1}, 5},
		{0, []byte{0, 0, 2, 2, 1, 2}, 3},
		{0, []byte{0}, 0},
	} {
		train := writeMNIST(t, test.value, test.labels)
		set, err := train.Test()
		if err != nil {
			t.Fatal(err)
		}
		e, err := NewEvaluation(task.Task{Name: "n", Model: "n", Graph: normalised(t), Seed: 1, Data: train}, set)
		if err != nil {
			t.Fatal(err)
		}
		correct, err := e.Run(t.Context(), computing(t), "tensile", 0, learned)
		if err != nil || correct != test.correct || e.Images() != len(test.labels) {
			t.Errorf("images of %d: %d of %d are right, %v; want %d of %d", test.value, correct, e.Images(), err,
				test.correct, len(test.labels))
		}
	}
}

// Weights of another network are refused; scores without order are no class.
func TestEvaluationRefuses(t *testing.T) {
	train := writeMNIST(t, 255, []byte{1})
	set, err := train.Test()
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEvaluation(task.Task{Name: "n", Graph: normalised(t), Data: train}, set)
	if err != nil {
		t.Fatal(err)
	}
	learned := map[string][]float32{"gamma": {1}, "beta": {0}, "mean": {0}, "variance": {1}, "w": {0, 0}}
	if _, err := e.Run(t.Context(), computing(t), "tensile", 0, learned); err == nil ||
		err.Error() != "evaluate n: w has 2 elements, want 6" {
		t.Errorf("error %v", err)
	}
	nan := float32(0)
	nan /= nan
	if got := argmax([]float32{1, nan, 2}); got != -1 {
		t.Errorf("the highest of scores with a NaN is number %d", got)
	}
}
