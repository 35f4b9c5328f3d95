package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/wire"
)

// Of a run in which a job has failed its checkpoints are left, which the line about it names, and nothing else.
func TestLeft(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"bus/x", "checkpoints/identity", "checkpoints/a-1/1-5.safetensors",
		"checkpoints/a-10/1-5.safetensors"} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "checkpoints", "a-1", "1-5.safetensors")
	run := &training{dir: dir}
	r := wire.Record{State: wire.JobFailed, Reason: "lost", Iteration: 6}
	r.Checkpoint = &wire.Checkpoint{Iteration: 5, File: file, Host: "here"}
	r.Spec.Name = "a"
	if got := run.cameTo(r); got != "job a failed after 6 iterations: lost; its newest checkpoint, after 5 "+
		"iterations, is "+file+": --from goes on from it" {
		t.Errorf("it is said: %s", got)
	}
	if err := run.clear(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"checkpoints/a-1/1-5.safetensors"}, below(t, dir)); diff != "" {
		t.Errorf("files that are left (-want +got):\n%s", diff)
	}
	run.left = nil
	if err := run.clear(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("of a run in which none has failed the folder is left: %v", err)
	}
}

// below are the files below a folder.
func below(t *testing.T, dir string) (list []string) {
	t.Helper()
	for _, pattern := range []string{"*", "*/*", "*/*/*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && !info.IsDir() {
				list = append(list, strings.TrimPrefix(path, dir+"/"))
			}
		}
	}
	return list
}

// An executor whose parent says that it keeps the folder leaves it.
func TestBoundKeeps(t *testing.T) {
	folder := t.TempDir()
	input, parent := io.Pipe()
	ended := make(chan struct{})
	b := bind(input, folder, nil, func() { close(ended) })
	if _, err := io.WriteString(parent, "7\n"+keepFolder+"\n"); err != nil {
		t.Fatal(err)
	}
	parent.Close()
	<-ended
	b.leave(true)
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("the folder is gone: %v", err)
	}
}

// One that has diverged is told apart by the exit status, unless another has failed otherwise.
func TestStatusOf(t *testing.T) {
	for want, r := range map[int]wire.Record{someDiverged: {State: wire.JobFailed, Diverged: true},
		someFailed: {State: wire.JobFailed}, someStopped: {State: wire.JobStopped}} {
		if got := statusOf(&r); got != want {
			t.Errorf("the status of %+v is %d, want %d", r, got, want)
		}
	}
}

// What a job goes on in spite of is shown once.
func TestTroubleIsShown(t *testing.T) {
	var out bytes.Buffer
	s, p := twoJobs()
	o := (&screen{out: &out, session: s}).observer(p)
	for _, why := range []string{"", "no room", "no room", "", "no room"} {
		o.trouble(1, why)
	}
	if want := strings.Repeat("  b: no room\n", 2); out.String() != want {
		t.Errorf("it shows %q, want %q", out.String(), want)
	}
	(*observer)(nil).trouble(0, "no room")
}
