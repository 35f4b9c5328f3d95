//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/checkpoint"
	"tensile/graph"
	"tensile/wire"
)

func TestParseInterval(t *testing.T) {
	for text, want := range map[string]wire.Interval{"5m": {Every: 5 * time.Minute}, "1h30m": {Every: 90 * time.Minute},
		"1ns": {Every: 1}, "100it": {Iterations: 100}, "none": {}, "0": {}} {
		if got, err := parseInterval(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "it", "0it", "-3it", "1.5it", "0s", "-1m", "5 m", "m", "None"} {
		if got, err := parseInterval(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// written waits for a checkpoint in a folder, and returns the newest one's path and content.
func written(t *testing.T, folder string) (path string, content []byte, c *checkpoint.State) {
	t.Helper()
	end, limited := t.Deadline()
	for !limited || time.Until(end) > reserve {
		list, err := filepath.Glob(filepath.Join(folder, "*", "*.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(list, func(a, b string) int { return len(a) - len(b) })
		for _, path := range slices.Backward(list) {
			content, err := os.ReadFile(path)
			if err != nil {
				continue // an old one that was removed
			}
			copied := filepath.Join(t.TempDir(), "copied.safetensors")
			if err := os.WriteFile(copied, content, 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := checkpoint.Read(copied)
			if err != nil {
				t.Fatalf("%s is there, but not whole: %v", path, err)
			}
			return copied, content, c
		}
	}
	t.Fatalf("there is no checkpoint in %s", folder)
	return "", nil, nil
}

// small is the job that tests of checkpoints train.
var small = []string{"lenet", "--batch", "2", "--image", "12"}

// A checkpoint of a job that trains, copied to another state folder, leads a job there to the weights and losses of one
// that nothing disturbed, byte for byte; and so does run.
func TestFromElsewhere(t *testing.T) {
	t.Parallel()
	first := startCluster(t, 2*graph.MiB)
	first.tell(slices.Concat([]string{"submit"}, small, []string{"--iterations", forever, "--checkpoint", "5it"})...)
	path, _, c := written(t, filepath.Join(first.state, "checkpoints"))
	first.tell("stop", "lenet")
	first.in(wire.Halted, "lenet")
	if c.Iteration < 5 || len(c.Losses) != c.Iteration || c.Job != "lenet" || c.Optimizer != "adam" {
		t.Errorf("the checkpoint is of job %s after %d iterations with %d losses", c.Job, c.Iteration, len(c.Losses))
	}
	first.end()
	if left, err := filepath.Glob(filepath.Join(first.state, "checkpoints", "*")); err != nil || len(left) > 0 {
		t.Errorf("of a job that was stopped there is %q: %v", left, err)
	}

	second := startCluster(t, 2*graph.MiB)
	iterations := fmt.Sprint(c.Iteration + 30)
	for name, from := range map[string][]string{"alone": nil, "from": {"--from", path}} {
		second.tell(slices.Concat([]string{"submit"}, small, []string{"--iterations", iterations, "--name", name,
			"--save", name, "--wait"}, from)...)
	}
	jobs := second.jobs()
	alone, from := jobs["alone"].Result, jobs["from"].Result
	if diff := cmp.Diff(alone.Losses, from.Losses); diff != "" || len(from.Losses) != c.Iteration+30 {
		t.Errorf("losses (-undisturbed +from the checkpoint):\n%s", diff)
	}
	if diff := cmp.Diff(alone.Weights, from.Weights); diff != "" || len(from.Weights) == 0 {
		t.Errorf("digests of weights (-undisturbed +from the checkpoint):\n%s", diff)
	}
	if !bytes.Equal(read(t, alone.Saved), read(t, from.Saved)) {
		t.Error("the saved files differ")
	}
	second.end()

	dir := t.TempDir()
	tensile(t, dir, slices.Concat([]string{"run"}, small, []string{"--iterations", iterations, "--from", path, "--save",
		"w"})...)
	if !bytes.Equal(read(t, alone.Saved), read(t, filepath.Join(dir, "w"))) {
		t.Error("the file that run saves differs")
	}
}
