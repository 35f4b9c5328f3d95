//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPlanSignal stops the planning of what would take minutes.
func TestPlanSignal(t *testing.T) {
	t.Parallel()
	graph := tensile(t, t.TempDir(), "graph", "resnet152", "--image", "64")
	for _, test := range []struct {
		signal syscall.Signal
		args   []string
	}{
		{syscall.SIGINT, []string{"plan", "net.json:4", "--budget", "20%", "--no-recompute"}},
		{syscall.SIGTERM, []string{"plan", "net.json:4", "--budget", "12%"}},
		{syscall.SIGINT, []string{"plan", "net.json:200", "--policy", "tensile-paper"}},
		{syscall.SIGINT, []string{"run", "net.json:4", "--budget", "20%", "--no-recompute"}},
	} {
		dir := t.TempDir()
		pipe := filepath.Join(dir, "net.json")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.Command("tensile", append(test.args, "--device", "sim:a6000", "--no-calibrate", "--planning-work",
			"1000000000000000")...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GORACE="+noPause)
		var stdout, stderr bytes.Buffer
		c.Stdout, c.Stderr = &stdout, &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		// more than a pipe holds: when it is written, the program listens
		if err := os.WriteFile(pipe, graph, 0); err != nil {
			t.Fatal(err)
		}
		if err := c.Process.Signal(test.signal); err != nil {
			t.Error(err)
		}
		err := c.Wait()
		line, ended := strings.CutSuffix(stderr.String(), "\n")
		if code := c.ProcessState.ExitCode(); code != 130 || !ended || strings.Contains(line, "\n") ||
			!strings.HasPrefix(line, "tensile: interrupted") || stdout.Len() > 0 {
			t.Errorf("%q, %v: exit status %d: %v, stdout %q, stderr %q", test.args, test.signal, code, err, &stdout,
				&stderr)
		}
	}
}
