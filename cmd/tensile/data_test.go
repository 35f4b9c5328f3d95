package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tensile/data/npztest"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// twenty is a file of arrays for a lenet of 12 pixels.
func twenty(t *testing.T, path string) {
	t.Helper()
	var input []float32
	var labels []int64
	for i := range 20 {
		for _, p := range pixels(144, i) {
			input = append(input, float32(p)/128-1)
		}
		labels = append(labels, int64(i%5))
	}
	npztest.Write(t, path, npztest.Array{Name: "input", Shape: graph.Shape{20, 1, 12, 12}, Data: input},
		npztest.Array{Name: "labels", Shape: graph.Shape{20}, Data: labels})
}

// A network learns from the arrays of a file, takes its sizes from them, and comes to the same bytes within a budget,
// again, and with a policy that swaps nothing; without data the first line says that it is synthetic.
func TestArrays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	twenty(t, filepath.Join(dir, "d.npz"))
	args := []string{"run", "lenet", "--batch", "6", "--iterations", "9"}
	for i, more := range [][]string{nil, {"--budget", "80%"}, {"--policy", "none-all", "--image", "12"}} {
		out := tensile(t, dir, slices.Concat(args, []string{"--data", "d.npz", "--save", fmt.Sprint(i)}, more)...)
		if first, _, _ := strings.Cut(string(out), "\n"); first != "data: d.npz" {
			t.Errorf("the first line is %q", first)
		}
		if !bytes.Equal(read(t, filepath.Join(dir, "0")), read(t, filepath.Join(dir, fmt.Sprint(i)))) {
			t.Errorf("other weights come out with %q", more)
		}
	}
	out := tensile(t, dir, append(args, "--image", "12", "--classes", "5", "--save", "made-up")...)
	if first, _, _ := strings.Cut(string(out), "\n"); first != "data: synthetic; --data names your own" {
		t.Errorf("the first line is %q", first)
	}
	if bytes.Equal(read(t, filepath.Join(dir, "0")), read(t, filepath.Join(dir, "made-up"))) {
		t.Error("made-up images lead to the same weights")
	}
}

// A job that learns from a file of arrays goes on after its executor is killed, and from its checkpoint elsewhere, with
// the bits of one that nothing disturbed.
func TestArraysAfterAKill(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	arrays := filepath.Join(t.TempDir(), "d.npz")
	twenty(t, arrays)
	job := []string{"lenet", "--batch", "6", "--data", arrays}
	c.survives(job, "")
	c.end()
}

// survives submits a job of some words, kills its executor, and compares what it saves that goes on from a checkpoint
// of the job with what an undisturbed one saves, in files whose names end in such a way.
func (c *cluster) survives(job []string, end string) {
	t := c.t
	t.Helper()
	c.tell(slices.Concat([]string{"submit"}, job, []string{"--iterations", forever, "--checkpoint", "5it", "--save",
		"job", "--name", "job"})...)
	kill(t, executors(t, c.dir)[c.checkpointed("job", 1).Executor])
	c.goesOn("job", 2)
	path, _, at := written(t, filepath.Join(c.state, "checkpoints"))
	c.settles("job", job)
	for name, more := range map[string][]string{"alone": nil, "from": {"--from", path}} {
		c.tell(slices.Concat([]string{"submit"}, job, []string{"--iterations", fmt.Sprint(at.Iteration + 20), "--name",
			name, "--save", filepath.Join(c.files, name+end), "--wait"}, more)...)
	}
	jobs := c.jobs()
	if !bytes.Equal(read(t, jobs["alone"].Result.Saved), read(t, jobs["from"].Result.Saved)) {
		t.Error("the saved files differ")
	}
}

// A job whose file of arrays is cut while it trains fails with one line that names the file.
func TestArraysThatAreCut(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	arrays := filepath.Join(t.TempDir(), "d.npz")
	twenty(t, arrays)
	c.tell("submit", "lenet", "--batch", "6", "--data", arrays, "--iterations", forever, "--checkpoint", "none")
	c.train(nil, "lenet")
	if err := os.Truncate(arrays, 100); err != nil {
		t.Fatal(err)
	}
	r := c.in(wire.JobFailed, "lenet")
	if !strings.Contains(r.Reason, arrays+": array \"") || !strings.HasSuffix(r.Reason, "it was changed, start again") {
		t.Errorf("the job has failed as %q", r.Reason)
	}
	c.end()
}
