package task

import (
	"path/filepath"
	"strings"
	"testing"

	"tensile/data/npztest"
	"tensile/graph"
)

// arraysFor returns an array of n examples for each input of a graph whose batch is of this size.
func arraysFor(g *graph.Graph, batch, n int) (arrays []npztest.Array) {
	seen := make(map[graph.StorageID]bool)
	for _, x := range g.Tensors {
		s := g.Storages[x.Storage]
		if s.Role != graph.Input || seen[s.ID] {
			continue
		}
		seen[s.ID] = true
		shape := append(graph.Shape{n}, x.Shape[1:]...)
		if rows := x.Shape[0] / batch; rows > 1 { // of each example
			shape = append(graph.Shape{n, rows}, x.Shape[1:]...)
		}
		a := npztest.Array{Name: s.Name, Shape: shape, Data: make([]float32, shape.Elements())}
		if x.DType == graph.Int64 || s.Name == "labels" || s.Name == "next" {
			a.Data = make([]int64, shape.Elements())
		}
		arrays = append(arrays, a)
	}
	return arrays
}

// Networks of ONNX files are fed from arrays that are called as their inputs and labels.
func TestLoadArraysForONNX(t *testing.T) {
	for _, name := range []string{"cnn", "encoder", "lstm"} {
		file := filepath.Join("..", "onnx", "testdata", name+".onnx")
		made, err := Load([]string{file}, Settings{Batch: 3})
		if err != nil {
			t.Fatal(err)
		}
		arrays := arraysFor(made[0].Graph, 3, 7)
		path := filepath.Join(t.TempDir(), "d.npz")
		npztest.Write(t, path, arrays...)
		w, err := Load([]string{file + ":2"}, Settings{Batch: 3, Data: path})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range w {
			if k.Arrays == nil || k.Data != nil {
				t.Errorf("%s learns from %v and %v", k.Name, k.Arrays, k.Data)
			}
		}
		npztest.Write(t, path, arrays[1:]...)
		_, err = Load([]string{file}, Settings{Batch: 3, Data: path})
		if want := "d.npz has no array " + arrays[0].Name + ", which model " + name + " reads"; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", name, err, want)
		}
	}
}

// The sizes of a network that are not given follow from the arrays.
func TestLoadSizesFromArrays(t *testing.T) {
	for _, c := range []struct {
		model string
		s     Settings // that the arrays are made for
	}{
		{"lenet", Settings{Batch: 2, Image: 20, Channels: 2, Classes: 2}},
		{"gpt:1,8,2", Settings{Batch: 2, Sequence: 5}},
		{"gnmt:2,8", Settings{Batch: 2, Sequence: 4}},
	} {
		made, err := Load([]string{c.model}, c.s)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "d.npz")
		npztest.Write(t, path, arraysFor(made[0].Graph, 2, 6)...)
		w, err := Load([]string{c.model}, Settings{Batch: 2, Data: path})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := w[0].Graph.Digest(), made[0].Graph.Digest(); got != want {
			t.Errorf("%s has other sizes than its arrays", c.model)
		}
	}
}

// Sizes do not follow from images whose channels are in the last dimension: networks take squares, so that it shows.
func TestLoadChannelsLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.npz")
	load := func(s Settings, shape ...int) error {
		npztest.Write(t, path, npztest.Array{Name: "input", Shape: shape,
			Data: make([]float32, graph.Shape(shape).Elements())},
			npztest.Array{Name: "labels", Shape: graph.Shape{6}, Data: []uint8{0, 1, 0, 1, 0, 1}})
		s.Batch, s.Data = 2, path
		_, err := Load([]string{"lenet"}, s)
		return err
	}
	for _, channels := range []int{1, 3} {
		err := load(Settings{}, 6, 12, 12, channels)
		if err == nil || !strings.Contains(err.Error(), "d.npz: array input is [examples, height, width, "+
			"channels] = [6 12 12 ") ||
			!strings.HasSuffix(err.Error(), ": save input.transpose(0, 3, 1, 2)") {
			t.Errorf("%d channels: %v", channels, err)
		}
		if err := load(Settings{}, 6, channels, 12, 12); err != nil {
			t.Errorf("%d channels before height: %v", channels, err)
		}
	}
	if err := load(Settings{}, 6, 12, 16, 3); err == nil ||
		!strings.HasSuffix(err.Error(), ": save input.transpose(0, 3, 1, 2)") {
		t.Errorf("a rectangle: %v", err)
	}
	if err := load(Settings{}, 6, 3, 12, 3); err == nil || strings.Contains(err.Error(), "transpose") {
		t.Errorf("a narrow one, channels before height: %v", err)
	}
	if err := load(Settings{Image: 12, Channels: 1}, 6, 12, 12, 1); err != nil { // extents of 1 do not matter
		t.Errorf("sizes that are given: %v", err)
	}
	if err := load(Settings{Image: 12, Channels: 3}, 6, 12, 12, 3); err == nil ||
		!strings.HasSuffix(err.Error(), ": save input.transpose(0, 3, 1, 2)") {
		t.Errorf("sizes that are given, and three channels: %v", err)
	}
	if err := load(Settings{}, 6, 12, 12, 12); err != nil {
		t.Errorf("twelve channels: %v", err)
	}
	if err := load(Settings{}, 6, 12, 12); err != nil {
		t.Errorf("one channel, which the shape leaves out: %v", err)
	}
	if err := load(Settings{}, 6, 3, 8, 8); err == nil || !strings.HasPrefix(err.Error(), "d.npz: ") ||
		!strings.Contains(err.Error(), "image size 8 is too small") {
		t.Errorf("images that are too small: %v", err)
	}
	if err := load(Settings{Image: 8}, 6, 3, 8, 8); err == nil || !strings.HasPrefix(err.Error(), "model lenet: ") {
		t.Errorf("a size that is given and too small: %v", err)
	}
}
