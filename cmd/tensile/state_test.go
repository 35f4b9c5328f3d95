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
	"tensile/internal/long"
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

// The files in which NATS keeps records are damaged while no controller runs: bits are flipped, blocks cut, files and
// streams removed. The next controller says of which jobs records were lost or older ones, and goes on with all of
// them: those that train, and one that is parked. The journal is damaged, too; then the store counts.
func TestClusterDamagedStore(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 8*graph.MiB)
	names := []string{"a", "b", "c", "p"}
	for _, name := range names {
		c.saves(name, forever, "--checkpoint", "20it")
	}
	c.train(nil, names...)
	c.tell("park", "p")
	c.in(wire.Parked, "p")
	streams := filepath.Join(c.state, "nats", "jetstream", "$G", "streams")
	blocks := func() []string {
		found, err := filepath.Glob(filepath.Join(streams, "KV_record", "msgs", "*.blk"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no blocks are in %s: %v", streams, err)
		}
		return found
	}
	change := func(path string, to func([]byte) []byte) {
		write(t, path, string(to(read(t, path))))
	}
	flip := func(from, to int) func(text []byte) []byte { // in hundredths of the file
		return func(text []byte) []byte {
			for i := len(text) * from / 100; i < len(text)*to/100; i++ {
				text[i] ^= 0x5a
			}
			return text
		}
	}
	cut := func(text []byte) []byte { return text[:len(text)/3] }
	const told = `^the store of the state folder was damaged: values were `
	journal := filepath.Join(c.state, "journal")
	for _, damage := range []struct {
		what  string
		harm  func()
		tells string
	}{
		{"half a block is flipped", func() { change(blocks()[0], flip(50, 100)) }, told},
		{"a block is cut", func() { change(blocks()[0], cut) }, told},
		{"blocks are removed", func() {
			for _, path := range blocks() {
				os.Remove(path)
			}
		}, told},
		{"records and orders are removed", func() {
			os.RemoveAll(filepath.Join(streams, "KV_record"))
			os.RemoveAll(filepath.Join(streams, "KV_orders"))
		}, told},
		{"the journal is flipped", func() { change(journal, flip(10, 20)) }, `journal was damaged: [0-9]+ of`},
		{"the journal is removed", func() { os.Remove(journal) }, `journal was damaged: 1 of`},
		{"the journals are removed", func() {
			os.Remove(journal)
			os.Remove(journal + ".before")
		}, ""},
		{"the journal is flipped and records are removed", func() {
			change(journal, flip(50, 60))
			os.RemoveAll(filepath.Join(streams, "KV_record"))
		}, told},
	} {
		// All have written since, so that the newest write, of which nothing is said, is not all.
		before := c.train(c.jobs(), "a", "b", "c")
		for i, name := range []string{"a", "b", "c", "p"} {
			c.tell("priority", name, fmt.Sprint(2+(before[name].Spec.Priority+i)%7))
		}
		before = c.jobs()
		c.signal(syscall.SIGKILL)
		c.ends(-1, "")
		damage.harm()
		again := *c
		again.family = start(t, c.dir, "controller", "--state", c.state, "--budget", fmt.Sprint(int64(c.budget)),
			"--memory-sharing", "none")
		if c = &again; damage.tells != "" {
			t.Logf("%s: %q", damage.what, c.line(damage.tells))
		}
		c.line("^controller of ")
		after := c.train(before, "a", "b", "c")
		for _, name := range names {
			was, is := before[name], after[name]
			if is.Incarnation != was.Incarnation || is.Executor != was.Executor ||
				is.Spec.Priority != was.Spec.Priority || strings.Contains(is.Why, "held") {
				t.Errorf("%s: job %s was %+v and is %+v", damage.what, name, was, is)
			}
		}
		if r := after["p"]; r.State != wire.Parked || len(after) != len(names) {
			t.Errorf("%s: of %d jobs the parked one is %s: %s", damage.what, len(after), r.State, r.Why)
		}
	}
	c.tell("stop", "a", "b", "c")
	for _, name := range names[:3] { // which have trained for too long to be trained again
		c.in(wire.Halted, name)
	}
	c.tell("resume", "p")
	c.train(c.jobs(), "p")
	c.settles("p", smallJob)
	c.end()
}
