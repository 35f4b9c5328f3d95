//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/data/npztest"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/onnx"
	"tensile/wire"
)

// A controller trains an ONNX file beside another job within a budget that both must be planned for. What its executor
// saves has the bytes of what a run without a budget saves.
func TestClusterONNX(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 80*graph.KiB)
	dir := exported(t, "cnn")
	file := filepath.Join(dir, "cnn.onnx")
	common := []string{"--batch", "8", "--iterations", "9"} // too few for a line on a bias before a normalization
	submitted := filepath.Join(dir, "submitted.onnx")
	c.tell(append([]string{"submit", file, "--name", "beside"}, "--batch", "8", "--iterations", forever)...)
	c.in(wire.JobRunning, "beside")
	c.tell(append([]string{"submit", file, "--save", submitted, "--wait"}, common...)...)
	job := c.jobs()["cnn"]
	if job.State != wire.JobFinished || job.Result == nil || job.Result.Saved != submitted {
		t.Fatalf("the job is %s, its result %+v", job.State, job.Result)
	}
	other := filepath.Join(dir, "other.onnx")
	begins := append([]string{"--weights", submitted, "--optimizer", "sgd"}, common...)
	c.tell(append([]string{"submit", file, "--name", "other", "--save", other, "--wait"}, begins...)...)
	c.tell("stop", "beside")
	c.in(wire.JobStopped, "beside")
	c.end()

	tensile(t, dir, append([]string{"run", "cnn.onnx", "--save", "alone.onnx"}, common...)...)
	if !bytes.Equal(read(t, submitted), read(t, filepath.Join(dir, "alone.onnx"))) {
		t.Error("the model that the executor saved is another one than that of a run alone")
	}
	tensile(t, dir, append([]string{"run", "cnn.onnx", "--save", "again.onnx"}, begins...)...)
	if !bytes.Equal(read(t, other), read(t, filepath.Join(dir, "again.onnx"))) {
		t.Error("with other weights the executor saved another model than a run")
	}
	want := []string{"again.onnx", "alone.onnx", "cnn.onnx", "other.onnx", "submitted.onnx"}
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// dropping is a folder with a network from an ONNX file that drops elements at random while it trains, and arrays for
// it. It returns their paths.
func dropping(t *testing.T) (file, arrays string) {
	t.Helper()
	m, err := onnx.Decode(read(t, filepath.Join("..", "..", "models", "onnx", "testdata", "cnn.onnx")))
	if err != nil {
		t.Fatal(err)
	}
	changed := false
	for i := range m.Graph.Nodes { // the ratio is a constant of the file, of zero
		n := &m.Graph.Nodes[i]
		if n.Op == "Constant" && n.Outputs[0] == "/drop/Constant_output_0" {
			n.Attributes[0].Tensor.Raw = binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.25))
			changed = true
		}
	}
	if !changed {
		t.Fatal("the network has no ratio of its dropout where it had one")
	}
	dir := t.TempDir()
	file, arrays = filepath.Join(dir, "cnn.onnx"), filepath.Join(dir, "d.npz")
	if err := os.WriteFile(file, m.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	var x []float32
	var labels []int64
	for i := range 20 {
		for _, p := range pixels(2*8*8, i) {
			x = append(x, float32(p)/128-1)
		}
		labels = append(labels, int64(i%3))
	}
	npztest.Write(t, arrays, npztest.Array{Name: "x", Shape: graph.Shape{20, 2, 8, 8}, Data: x},
		npztest.Array{Name: "labels", Shape: graph.Shape{20}, Data: labels})
	return file, arrays
}

// A job from an ONNX file that learns from arrays goes on after its executor is killed, and from its checkpoint
// elsewhere, with the bits of one that nothing disturbed; also in the file that it saves.
func TestONNXAfterAKill(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	file, arrays := dropping(t)
	c.survives([]string{file, "--batch", "6", "--data", arrays}, ".onnx")
	c.end()
}

// A run of an ONNX file that is interrupted saves the model that an undisturbed run of as many iterations saves; one
// that goes on from a checkpoint of it ends with the bytes of an undisturbed run.
func TestONNXInterrupted(t *testing.T) {
	long.Only(t)
	t.Parallel()
	dir := t.TempDir()
	file, arrays := dropping(t)
	job := []string{"run", file, "--batch", "6", "--data", arrays}
	p := start(t, dir, slices.Concat(job, []string{"--iterations", forever, "--checkpoint", "5it", "--budget", "70%",
		"--save", "interrupted.onnx"})...)
	p.line(`^  cnn .* it/s `)
	path, _, at := written(t, filepath.Join(dir, "*", "checkpoints"))
	p.signal(syscall.SIGINT)
	p.ends(130, "^tensile: interrupted: job ")
	p.vanishes()
	said := regexp.MustCompile(`job cnn stopped after ([0-9]+) iterations, saved in ` +
		regexp.QuoteMeta(filepath.Join(dir, "interrupted.onnx"))).FindStringSubmatch(p.stderr.String())
	if said == nil {
		t.Fatalf("it is said: %s", &p.stderr)
	}
	later := fmt.Sprint(at.Iteration + 20)
	for name, more := range map[string][]string{"as-long": {"--iterations", said[1]},
		"alone": {"--iterations", later}, "from": {"--iterations", later, "--from", path}} {
		tensile(t, dir, slices.Concat(job, more, []string{"--save", name + ".onnx"})...)
	}
	for a, b := range map[string]string{"interrupted": "as-long", "from": "alone"} {
		if !bytes.Equal(read(t, filepath.Join(dir, a+".onnx")), read(t, filepath.Join(dir, b+".onnx"))) {
			t.Errorf("%s.onnx is not %s.onnx", a, b)
		}
	}
}
