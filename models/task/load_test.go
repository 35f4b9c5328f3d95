package task

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models"
)

func TestLoadNames(t *testing.T) {
	dir := t.TempDir()
	named := func(file, name string) string {
		g, err := models.Build("lenet", models.Config{Batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		g.Name = name
		return write(t, filepath.Join(dir, file), g)
	}
	lenet, taken := named("a.json", "lenet"), named("b.json", "mlp.1")
	for _, test := range []struct {
		models []string
		names  string
	}{
		{[]string{"mlp"}, "mlp"},
		{[]string{"mlp", "lenet"}, "mlp lenet"},
		{[]string{"mlp:1"}, "mlp"},
		{[]string{"mlp:3"}, "mlp.1 mlp.2 mlp.3"},
		{[]string{"mlp", "lenet", "mlp"}, "mlp.1 lenet mlp.2"},
		{[]string{"lenet:2", "mlp", "lenet"}, "lenet.1 lenet.2 mlp lenet.3"},
		{[]string{"resnet:1,1,1,1"}, "resnet:1,1,1,1"},
		{[]string{"resnet:1,1,1,1:2"}, "resnet:1,1,1,1.1 resnet:1,1,1,1.2"},
		{[]string{lenet, "lenet"}, "lenet.1 lenet.2"},
		{[]string{lenet + ":2"}, "lenet.1 lenet.2"},
		{[]string{"mlp:2", taken}, "mlp.2 mlp.3 mlp.1"}, // a graph that is called like a copy keeps its name
	} {
		w, err := Load(test.models, Settings{Seed: 5, Batch: 1, Image: 40})
		if err != nil {
			t.Errorf("Load(%q): %v", test.models, err)
			continue
		}
		var names []string
		for i, task := range w {
			names = append(names, task.Name)
			if task.Seed != 5+uint64(i) {
				t.Errorf("Load(%q): job %d has seed %d, want %d", test.models, i, task.Seed, 5+i)
			}
			if task.Model != task.Graph.Name || task.Data == nil {
				t.Errorf("Load(%q): job %d is of model %s, its graph %s, its data %v", test.models, i, task.Model,
					task.Graph.Name, task.Data)
			}
		}
		if got := strings.Join(names, " "); got != test.names {
			t.Errorf("Load(%q) makes jobs %s, want %s", test.models, got, test.names)
		}
	}
}

func TestLoadSettings(t *testing.T) {
	w, err := Load([]string{"lenet"}, Settings{Image: 16, Channels: 2, Classes: 7, Batch: 3,
		Optimizer: autodiff.SGD{LearningRate: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	want, err := models.Build("lenet", models.Config{Image: 16, Channels: 2, Classes: 7, Batch: 3,
		Optimizer: autodiff.SGD{LearningRate: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, w[0].Graph); diff != "" {
		t.Errorf("graph (-want +got):\n%s", diff)
	}
	// The synthetic set has the graph's sizes.
	channels, height, width := w[0].Data.Shape()
	if got := [4]int{channels, height, width, w[0].Data.Classes()}; got != [4]int{2, 16, 16, 7} {
		t.Errorf("synthetic set of %v", got)
	}
}

// In a workload of both sorts, networks that read images and ones that read sequences have each their settings.
func TestLoadBothSorts(t *testing.T) {
	w, err := Load([]string{"lenet", "gpt:1,8,2"}, Settings{Image: 16, Classes: 3, Sequence: 5, Vocabulary: 9,
		Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []graph.Shape{{2, 1, 16, 16}, {2, 5}} {
		if got := w[i].Graph.Tensors[0].Shape; !cmp.Equal(got, want) {
			t.Errorf("job %s reads %v, want %v", w[i].Name, got, want)
		}
	}
	if w[0].Data == nil || w[1].Data != nil {
		t.Error("lenet has no images, or gpt has some")
	}
}

func TestLoadData(t *testing.T) {
	dir := t.TempDir()
	mnist(t, dir, 20, 20)
	w, err := Load([]string{"lenet:2", "mlp"}, Settings{Batch: 2, Data: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range w {
		if task.Data != w[0].Data || task.Data.Examples() != 30 {
			t.Errorf("job %s does not learn from the set of 30 in the folder", task.Name)
		}
		if images := task.Graph.Tensors[0].Shape; !cmp.Equal(images, graph.Shape{2, 1, 20, 20}) ||
			task.Data.Classes() != 10 {
			t.Errorf("job %s takes images %v and is shown %d classes", task.Name, images, task.Data.Classes())
		}
	}
	if _, err := Load([]string{"lenet"}, Settings{Data: dir, Image: 20, Channels: 1, Classes: 12}); err != nil {
		t.Errorf("settings that agree with the data: %v", err)
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	square, oblong := filepath.Join(dir, "square"), filepath.Join(dir, "oblong")
	mnist(t, square, 20, 20)
	mnist(t, oblong, 20, 28)
	tiny := write(t, filepath.Join(dir, "tiny.json"), devicetest.Tiny())
	bare := write(t, filepath.Join(dir, "bare.json"), &graph.Graph{Name: "bare"})
	nameless := devicetest.Tiny()
	nameless.Name = "line\nbreak"
	strange := write(t, filepath.Join(dir, "strange.json"), nameless)
	five, err := models.Build("lenet", models.Config{Image: 20, Classes: 5})
	if err != nil {
		t.Fatal(err)
	}
	small := write(t, filepath.Join(dir, "five.json"), five)

	for _, test := range []struct {
		model string
		s     Settings
		want  string
	}{
		{"resnet5", Settings{}, `unknown model "resnet5": did you mean resnet50?`},
		{"mlp:0", Settings{}, `model "mlp:0": the number of copies after the colon must be 1 to 1000`},
		{"mlp:1001", Settings{}, `must be 1 to 1000`},
		{"mlp:x", Settings{}, `must be 1 to 1000`},
		{"vgg16", Settings{Image: 8}, "model vgg16: image size 8 is too small"},
		{filepath.Join(dir, "none.json"), Settings{},
			"none.json does not exist: make one with tensile models graph MODEL"},
		{bare, Settings{}, "there are no ops"},
		{strange, Settings{}, `strange.json: the graph is called "line\nbreak"`},
		{"lenet", Settings{Data: filepath.Join(dir, "none")}, "does not exist: name a folder"},
		{"lenet", Settings{Data: square, Image: 28}, "MNIST-format images are 20x20, not 28x28"},
		{"lenet", Settings{Data: square, Channels: 3}, "MNIST-format images have 1 channels, not 3"},
		{"lenet", Settings{Data: square, Classes: 9}, "MNIST-format has 10 classes"},
		{"lenet", Settings{Data: oblong},
			"model lenet takes images of 1x20x20 (channels, height, width), those of MNIST-format are 1x20x28"},
		{"gpt2", Settings{Data: square}, "model gpt2 reads sequences and cannot learn from the files in "},
		{"gpt2", Settings{Image: 8}, "model gpt2: it reads sequences, not images: leave --image out"},
		{"lenet", Settings{Sequence: 8}, "model lenet: it reads images, not sequences: leave --sequence out"},
		{tiny, Settings{Data: square}, "model tiny has no inputs that hold images and labels"},
		{small, Settings{Data: square}, "model lenet has 5 classes, MNIST-format has 10"},
	} {
		w, err := Load([]string{test.model}, test.s)
		if w != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Load(%q, %+v) = %d jobs, %v; want an error with %s", test.model, test.s, len(w), err, test.want)
		}
	}
}

// A size that no model heeds, as all are files, is refused.
func TestHeeded(t *testing.T) {
	for _, test := range []struct {
		names string
		s     Settings
		want  string
	}{
		{"a.json", Settings{Image: 20}, "a.json has its sizes in the file: leave --image out"},
		{"a.json:2", Settings{Batch: 4}, "a.json:2 has its sizes in the file: leave --batch out"},
		{"a.onnx b.json", Settings{Batch: 4, Image: 8}, "a.onnx has its sizes in the file: leave --image out; what " +
			"the file leaves open is given by --batch and --sequence"},
		{"a.onnx b.json", Settings{Batch: 4, Sequence: 8}, ""},
		{"a.onnx lenet", Settings{Image: 20}, ""},
		{"lenet a.json", Settings{Batch: 4}, ""},
		{"a.json", Settings{}, ""},
	} {
		err := test.s.Heeded(strings.Fields(test.names))
		if err == nil && test.want != "" || err != nil && err.Error() != test.want {
			t.Errorf("%s with %+v: %v, want %q", test.names, test.s, err, test.want)
		}
	}
}

// write stores a graph as JSON and returns the path.
func write(t *testing.T, path string, g *graph.Graph) string {
	t.Helper()
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// mnist makes a set of 30 images in MNIST's format.
func mnist(t *testing.T, dir string, rows, columns uint32) {
	t.Helper()
	const n = 30
	var images, labels []byte
	for _, v := range []uint32{0x803, n, rows, columns} {
		images = binary.BigEndian.AppendUint32(images, v)
	}
	for _, v := range []uint32{0x801, n} {
		labels = binary.BigEndian.AppendUint32(labels, v)
	}
	for i := range n * rows * columns {
		images = append(images, byte(i*i))
	}
	for i := range n {
		labels = append(labels, byte(i%10))
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"train-images-idx3-ubyte": images, "train-labels-idx1-ubyte": labels} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
