//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// What is no backup, no empty folder or no controller is told in one line, and nothing is made.
func TestBackupRefuses(t *testing.T) {
	t.Parallel()
	c := &cluster{family: &family{t: t}, files: t.TempDir()}
	at := func(name string) string { return filepath.Join(c.files, name) }
	write(t, at("text"), "a text")
	write(t, at("full"), "")
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(at("used"), 0o700))
	write(t, at("used/lock"), "")
	before := treeOf(t, c.files)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"backup", at("b.tar"), "--state", at("none")}, "no controller runs on the state folder "},
		{[]string{"backup", at("b.tar"), "--state", at("used")}, "no controller runs on the state folder "},
		{[]string{"restore", at("none"), "--state", at("new")}, "restore: open " + at("none") + ": no such file"},
		{[]string{"restore", at("text"), "--state", at("new")}, "restore " + at("text") + ": it is no backup"},
		{[]string{"restore", at("text"), "--state", at("full")}, "--state " + at("full") + " is a file: name a folder"},
		{[]string{"restore", at("used"), "--state", at("new")}, "restore " + at("used") + ": it is no backup"},
	} {
		line := c.refused(append([]string{"controller"}, test.args...)...)
		if !strings.HasPrefix(line, "tensile: "+test.want) {
			t.Errorf("%q says %q, want %q", test.args, line, test.want)
		}
	}
	if after := treeOf(t, c.files); after != before {
		t.Errorf("the folder was\n%s\nand is\n%s", before, after)
	}
}

// A drill: a backup is made while jobs train, one is parked and one waits. Then all processes are killed and the state
// folder is removed. The controller that is started on the restored one has all jobs go on from their checkpoints, and
// they end with the bits of jobs that nothing disturbs; who had credentials is let in.
func TestClusterBackup(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	names := []string{"a", "b", "p"}
	for _, name := range names {
		c.saves(name, forever, "--checkpoint", "20it")
	}
	c.train(nil, names...)
	c.tell("park", "p", "--disk")
	c.in(wire.JobParked, "p")
	c.tell("submit", "lenet", "--batch", "4", "--image", "12", "--iterations", "30", "--name", "over", "--wait")
	ada := filepath.Join(c.files, "ada.json")
	c.tell("credentials", "ada", "--user", "--output", ada)
	file := filepath.Join(c.files, "backup.tar")
	for range 5 { // executors write and remove checkpoints meanwhile
		c.train(c.jobs(), "a", "b")
		c.tell("controller", "backup", file)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the backup is %v: %v", info, err)
	}
	before := c.train(c.jobs(), "a", "b")
	refused := c.refused("controller", "restore", file, "--state", c.state)
	if !strings.Contains(refused, c.state+" is not empty: ") {
		t.Errorf("over a controller that runs restore says %q", refused)
	}
	pids := executors(t, c.dir)
	c.signal(syscall.SIGKILL)
	c.ends(-1, "")
	for _, pid := range pids {
		kill(t, pid)
	}
	c.vanishes()
	if err := os.RemoveAll(c.state); err != nil {
		t.Fatal(err)
	}
	c.tell("controller", "restore", file)
	again := *c
	again.family = start(t, c.dir, "controller", "--state", c.state, "--budget", fmt.Sprint(int64(c.budget)),
		"--memory-sharing", "none")
	c = &again
	for _, line := range c.line("^controller of ") {
		if strings.Contains(line, "damaged") {
			t.Errorf("the restored controller says: %s", line)
		}
	}
	for _, name := range []string{"a", "b"} {
		if r := c.goesOn(name, 2); r.Checkpoint == nil {
			t.Errorf("job %s has begun again: %+v", name, r)
		}
		c.logged(name, "iterations, from checkpoint ")
	}
	jobs := c.jobs()
	if r := jobs["p"]; r.State != wire.JobParked || r.Iteration != before["p"].Iteration {
		t.Errorf("the parked job was %+v and is %+v", before["p"], r)
	}
	if r := jobs["over"]; r.State != wire.JobFinished || r.Result == nil || len(r.Result.Losses) != 30 {
		t.Errorf("the job that was over is %+v", r)
	}
	c.tell("resume", "p")
	c.train(nil, "p")
	listed := string(tensile(t, c.files, "jobs", "--credentials", ada))
	if !strings.Contains(listed, "over") {
		t.Errorf("ada is shown %s", listed)
	}
	for _, name := range names {
		c.settles(name, smallJob)
	}
	c.end()
}
