//go:build linux

package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// damage is what comes to the files of a state folder while no controller runs.
type damage struct {
	what string
	harm func(t *testing.T, state string)
}

// harm is what comes to one file.
type harm struct {
	what string
	to   func([]byte) []byte
}

// flip flips bits between two places, in hundredths of the file.
func flip(from, to int) func(text []byte) []byte {
	return func(text []byte) []byte {
		for i := len(text) * from / 100; i < len(text)*to/100; i++ {
			text[i] ^= 0x5a
		}
		return text
	}
}

func third(text []byte) []byte { return text[:len(text)/3] }

func (h harm) come(t *testing.T, path string) {
	t.Helper()
	write(t, path, string(h.to(read(t, path))))
}

// streamsOf is where NATS keeps streams.
func streamsOf(state string) string {
	return filepath.Join(state, "nats", "jetstream", "$G", "streams")
}

// recordBlocks are the files with records.
func recordBlocks(t *testing.T, state string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(streamsOf(state), "KV_record", "msgs", "*.blk"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no blocks are in %s: %v", streamsOf(state), err)
	}
	return found
}

func removeStreams(t *testing.T, state string, names ...string) {
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(streamsOf(state), name)); err != nil {
			t.Fatal(err)
		}
	}
}

// storeDamages come to what NATS keeps; the journal has all of it.
var storeDamages = []damage{
	{"half a block is flipped", func(t *testing.T, state string) {
		harm{to: flip(50, 100)}.come(t, recordBlocks(t, state)[0])
	}},
	{"a block is cut", func(t *testing.T, state string) { harm{to: third}.come(t, recordBlocks(t, state)[0]) }},
	{"blocks are removed", func(t *testing.T, state string) {
		for _, path := range recordBlocks(t, state) {
			os.Remove(path)
		}
	}},
	{"records and orders are removed", func(t *testing.T, state string) {
		removeStreams(t, state, "KV_record", "KV_orders")
	}},
}

// journalDamages come to the journal; NATS has all of it.
var journalDamages = []damage{
	{"the journal is flipped", func(t *testing.T, state string) {
		harm{to: flip(10, 20)}.come(t, filepath.Join(state, "journal"))
	}},
	{"the journal is removed", func(_ *testing.T, state string) { os.Remove(filepath.Join(state, "journal")) }},
	{"the journals are removed", func(_ *testing.T, state string) {
		os.Remove(filepath.Join(state, "journal"))
		os.Remove(filepath.Join(state, "journal.before"))
	}},
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
	c.in(wire.JobParked, "p")
	const told = `^the store of the state folder was damaged: values were `
	tells := map[string]string{"the journal is flipped": `journal was damaged: [0-9]+ of`,
		"the journal is removed": `journal was damaged: 1 of`, "the journals are removed": ""}
	for _, damage := range slices.Concat(storeDamages, journalDamages, []damage{
		{"the journal is flipped and records are removed", func(t *testing.T, state string) {
			harm{to: flip(50, 60)}.come(t, filepath.Join(state, "journal"))
			removeStreams(t, state, "KV_record")
		}},
	}) {
		// All have written since, so that the newest write, of which nothing is said, is not all.
		before := c.train(c.jobs(), "a", "b", "c")
		for i, name := range []string{"a", "b", "c", "p"} {
			c.tell("priority", name, fmt.Sprint(2+(before[name].Spec.Priority+i)%7))
		}
		before = c.jobs()
		c.signal(syscall.SIGKILL)
		c.ends(-1, "")
		damage.harm(t, c.state)
		again := *c
		again.family = start(t, c.dir, "controller", "--state", c.state, "--budget", fmt.Sprint(int64(c.budget)),
			"--memory-sharing", "none")
		c = &again
		if want, ok := tells[damage.what]; !ok {
			t.Logf("%s: %q", damage.what, c.line(told))
		} else if want != "" {
			t.Logf("%s: %q", damage.what, c.line(want))
		}
		c.line("^controller of ")
		after := c.train(before, "a", "b", "c")
		for _, name := range names {
			was, is := before[name], after[name]
			if is.Incarnation != was.Incarnation || is.Executor != was.Executor ||
				is.Spec.Priority != was.Spec.Priority || strings.Contains(is.Reason, "held") {
				t.Errorf("%s: job %s was %+v and is %+v", damage.what, name, was, is)
			}
		}
		if r := after["p"]; r.State != wire.JobParked || len(after) != len(names) {
			t.Errorf("%s: of %d jobs the parked one is %s: %s", damage.what, len(after), r.State, r.Reason)
		}
	}
	c.tell("stop", "a", "b", "c")
	for _, name := range names[:3] { // which have trained for too long to be trained again
		c.in(wire.JobStopped, name)
	}
	c.tell("resume", "p")
	c.train(c.jobs(), "p")
	c.settles("p", smallJob)
	c.end()
}
