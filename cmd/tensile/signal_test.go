//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tensile/internal/long"
)

// TestSignals stops runs in the middle, which ends with nothing left behind and nothing that a second run trips over.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		signal syscall.Signal
		args   []string
		part   string // of the run in which the signal comes
		code   int    // -1: killed by the signal
		stderr string
		left   []string
	}{
		{"interrupt", syscall.SIGINT, []string{"--budget", "80%", "--save", "w.safetensors"}, "tensile:", 130,
			"interrupted: job lenet stopped after ", []string{"w.safetensors"}},
		{"terminate the vanilla part", syscall.SIGTERM, []string{"--budget", "80%", "--compare"}, "vanilla:", 130,
			"interrupted: the jobs were stopped", nil},
		{"interrupt the vanilla part of a run that is saved", syscall.SIGINT,
			[]string{"--budget", "80%", "--compare", "--save", "w.safetensors"}, "vanilla:", 130,
			"interrupted: job lenet stopped after ", nil},
		{"interrupt two jobs in virtual time", syscall.SIGINT, []string{"--device", "sim:a6000", "lenet"}, "tensile:",
			130, "interrupted: the jobs were stopped", nil},
		{"hang up", syscall.SIGHUP, []string{"--budget", "80%"}, "tensile:", 130, "interrupted: the jobs were stopped",
			nil},
		{"kill", syscall.SIGKILL, []string{"--budget", "80%", "--save", "w.safetensors"}, "tensile:", -1, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.part == "vanilla:" {
				long.Only(t)
			}
			dir := t.TempDir()
			args := append([]string{"run", "lenet", "--batch", "4"}, test.args...)
			code, stderr := interrupted(t, dir, test.signal, test.part, append(args, "--iterations", forever))
			if code != test.code {
				t.Errorf("exit status %d, want %d; stderr: %s", code, test.code, stderr)
			}
			line, ended := strings.CutSuffix(stderr, "\n")
			if test.stderr == "" && stderr != "" || test.stderr != "" &&
				(!ended || strings.Contains(line, "\n") || !strings.Contains(line, test.stderr)) {
				t.Errorf("stderr is not one line with %q: %q", test.stderr, stderr)
			}
			if names := files(t, dir); !slices.Equal(names, append([]string{}, test.left...)) {
				t.Errorf("%q were left behind, want %q", names, test.left)
			}
			tensile(t, dir, append(args, "--iterations", "2")...)
		})
	}
}

// interrupted starts a command line in a process group of its own, sends the signal when the first iteration of a part
// has been reported, waits, and checks that the group is empty. It returns the exit status and stderr.
func interrupted(t *testing.T, dir string, signal syscall.Signal, part string, args []string) (int, string) {
	t.Helper()
	c := exec.Command("tensile", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GORACE="+noPause)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	begun, sent := false, false
	for !sent && lines.Scan() {
		begun = begun || lines.Text() == part
		if sent = begun && strings.Contains(lines.Text(), "it/s"); sent {
			if err := c.Process.Signal(signal); err != nil {
				t.Error(err)
			}
		}
	}
	rest, _ := io.ReadAll(stdout)
	err = c.Wait()
	if !sent {
		t.Fatalf("no iteration was reported: %v, stderr: %s", err, &stderr)
	}
	if bytes.Contains(rest, []byte("total")) {
		t.Errorf("a table was printed:\n%s", rest)
	}
	if err := syscall.Kill(-c.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("processes of the run are left: %v", err)
	}
	return c.ProcessState.ExitCode(), stderr.String()
}
