package task

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tensile/data"
	"tensile/data/npztest"
	"tensile/device"
	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
	"tensile/models"
)

// pictures are ten examples for a lenet of 12 pixels: each image is of its label's value.
func pictures() (images, labels npztest.Array) {
	var pixels []float32
	var classes []uint8
	for i := range 10 {
		pixels = append(pixels, slices.Repeat([]float32{float32(i)}, 144)...)
		classes = append(classes, uint8(i))
	}
	return npztest.Array{Name: "input", Shape: graph.Shape{10, 1, 12, 12}, Data: pixels},
		npztest.Array{Name: "labels", Shape: graph.Shape{10}, Data: classes}
}

// inputsOf returns the inputs of a graph by name, and of each its bytes.
func inputsOf(g *graph.Graph) map[string]graph.Storage {
	inputs := make(map[string]graph.Storage)
	for _, s := range g.Storages {
		if s.Role == graph.Input {
			inputs[s.Name] = s
		}
	}
	return inputs
}

// A network is fed from the arrays of a file: images and labels of one example go together, each comes once an epoch,
// and an iteration asked for again is the same.
func TestFeedArrays(t *testing.T) {
	g, err := models.Build("lenet", models.Config{Batch: 4, Image: 12})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "d.npz")
	images, labels := pictures()
	npztest.Write(t, path, images, labels, npztest.Array{Name: "extra", Shape: graph.Shape{1}, Data: []int64{7}})
	task, err := Open(nil, g, 3, path)
	if err != nil {
		t.Fatal(err)
	}
	inputs := inputsOf(g)
	feed := task.Feeder(func(err error) { t.Error(err) })
	batch := func(iteration int) []float32 {
		pixels, classes := device.NewMemory(inputs["input"].Bytes), device.NewMemory(inputs["labels"].Bytes)
		feed(iteration, inputs["input"].ID, pixels)
		feed(iteration, inputs["labels"].ID, classes)
		for i, class := range classes.Float32() {
			if image := pixels.Float32()[144*i:][:144]; !slices.Equal(image, slices.Repeat([]float32{class}, 144)) {
				t.Errorf("iteration %d: an image of class %v is %v...", iteration, class, image[:3])
			}
		}
		return classes.Float32()
	}
	var all []float32
	for i := range 5 { // two epochs
		all = append(all, batch(i)...)
	}
	if !slices.Equal(batch(1), all[4:8]) {
		t.Error("an iteration is another one when it is asked for again")
	}
	for _, epoch := range [][]float32{all[:10], all[10:]} {
		sorted := slices.Sorted(slices.Values(epoch))
		if !slices.Equal(sorted, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
			t.Errorf("an epoch has %v", epoch)
		}
	}
	other, err := Open(nil, g, 4, path)
	if err != nil {
		t.Fatal(err)
	}
	feed = other.Feeder(func(err error) { t.Error(err) })
	if slices.Equal(slices.Concat(batch(0), batch(1)), all[:8]) {
		t.Error("another seed gives the same order")
	}
}

// Labels of one class are told in a line.
func TestOneClass(t *testing.T) {
	g, err := models.Build("lenet", models.Config{Batch: 4, Image: 12})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "d.npz")
	images, labels := pictures()
	for _, c := range []struct {
		labels any
		want   string
	}{
		{labels.Data, ""}, {slices.Repeat([]uint8{3}, 10), "d.npz: all numbers in labels are 3: with one class there " +
			"is nothing to tell apart"},
	} {
		labels.Data = c.labels
		npztest.Write(t, path, images, labels)
		a, err := data.OpenArrays(nil, path, 1)
		if err != nil {
			t.Fatal(err)
		}
		if line, err := OneClass(g, a); err != nil || line != c.want {
			t.Errorf("%v: %q, %v, want %q", c.labels, line, err, c.want)
		}
	}
}

// Sequences are fed as the network counts them, and hidden tokens that are negative as what the loss does not count.
func TestFeedSequences(t *testing.T) {
	g, err := models.Build("bert:1,8,2", models.Config{Batch: 2, Sequence: 3, Vocabulary: 20})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "d.npz")
	all := graph.Shape{2, 3}
	npztest.Write(t, path,
		npztest.Array{Name: "tokens", Shape: all, Data: []int64{1, 2, 3, 11, 12, 13}},
		npztest.Array{Name: "types", Shape: all, Data: []uint8{0, 0, 1, 0, 1, 1}},
		npztest.Array{Name: "hidden", Shape: all, Data: []int64{-100, 2, -1, -100, -100, 19}},
		npztest.Array{Name: "follows", Shape: graph.Shape{2, 1}, Data: []int64{0, 1}})
	task, err := Open(nil, g, 3, path)
	if err != nil {
		t.Fatal(err)
	}
	inputs := inputsOf(g)
	feed := task.Feeder(func(err error) { t.Error(err) })
	follows, tokens := device.NewMemory(8), device.NewMemory(48)
	types, hidden := device.NewMemory(48), device.NewMemory(24)
	for name, to := range map[string]device.Memory{"follows": follows, "tokens": tokens, "types": types,
		"hidden": hidden} {
		feed(0, inputs[name].ID, to)
	}
	for i, second := range follows.Float32() {
		wantTokens, wantTypes, wantHidden := []int64{1, 2, 3}, []int64{0, 0, 1}, []float32{-1, 2, -1}
		if second == 1 {
			wantTokens, wantTypes, wantHidden = []int64{11, 12, 13}, []int64{0, 1, 1}, []float32{-1, -1, 19}
		}
		if gotTokens, gotTypes, gotHidden := tokens.Int64()[3*i:][:3], types.Int64()[3*i:][:3],
			hidden.Float32()[3*i:][:3]; !slices.Equal(gotTokens, wantTokens) || !slices.Equal(gotTypes, wantTypes) ||
			!slices.Equal(gotHidden, wantHidden) {
			t.Errorf("example %v: tokens %v, types %v, hidden %v; want %v, %v, %v", second, gotTokens, gotTypes,
				gotHidden,
				wantTokens, wantTypes, wantHidden)
		}
	}
}

func TestArraysThatDoNotFit(t *testing.T) {
	lenet, err := models.Build("lenet", models.Config{Batch: 4, Image: 12})
	if err != nil {
		t.Fatal(err)
	}
	gpt, err := models.Build("gpt:1,8,2", models.Config{Batch: 2, Sequence: 3, Vocabulary: 20})
	if err != nil {
		t.Fatal(err)
	}
	colour, err := models.Build("lenet", models.Config{Batch: 4, Image: 12, Channels: 3})
	if err != nil {
		t.Fatal(err)
	}
	images, labels := pictures()
	shaped := func(a npztest.Array, shape ...int) npztest.Array {
		return npztest.Array{Name: a.Name, Shape: shape, Data: a.Data}
	}
	holding := func(a npztest.Array, content any) npztest.Array {
		return npztest.Array{Name: a.Name, Shape: a.Shape, Data: content}
	}
	tokens := func(name string, values ...int64) npztest.Array {
		return npztest.Array{Name: name, Shape: graph.Shape{1, 3}, Data: values}
	}
	for what, c := range map[string]struct {
		g      *graph.Graph
		want   string
		arrays []npztest.Array
	}{
		"missing": {lenet, `d.npz has no array input, labels, which model lenet reads; it has x: save the arrays under`,
			[]npztest.Array{{Name: "x", Shape: graph.Shape{1}, Data: []int64{1}}}},
		"number": {lenet, `array labels has shape \[\]: its first dimension counts examples`,
			[]npztest.Array{images, {Name: "labels", Shape: graph.Shape{}, Data: []int64{1}}}},
		"none": {lenet, `array labels has shape \[0\]: its first dimension counts examples`,
			[]npztest.Array{images, {Name: "labels", Shape: graph.Shape{0}, Data: []int64{}}}},
		"bytes": {lenet, `array input holds whole numbers \(U8\), and model lenet wants floats.*astype\('float32'\)`,
			[]npztest.Array{holding(images, make([]uint8, 1440)), labels}},
		"float labels": {lenet, `array labels holds floats \(F32\), .*astype\('int64'\) in NumPy$`,
			[]npztest.Array{images, holding(labels, make([]float32, 10))}},
		"fewer": {lenet, `array labels has 5 examples, and input has 10: give`,
			[]npztest.Array{images, {Name: "labels", Shape: graph.Shape{5}, Data: make([]uint8, 5)}}},
		"channels last": {colour, `array input is \[examples, height, width, channels\] = \[10 12 12 3\], and ` +
			`networks read .*: save input.transpose\(0, 3, 1, 2\)`, []npztest.Array{{Name: "input",
			Shape: graph.Shape{10, 12, 12, 3}, Data: make([]float32, 4320)}, labels}},
		"last": {lenet, `array input has examples of shape \[12 12 1\], and model lenet takes \[4 1 12 12\]`, nil},
		"size": {lenet, `array input has examples of shape \[1 9 16\], and model lenet takes \[4 1 12 12\] at once`,
			[]npztest.Array{shaped(images, 10, 1, 9, 16), labels}},
		"half": {lenet, `array input has examples of shape \[72\], and model lenet takes`,
			[]npztest.Array{shaped(images, 20, 72), labels}},
		"two labels": {lenet, `array labels has examples of shape \[2\], and model lenet takes \[4\] at once: ` +
			`give it examples of that shape, and rows with a one for the class by labels.argmax\(-1\)$`,
			[]npztest.Array{images, {Name: "labels", Shape: graph.Shape{10, 2}, Data: make([]uint8, 20)}}},
		"rows of floats": {lenet, `array labels holds floats \(F32\), .*astype\('int64'\) in NumPy, and rows with a ` +
			`one for the class by labels.argmax\(-1\)$`, []npztest.Array{images, {Name: "labels",
			Shape: graph.Shape{10, 10}, Data: make([]float32, 100)}}},
		"class": {lenet, `array labels holds numbers from 0 to 10, and model lenet has 10 classes or tokens there`,
			[]npztest.Array{images, holding(labels, []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 10})}},
		"token": {gpt, `array tokens holds numbers from 0 to 20, and model gpt:1,8,2 has 20 classes or tokens`,
			[]npztest.Array{tokens("tokens", 0, 20, 3), tokens("next", 0, 1, 2)}},
		"no label": {lenet, `d.npz: all numbers in labels are negative, which no loss counts: nothing would be learned`,
			[]npztest.Array{images, {Name: "labels", Shape: graph.Shape{10}, Data: []int64{-1, -2, -1, -1, -100, -1, -1,
				-1, -1, -1}}}},
		"negative token": {gpt, `array tokens holds numbers from -1 to 3, and model gpt:1,8,2 has 20`,
			[]npztest.Array{tokens("tokens", 0, -1, 3), tokens("next", -1, 1, 2)}},
	} {
		path := filepath.Join(t.TempDir(), "d.npz")
		if c.arrays == nil { // images of one channel may have it in any place
			npztest.Write(t, path, shaped(images, 10, 12, 12, 1), labels)
			if _, err := Open(nil, c.g, 1, path); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		npztest.Write(t, path, c.arrays...)
		_, err := Open(nil, c.g, 1, path)
		if err == nil || strings.Contains(err.Error(), "\n") || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%s: %v, want an error with %s", what, err, c.want)
		}
	}
}

// Where the file of a task that trains is damaged, zeros are fed and an error is told, of what cannot be read and of
// labels that there are not.
func TestArraysThatAreDamagedLater(t *testing.T) {
	g, err := models.Build("lenet", models.Config{Batch: 10, Image: 12})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "d.npz")
	images, labels := pictures()
	npztest.Write(t, path, labels, images)
	a, err := data.OpenArrays(nil, path, 1)
	if err == nil {
		err = FitArrays(g, a)
	}
	if err != nil {
		t.Fatal(err)
	}
	var told error
	feed := Task{Graph: g, Arrays: a}.Feeder(func(err error) { told = err })
	try := func(input, want string) {
		t.Helper()
		s := inputsOf(g)[input]
		to := device.NewMemory(s.Bytes)
		to.Float32()[1] = 5
		feed(0, s.ID, to)
		if told == nil || !strings.Contains(told.Error(), want) || to.Float32()[1] != 0 {
			t.Errorf("%v, want an error with %q", told, want)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(text), string(labels.Data.([]uint8)))
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte{77}, int64(at)); err != nil {
		t.Fatal(err)
	}
	try("labels", "d.npz: array labels has 77 among numbers that must be below 10: the file was changed")
	if err := file.Truncate(int64(at)); err != nil {
		t.Fatal(err)
	}
	try("input", `d.npz: array "input" ends after`)
}

// Whole numbers feed an input of floats that counts, as they are; without data it gets zeros and ones, no row of
// zeros.
func TestFeedCounts(t *testing.T) {
	b := graph.NewBuilder("masked")
	mask := b.Input("mask", graph.Counts, graph.Float32, graph.Shape{4, 3})
	targets := b.Input("targets", graph.Anything, graph.Float32, graph.Shape{4, 3})
	b.Output(b.Op("loss", graph.MeanSquare, graph.Attrs{}, mask, targets)[0])
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "d.npz")
	npztest.Write(t, path,
		npztest.Array{Name: "mask", Shape: graph.Shape{4, 3}, Data: slices.Repeat([]int64{1, 0, 200}, 4)},
		npztest.Array{Name: "targets", Shape: graph.Shape{4, 3}, Data: make([]float32, 12)})
	fed, err := Open(nil, g, 3, path)
	if err != nil {
		t.Fatal(err)
	}
	to := device.NewMemory(48)
	fed.Feeder(func(err error) { t.Error(err) })(0, inputsOf(g)["mask"].ID, to)
	if got := to.Float32(); !slices.Equal(got, slices.Repeat([]float32{1, 0, 200}, 4)) {
		t.Errorf("the mask of the file is %v", got)
	}
	made, err := Open(nil, g, 3, "")
	if err != nil {
		t.Fatal(err)
	}
	made.Feeder(func(err error) { t.Error(err) })(0, inputsOf(g)["mask"].ID, to)
	for i, v := range to.Float32() {
		if v != 0 && v != 1 || i%3 == 0 && v != 1 {
			t.Errorf("the mask that is made up is %v", to.Float32())
			break
		}
	}
}
