//go:build linux

package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tensile/graph"
	"tensile/wire"
)

// treeOf is all that is in a folder: names, modes, times and digests of contents.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&all, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			fmt.Fprintf(&all, "%x %v\n", sha256.Sum256(text), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// Whatever uses a state folder of another form refuses it with one line, and touches nothing.
func TestOtherFormat(t *testing.T) {
	t.Parallel()
	c := &cluster{family: &family{t: t}, files: t.TempDir()}
	state := t.TempDir()
	write(t, filepath.Join(state, "format"), "2\n")
	write(t, filepath.Join(state, "secret"), "what is kept in another form")
	before := treeOf(t, state)
	for _, args := range [][]string{{"controller"}, {"controller", "--nats", "nats://127.0.0.1:1"}, {"jobs"},
		{"credentials", "ada", "--user"}, {"credentials", "ada", "--user", "--revoke"}, {"credentials", "--list"}} {
		line := c.refused(append(args, "--state", state)...)
		want := "tensile: state folder " + state + " has form 2, and this release keeps form 1: "
		if !strings.HasPrefix(line, want) {
			t.Errorf("%q says %q, want %q", args, line, want)
		}
	}
	if after := treeOf(t, state); after != before {
		t.Errorf("the folder was\n%s\nand is\n%s", before, after)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// earlier is the binary of an earlier commit whose state folders have the same form.
var earlier = flag.String("earlier", "", "the binary from which TestUpgrade goes on to this one")

// The controller of an earlier commit ends, and one of this one goes on with its folder: a job whose executor trains
// on, one whose executor is killed meanwhile, and one that comes later end with the bits of jobs that nothing disturbs.
func TestUpgrade(t *testing.T) {
	if *earlier == "" {
		t.Skip("make upgrade-check runs it")
	}
	dir := t.TempDir()
	first := &cluster{budget: 8 * graph.MiB, state: filepath.Join(dir, "state"), files: t.TempDir()}
	first.family = startCommand(t, dir, nil, *earlier, "controller", "--state", first.state, "--budget",
		fmt.Sprint(int64(first.budget)), "--memory-sharing", "none")
	first.line("^controller of ")
	first.saves("stays", forever, "--checkpoint", "20it")
	first.saves("lost", forever, "--checkpoint", "20it")
	before := first.until("checkpoints", func(jobs map[string]wire.Record) bool {
		return jobs["stays"].Checkpoint != nil && jobs["lost"].Checkpoint != nil
	})
	first.signal(syscall.SIGTERM)
	first.ends(0, "")
	kill(t, executors(t, dir)[before["lost"].Executor])
	c := first.restart()
	c.saves("later", forever, "--checkpoint", "20it")
	c.train(nil, "later")
	for job, incarnation := range map[string]int64{"stays": 1, "lost": 2} {
		if r := c.goesOn(job, incarnation); r.Iteration <= before[job].Checkpoint.Iteration {
			t.Errorf("job %s has begun again", job)
		}
	}
	for _, job := range []string{"stays", "lost", "later"} {
		c.settles(job, smallJob)
	}
	c.end()
}
