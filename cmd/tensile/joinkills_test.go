//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tensile/executor/sidecar"
)

// joinFake joins a fake script in a way, and waits until it trains.
func joinFake(t *testing.T, how string) *family {
	t.Helper()
	file, err := filepath.Abs("../../models/external/testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, t.TempDir(), "join", "--", "fakescript", file, "3", how)
	p.line("^training$")
	return p
}

// A script whose sidecar is interrupted is told to end, and the command ends as it does.
func TestJoinInterrupted(t *testing.T) {
	t.Parallel()
	p := joinFake(t, "stopped")
	p.signal(syscall.SIGTERM)
	p.wait()
	if got := p.command.ProcessState.ExitCode(); got != 143 ||
		!strings.Contains(p.stderr.String(), "it has ended before a plan was in force") {
		t.Errorf("it ended with status %d; stderr:\n%s", got, &p.stderr)
	}
}

// A script whose sidecar is killed trains on.
func TestJoinKilled(t *testing.T) {
	t.Parallel()
	p := joinFake(t, "orphan")
	p.signal(syscall.SIGKILL)
	p.line("^trained on$")
}

// A command that ends leaves a process behind that has its end of the connection: nobody waits for that one, and all
// that was said was heard.
func TestJoinLeavesBehind(t *testing.T) {
	t.Parallel()
	file, err := filepath.Abs("../../models/external/testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, t.TempDir(), "join", "--report", "report.json", "--", "sh", "-c",
		`tail -f /dev/null >/dev/null 2>&1 & echo left $!; fakescript "$1" 40 well`, "sh", file)
	var left int
	if _, err := fmt.Sscanf(p.line("^left ")[0], "left %d", &left); err != nil {
		t.Fatal(err)
	}
	defer kill(t, left)
	if err := p.wait(); err != nil {
		t.Errorf("it ended with %v; stderr:\n%s", err, &p.stderr)
	}
	var s sidecar.Summary
	document(t, read(t, filepath.Join(p.dir, "report.json")), &s)
	if !s.Ended || s.Iterations != 40 {
		t.Errorf("it has ended: %v, after %d iterations, want 40; stderr:\n%s", s.Ended, s.Iterations, &p.stderr)
	}
}
