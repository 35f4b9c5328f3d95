package controller

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tensile/wire"
)

// A step that panics names a file with the inputs before it, of which it is the last.
func TestPanicNamesItsInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "panic.jsonl")
	r := &runner{options: Options{Last: path, Log: slog.New(slog.DiscardHandler)}, machine: NewMachine(Config{})}
	r.ctx = t.Context()
	const before = maxRecentInputs + 50
	for i := range before {
		must(t, r.step(time.Duration(i), Input{Tick: &Tick{}}))
	}
	r.machine = nil // which no step survives
	text := func() (text string) {
		defer func() { text, _ = recover().(string) }()
		_ = r.step(before, Input{Report: &wire.Report{Executor: "lab", Job: "a"}})
		return ""
	}()
	if !strings.Contains(text, "nil pointer") || !strings.Contains(text, "; "+path+" has what the controller was") {
		t.Errorf("the panic says %q", text)
	}
	written, err := os.ReadFile(path)
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(written)), "\n")
	var first, last line
	must(t, json.Unmarshal([]byte(lines[0]), &first))
	must(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	if len(lines) != maxRecentInputs || first.Now != before-maxRecentInputs+1 || last.Now != before ||
		last.In.Report == nil ||
		last.In.Report.Job != "a" {
		t.Errorf("%d lines, from %d to %d: %s", len(lines), first.Now, last.Now, lines[len(lines)-1])
	}
}
