//go:build linux

package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/wire"
)

// A controller trains an ONNX file beside another job within a budget that both must be planned for. What its executor
// saves has the bytes of what a run without a budget saves.
func TestClusterONNX(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 80*graph.KiB)
	dir := exported(t, "cnn")
	file := filepath.Join(dir, "cnn.onnx")
	common := []string{"--batch", "8", "--iterations", "12"}
	submitted := filepath.Join(dir, "submitted.onnx")
	c.tell(append([]string{"submit", file, "--name", "beside"}, "--batch", "8", "--iterations", forever)...)
	c.in(wire.Training, "beside")
	c.tell(append([]string{"submit", file, "--save", submitted, "--wait"}, common...)...)
	job := c.jobs()["cnn"]
	if job.State != wire.Done || job.Result == nil || job.Result.Saved != submitted {
		t.Fatalf("the job is %s, its result %+v", job.State, job.Result)
	}
	other := filepath.Join(dir, "other.onnx")
	begins := append([]string{"--weights", submitted, "--optimizer", "sgd"}, common...)
	c.tell(append([]string{"submit", file, "--name", "other", "--save", other, "--wait"}, begins...)...)
	c.tell("stop", "beside")
	c.in(wire.Halted, "beside")
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
