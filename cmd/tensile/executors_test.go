package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Executors are found among all processes, whatever these are called.
func TestLocalExecutors(t *testing.T) {
	proc := t.TempDir()
	file := filepath.Join(t.TempDir(), "lab.json")
	write(t, file, "{}")
	write(t, filepath.Join(proc, "stat"), "cpu 1 2\nbtime 1000\nprocesses 5\n")
	for pid, p := range map[string]struct{ args, name string }{
		"7":  {"tensile executor --credentials " + file, "tensile"},
		"8":  {"a executor --credentials=" + file + ".not --device cpu", "a) R (b"},
		"9":  {"tensile controller --credentials " + file, "tensile"},
		"10": {"executor", "executor"},
	} {
		if err := os.Mkdir(filepath.Join(proc, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(proc, pid, "cmdline"), strings.ReplaceAll(p.args, " ", "\x00")+"\x00")
		write(t, filepath.Join(proc, pid, "stat"), pid+" ("+p.name+") S"+strings.Repeat(" 0", 18)+" 250 0\n")
	}
	found, err := localExecutors(proc)
	if err != nil || len(found) != 2 {
		t.Fatalf("found %+v: %v", found, err)
	}
	since := time.Unix(1002, 500e6)
	for i, want := range []localExecutor{{PID: 7, Name: "lab", Since: since, Credentials: file},
		{PID: 8, Name: "lab.json.not", Since: since, Credentials: file + ".not", Gone: true}} {
		if got := found[i]; !got.Since.Equal(want.Since) || got.PID != want.PID || got.Name != want.Name ||
			got.Credentials != want.Credentials || got.Gone != want.Gone {
			t.Errorf("found %+v, want %+v", got, want)
		}
	}
}
