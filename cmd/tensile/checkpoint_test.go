//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/data/checkpoint"
	"tensile/graph"
	"tensile/internal/long"
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
			c, err := checkpoint.Read(nil, copied)
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
	first.in(wire.JobStopped, "lenet")
	if c.Iteration < 5 || len(c.Losses) != c.Iteration || c.Job != "lenet" || c.Optimizer != "adam" {
		t.Errorf("the checkpoint is of job %s after %d iterations with %d losses", c.Job, c.Iteration, len(c.Losses))
	}
	first.end()
	if left, err := filepath.Glob(filepath.Join(first.state, "checkpoints", "*-*")); err != nil || len(left) > 0 {
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
	tensile(t, dir, slices.Concat([]string{"run"}, small, []string{"--iterations", iterations, "--from", path, "--save",
		"rewritten", "--passes", "all"})...)
	if !bytes.Equal(read(t, alone.Saved), read(t, filepath.Join(dir, "rewritten"))) {
		t.Error("with passes the file that run saves differs")
	}
}

// outlives is settles for the job that tests of checkpoints train, of which no checkpoint is left then.
func (c *cluster) outlives(job string) {
	c.t.Helper()
	c.settles(job, small)
	if left, err := filepath.Glob(filepath.Join(c.state, "checkpoints", "*-*")); err != nil || len(left) > 0 {
		c.t.Errorf("of jobs that are over there is %q: %v", left, err)
	}
}

// checkpointed waits until a job that trains in some incarnation has a checkpoint of that.
func (c *cluster) checkpointed(job string, incarnation int64) wire.Record {
	c.t.Helper()
	name := fmt.Sprintf("%d-", incarnation)
	return c.until("a checkpoint of incarnation "+name, func(jobs map[string]wire.Record) bool {
		r := jobs[job]
		return r.State == wire.JobRunning && r.Checkpoint != nil &&
			strings.HasPrefix(filepath.Base(r.Checkpoint.File), name)
	})[job]
}

// A job whose executor is killed goes on from its newest checkpoint by itself, again and again, and comes to what a job
// comes to that nothing disturbs.
func TestKilledGoesOn(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	c.tell(slices.Concat([]string{"submit"}, small, []string{"--iterations", forever, "--name", "job", "--save", "job",
		"--checkpoint", "20it"})...)
	for incarnation := range int64(2) {
		r := c.checkpointed("job", 1+incarnation)
		kill(t, executors(t, c.dir)[r.Executor])
	}
	c.goesOn("job", 3)
	c.logged("job", "\ngoes on after ")
	c.outlives("job")
	c.end()
}

// An executor that was started by hand is killed, its newest checkpoint is torn, and it is started again: the job goes
// on from the one before.
func TestTornGoesOn(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	credentials, folder := filepath.Join(c.files, "lab.json"), filepath.Join(c.state, "checkpoints")
	c.tell("credentials", "lab", "--output", credentials)
	begin := func() *family {
		return start(t, c.files, "executor", "--credentials", credentials, "--checkpoints", folder)
	}
	lab := begin()
	c.line(`^executor lab has joined$`)
	c.tell(slices.Concat([]string{"submit"}, small, []string{"--iterations", forever, "--name", "job", "--save", "job",
		"--checkpoint", "20it"})...)
	c.checkpointed("job", 1)
	lab.signal(syscall.SIGKILL)
	lab.ends(-1, "")
	found, err := checkpoint.Folder{Dir: folder}.Newest("job", 1, 1, nil)
	if err != nil || found.State == nil {
		t.Fatalf("there is %+v: %v", found, err)
	}
	torn := filepath.Join(folder, found.Is.File)
	if err := os.Truncate(torn, int64(found.Is.Bytes)/2); err != nil {
		t.Fatal(err)
	}
	begin()
	c.goesOn("job", 2)
	c.logged("job", "\ncheckpoint "+torn+" is passed over: ")
	c.outlives("job")
}

// A job of an executor that is interrupted goes on elsewhere: none of its iterations is lost.
func TestInterruptedGoesOn(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	credentials := filepath.Join(c.files, "lab.json")
	c.tell("credentials", "lab", "--output", credentials)
	lab := start(t, c.files, "executor", "--credentials", credentials, "--checkpoints",
		filepath.Join(c.state, "checkpoints"))
	c.line(`^executor lab has joined$`)
	c.tell(slices.Concat([]string{"submit"}, small, []string{"--iterations", forever, "--name", "job", "--save",
		"job"})...)
	c.train(nil, "job")
	lab.signal(syscall.SIGTERM)
	lab.ends(130,
		`^tensile: interrupted: job job suspended after [0-9]+ iterations; it goes on from checkpoint `+c.state)
	if r := c.goesOn("job", 2); r.Executor == "lab" || r.Checkpoint == nil {
		t.Errorf("the job goes on as %+v", r)
	}
	c.outlives("job")
	c.end()
}

// A run goes on although one of its executors is killed, and saves what an undisturbed run saves.
func TestRunGoesOn(t *testing.T) {
	long.Only(t)
	t.Parallel()
	p, found := startRun(t, "--iterations", forever, "--checkpoint", "20it", "--save", "w.safetensors")
	kill(t, found["x2"])
	for gone := false; !gone; { // until there is a checkpoint of its second incarnation
		p.line(`^  lenet\.2 .* it/s `)
		again, err := filepath.Glob(filepath.Join(p.dir, "*", "checkpoints", "*", "2-*.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		gone = len(again) > 0
	}
	p.savesBoth()
}
