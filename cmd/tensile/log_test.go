package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Controllers and executors log in one form: the time, then the message, then what that does not say. What is said of
// an event stands in its message.
func TestLogForm(t *testing.T) {
	var out strings.Builder
	f := logFlags{format: textLog}
	log := f.logger(&out).With("device", "cpu")
	log.Debug("not said")
	log.Info("executor lab has joined", "event", "joined", "executor", "lab")
	log.Warn("a message was lost", "executor", "lab", "kind", "line", "err", errors.New("no\nconnection"))
	want := regexp.MustCompile(`^[0-9]{2}:[0-9]{2}:[0-9]{2} executor lab has joined
[0-9]{2}:[0-9]{2}:[0-9]{2} a message was lost executor=lab kind=line: no; connection
$`)
	if !want.MatchString(out.String()) {
		t.Errorf("got\n%swant what matches\n%s", &out, want)
	}
}

// A level leaves out what is below it, in both forms.
func TestLogLevels(t *testing.T) {
	for _, format := range []string{textLog, jsonLog} {
		for i, level := range logLevels {
			var out strings.Builder
			f := logFlags{format: format}
			if err := (*logLevel)(&f.level).Set(level); err != nil {
				t.Fatal(err)
			}
			log := f.logger(&out)
			log.Debug("a")
			log.Info("b")
			log.Warn("c")
			log.Error("d")
			if got := strings.Count(out.String(), "\n"); got != len(logLevels)-i {
				t.Errorf("%s at level %s has %d lines:\n%s", format, level, got, &out)
			}
			if args := strings.Join(f.args(), " "); args != "--log-format "+format+" --log-level "+level {
				t.Errorf("an executor is told %s", args)
			}
		}
	}
	for flag, want := range map[string]error{"--log-level": new(logLevel).Set("loud"),
		"--log-format": new(logFormat).Set("xml")} {
		if want == nil || !strings.HasPrefix(want.Error(), "give ") {
			t.Errorf("%s takes anything, or says %v", flag, want)
		}
	}
}

// Why an executor ended is told in its words, in whatever form it logs.
func TestEndingOfJSON(t *testing.T) {
	var out bytes.Buffer
	f := logFlags{format: jsonLog}
	f.logger(&out).Warn("a message was lost", "job", "a", "err", errors.New("no connection"))
	out.WriteString("tensile: the device has failed\n")
	path := filepath.Join(t.TempDir(), "err")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "its executor has left; its last lines: a message was lost: no connection | " +
		"tensile: the device has failed"
	if got := ending(nil, path); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var record map[string]any
	if err := json.Unmarshal([]byte(strings.SplitAfter(out.String(), "\n")[0]), &record); err != nil ||
		record["level"] != slog.LevelWarn.String() {
		t.Errorf("%v: %v", err, record)
	}
}
