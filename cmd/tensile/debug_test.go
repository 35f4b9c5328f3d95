//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	_ "github.com/cockroachdb/datadriven" // has the flag -rewrite

	"tensile/graph"
	"tensile/wire"
)

// recordings are those of the cluster of TestClusterRecorded as it was when they were made: machines that answer
// otherwise since do not pass. go test ./cmd/tensile -run Recorded -rewrite makes them anew, where that is meant.
const recordings = "testdata/recordings"

// What a controller, the one after it and an executor were told and answered, machines answer again to the byte.
func TestClusterRecorded(t *testing.T) {
	t.Parallel()
	files := t.TempDir()
	record := func(name string) string { return filepath.Join(files, name+".jsonl") }
	c := startCluster(t, 2*graph.MiB, "--isolate", "--record", record("controller"))
	credentials := filepath.Join(c.files, "lab.json")
	c.tell("credentials", "lab", "--output", credentials)
	lab := start(t, c.files, "executor", "--credentials", credentials, "--record", record("executor"))
	c.line(`^executor lab has joined$`)
	c.tell("submit", "lenet", "--batch", "2", "--image", "12", "--iterations", "9", "--name", "a")
	c.tell("submit", "lenet", "--batch", "4", "--image", "12", "--iterations", forever, "--name", "b")
	c.in(wire.JobFinished, "a")
	c.train(nil, "b")
	c.signal(syscall.SIGINT)
	c.ends(0, "")
	again := c.restart("--isolate", "--record", record("restarted"))
	again.tell("stop", "b")
	again.in(wire.JobStopped, "b")
	lab.signal(syscall.SIGINT)
	lab.wait()
	again.end()
	said := string(tensile(t, files, "debug", "replay", "controller.jsonl", "restarted.jsonl", "executor.jsonl"))
	if n := len(regexp.MustCompile(`(?m)^\w+\.jsonl: [0-9]+ steps, every answer as it was recorded$`).FindAllString(
		said, -1)); n != 3 {
		t.Errorf("replay says:\n%s", said)
	}
	if line := c.refused("debug", "replay", credentials); !strings.HasPrefix(line,
		"tensile: "+credentials+": it is no recording; ") {
		t.Errorf("replaying credentials: %s", line)
	}
	if line := c.refused("controller", "--state", c.state, "--record", record("executor")); !strings.Contains(line,
		"the file is there already") {
		t.Errorf("recording over a file: %s", line)
	}
	if rewriting() {
		for _, name := range []string{"controller", "restarted", "executor"} {
			pack(t, record(name), filepath.Join(recordings, name+".jsonl.gz"))
		}
	}
}

func rewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// pack compresses a file.
func pack(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = os.WriteFile(to, packed.Bytes(), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Machines answer as they did when the recordings were made.
func TestRecordings(t *testing.T) {
	if rewriting() {
		t.Skip("they are being made anew")
	}
	names, err := filepath.Glob(recordings + "/*.gz")
	if err != nil || len(names) != 3 {
		t.Fatalf("recordings %q: %v", names, err)
	}
	for _, name := range names {
		packed, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer packed.Close()
		in, err := gzip.NewReader(packed)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "recording")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if steps, err := replay(file); err != nil || steps < 3 {
			t.Errorf("%s: %d steps: %v", name, steps, err)
		}
	}
}
