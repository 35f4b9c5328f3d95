package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/controller/local"
	"tensile/data/weights"
	"tensile/device"
	"tensile/device/cpu"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
	"tensile/models"
	"tensile/models/onnx"
	"tensile/observe/report"
)

// exported copies networks that PyTorch exported into an empty folder, which it returns.
func exported(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		text := read(t, filepath.Join("..", "..", "models", "onnx", "testdata", name+".onnx"))
		if err := os.WriteFile(filepath.Join(dir, name+".onnx"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Networks from ONNX files train within a budget to the bits of a run without one, beside a built-in network and beside
// each other.
func TestONNXCompare(t *testing.T) {
	long.Only(t)
	t.Parallel()
	dir := exported(t, "cnn", "encoder17", "lstm", "unet", "gates", "pieces")
	for _, names := range [][]string{{"cnn.onnx", "lenet"}, {"encoder17.onnx", "lstm.onnx"},
		{"unet.onnx", "gates.onnx"},
		{"pieces.onnx", "cnn.onnx"}} {
		var r report.Training
		document(t, tensile(t, dir, append([]string{"run", "--batch", "8", "--iterations", "4", "--budget", "60%",
			"--compare", "--json"}, names...)...), &r)
		if len(r.Jobs) != len(names) {
			t.Fatalf("%q: jobs %+v", names, r.Jobs)
		}
		for i, j := range r.Jobs {
			if j.BitIdentical == nil || !*j.BitIdentical {
				t.Errorf("%s: bit_identical is not true", names[i])
			}
			if j.Job != strings.TrimSuffix(names[i], ".onnx") || j.Iterations != 4 || j.LossFirst == nil ||
				*j.LossFirst == *j.LossLast {
				t.Errorf("%s: job %s, %d iterations, losses %v to %v", names[i], j.Job, j.Iterations, j.LossFirst,
					j.LossLast)
			}
		}
		if r.Total.SlotPeak > r.Budget {
			t.Errorf("%q: a slot peak of %d is above the budget of %d", names, r.Total.SlotPeak, r.Budget)
		}
	}
}

// What is saved as ONNX is the model that was read, with the weights that the same run saves as safetensors, and begins
// another run with these. PyTorch's own modules take those by the names of their state_dict, and have the same outputs.
func TestONNXSave(t *testing.T) {
	t.Parallel()
	all := []struct{ name, class string }{{"cnn", "CNN"}, {"encoder17", "Encoder"}, {"lstm", "LSTM"}}
	for _, c := range long.Or(all[:1], all) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := exported(t, c.name)
			for _, to := range []string{"out.onnx", "out.safetensors"} {
				tensile(t, dir, "run", c.name+".onnx", "--batch", "4", "--iterations", "3", "--save", to)
			}
			before, err := onnx.Read(nil, filepath.Join(dir, c.name+".onnx"))
			if err != nil {
				t.Fatal(err)
			}
			after, err := onnx.Read(nil, filepath.Join(dir, "out.onnx"))
			if err != nil {
				t.Fatal(err)
			}
			file, err := weights.Read(filepath.Join(dir, "out.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			trained := make(map[string][]float32)
			for _, x := range file.Tensors {
				trained[x.Name] = x.Data
			}
			g, contents, err := onnx.Job(after, c.name, onnx.Training{Batch: 3})
			if err != nil {
				t.Fatal(err)
			}
			_, first, err := onnx.Job(before, c.name, onnx.Training{Batch: 3})
			if err != nil {
				t.Fatal(err)
			}
			moved := 0
			for name, content := range contents {
				if want, ok := trained[name]; ok && !slices.Equal(content, want) {
					t.Errorf("%s differs between the two files that were saved", name)
				}
				if _, ok := trained[name]; ok && !slices.Equal(content, first[name]) {
					moved++
				}
			}
			if moved < 4 {
				t.Errorf("%d tensors of %d are trained", moved, len(contents))
			}
			for name, content := range trained { // the same model but for what was trained
				after.Replace(name, content)
				before.Replace(name, content)
			}
			if diff := cmp.Diff(before.Encode(), after.Encode()); diff != "" {
				t.Errorf("other parts of the model have changed (-read +saved):\n%s", diff)
			}
			tensile(t, dir, "run", "out.onnx", "--batch", "4", "--iterations", "1", "--save", "on.onnx")

			x, got := evaluate(t, g, contents)
			want := evaluateTorch(t, c.class, filepath.Join(dir, "out.safetensors"), x)
			if len(got) != len(want) {
				t.Fatalf("outputs %v, PyTorch has %v", got, want)
			}
			for i, w := range want {
				if d := got[i] - w; d > 1e-4 || d < -1e-4 {
					t.Errorf("output %d is %v, PyTorch has %v", i, got[i], w)
				}
			}
		})
	}
}

// evaluate runs the evaluation of a training graph once on the cpu device. It returns a made-up input and the scores.
func evaluate(t *testing.T, g *graph.Graph, contents map[string][]float32) (x, scores []float32) {
	t.Helper()
	e, err := models.Evaluation(g)
	if err != nil {
		t.Fatal(err)
	}
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	types := e.DTypes()
	err = local.Execute(t.Context(), d, local.Execution{Graph: e, Iterations: 1,
		Init: func(s graph.Storage, to []float32) {
			if copy(to, contents[s.Name]) == 0 {
				weights.Initialise(s, 1, to)
			}
		},
		Input: func(_ int, s graph.StorageID, to device.Memory) {
			x = make([]float32, e.Storages[s].Bytes/graph.ElementBytes)
			if types[s] == graph.Int64 {
				x = x[:len(x)/2]
			}
			for i := range x {
				x[i] = float32(i * 5 % 7) // ids of a table of seven rows, too
				if types[s] == graph.Int64 {
					to.Int64()[i] = int64(x[i])
				} else {
					x[i] = x[i]/8 - 0.4
					to.Float32()[i] = x[i]
				}
			}
		},
		Output: func(_ int, _ graph.StorageID, from []float32) { scores = slices.Clone(from) }})
	if err != nil {
		t.Fatal(err)
	}
	return x, scores
}

// evaluateTorch returns the outputs of a class of scripts/onnx-cases.py with the weights in a safetensors file, by the
// names of its state_dict.
func evaluateTorch(t *testing.T, class, path string, x []float32) (scores []float32) {
	t.Helper()
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(needs.Torch(t), filepath.Join("testdata", "torch", "evaluate.py"), class, path)
	c.Stdin = strings.NewReader(string(text))
	c.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1")
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	if err := json.Unmarshal(out, &scores); err != nil {
		t.Fatal(err)
	}
	return scores
}

// What is wrong with an ONNX file is one line on stderr that names the file and the place, for show, run and plan
// alike, and nothing is left behind.
func TestONNXErrors(t *testing.T) {
	t.Parallel()
	text := read(t, filepath.Join("..", "..", "models", "onnx", "testdata", "cnn.onnx"))
	for _, c := range []struct {
		name   string
		change func(m *onnx.Model)
		want   string
	}{
		{"unsupported", func(m *onnx.Model) { m.Graph.Nodes[0].Op = "TopK" },
			`operators that are not supported: TopK in node "`},
		{"domain", func(m *onnx.Model) { m.Graph.Nodes[0].Domain = "com.example" },
			`operators that are not supported: com.example.Conv in node `},
		{"form", func(m *onnx.Model) {
			m.Graph.Nodes[0].Attributes = append(m.Graph.Nodes[0].Attributes[:0:0],
				onnx.Attribute{Name: "kernel_shape", Type: onnx.AttributeInts, Ints: []int64{0, -3}})
		}, `not supported: node "`},
		{"cycle", func(m *onnx.Model) { m.Graph.Nodes[0].Inputs[0] = m.Graph.Outputs[0].Name }, "waits for itself"},
		{"missing", func(m *onnx.Model) { m.Graph.Initializers = m.Graph.Initializers[1:] }, "which nothing makes"},
		{"huge", func(m *onnx.Model) { m.Graph.Initializers[0].Dims = []int64{1 << 39, 1 << 39} }, "elements"},
		{"opset", func(m *onnx.Model) { m.Opsets[0].Version = 99 }, "operator set 99"},
		{"untrained", func(m *onnx.Model) {
			m.Graph.Nodes = m.Graph.Nodes[:0]
			m.Graph.Nodes = append(m.Graph.Nodes, onnx.Node{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}})
			m.Graph.Initializers = nil
		}, `there is nothing to train: output "y" depends on no initializer`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := onnx.Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			c.change(m)
			dir := t.TempDir()
			name := c.name + ".onnx"
			if err := os.WriteFile(filepath.Join(dir, name), m.Encode(), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"onnx", "show"}, {"run", "lenet"}, {"plan"}} {
				line := fails(t, dir, append(args, name)...)
				if !strings.HasPrefix(line, "tensile: "+name+": ") || !strings.Contains(line, c.want) {
					t.Errorf("%q says %s, want one with %s", args, line, c.want)
				}
			}
			if got := files(t, dir); !slices.Equal(got, []string{name}) {
				t.Errorf("files %q are left", got)
			}
		})
	}
}

// fails runs a command line that is to fail with one line on stderr, which it returns, and with nothing on stdout.
func fails(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("tensile", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GORACE="+noPause)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	line, ended := strings.CutSuffix(stderr.String(), "\n")
	if c.ProcessState.ExitCode() != 1 || len(out) > 0 || !ended || strings.Contains(line, "\n") {
		t.Fatalf("tensile %q: %v, want exit status 1 and one line; stdout: %s, stderr: %s", args, err, out, &stderr)
	}
	return line
}
