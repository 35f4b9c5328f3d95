package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	_ "tensile/internal/long" // the flag -long
)

// files are a module whose packages pass, skip, fail, panic, have no tests and do not build.
var files = map[string]string{
	"go.mod": "module example\n\ngo 1.26.0\n",
	"pass/pass_test.go": `package pass

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) { fmt.Println("from main"); os.Exit(m.Run()) }
func TestLoud(t *testing.T) { fmt.Println("printed"); t.Log("logged") }
func TestParts(t *testing.T) {
	t.Run("one", func(t *testing.T) { t.Skip("needs a moon: wait") })
	t.Run("two", func(t *testing.T) { t.Skipf("needs a moon: look %s", "up") })
	t.Run("three", func(t *testing.T) { t.Skip("long: make test-all runs it") })
}
func TestRain(t *testing.T)  { t.Log("first"); t.Skip("needs rain: dance") }
func TestOther(t *testing.T) { t.Skip("the race detector is slow") }
`,
	"none/none.go": "package none\n",
	"fail/fail_test.go": `package fail

import "testing"

func TestGood(t *testing.T) { t.Log("not printed") }
func TestBad(t *testing.T) {
	t.Run("inner", func(t *testing.T) { t.Error("two\nlines") })
	t.Run("skipped", func(t *testing.T) { t.Skip("needs a moon: wait") })
}
`,
	"build/build_test.go": "package build\n\nfunc f() { undefined() }\n",
	"crash/crash_test.go": `package crash

import "testing"

func TestFirst(t *testing.T) { t.Log("not printed") }
func TestNil(t *testing.T)   { var p *int; *p = 1 }
`,
}

func module(t *testing.T, without ...string) string {
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range without {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var changing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\t(\d+\.\d+s|\(cached\))`), "\tTIME"},
	{regexp.MustCompile(`\(\d+\.\d+s\)`), "(TIME)"},
	{regexp.MustCompile(`goroutine \d+`), "goroutine N"},
	{regexp.MustCompile(`(?m)0x[0-9a-f]+\??|pc=\S+| \+0x\S+`), "HEX"},
	{regexp.MustCompile(`(?m)^[\t ]+\S+\.go:\d+ .*$|^\S+\(.*HEX.*\)$`), "FRAME"},
}

func still(text string) string {
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.by)
	}
	return text
}

// Nothing that go test says of failures is lost, nothing of tests that passed is added.
func TestSaysWhatGoTestSays(t *testing.T) {
	dir := module(t)
	plain := exec.Command("go", "test", "./...")
	plain.Dir = dir
	var wantOut, wantErr strings.Builder
	plain.Stdout, plain.Stderr = &wantOut, &wantErr
	if err := plain.Run(); err == nil {
		t.Fatal("go test passed")
	}
	var out, errs strings.Builder
	code, err := run(&out, &errs, dir, nil, []string{"./..."})
	if err != nil || code != 1 {
		t.Fatalf("exit code %d, %v, want 1", code, err)
	}
	got, skips, _ := strings.Cut(still(out.String()), "skipped: ")
	got, long, _ := strings.Cut(got, "long tests left to make test-all: ")
	if want := "1, and the full length of others\n"; long != want {
		t.Errorf("long tests: %q, want %q", long, want)
	}
	if want := "3 need a moon, 1 needs rain\n"; skips != want {
		t.Errorf("skipped: %q, want %q", skips, want)
	}
	lines := make(map[string]int)
	for line := range strings.Lines(still(wantOut.String() + wantErr.String())) {
		lines[strings.TrimSpace(line)]++
	}
	for line := range strings.Lines(got + errs.String()) {
		lines[strings.TrimSpace(line)]--
	}
	for line, n := range lines {
		switch {
		case line == "FAIL": // at the end of each failed package and of all; the json form has none for all
		case n > 0:
			t.Errorf("not printed: %s", line)
		case n < 0:
			t.Errorf("printed beside what go test prints: %s", line)
		}
	}
	if t.Failed() {
		t.Logf("go test:\n%s%s\ntestrun:\n%s%s", &wantOut, &wantErr, &out, &errs)
	}
}

// A result of the cache tells of its skips again; a variable that a test reads makes it run again.
func TestCached(t *testing.T) {
	dir := module(t, "fail", "build", "crash")
	for i := range 2 {
		var out, errs strings.Builder
		code, err := run(&out, &errs, dir, nil, []string{"./..."})
		if err != nil || code != 0 {
			t.Fatalf("exit code %d, %v\n%s", code, err, &errs)
		}
		if i == 1 && !strings.Contains(out.String(), "(cached)") {
			t.Errorf("the second run was not cached:\n%s", &out)
		}
		if want := "ok  \texample/pass\tTIME\nlong tests left to make test-all: 1, and the full length of others\n" +
			"skipped: 2 need a moon, 1 needs rain\n"; !strings.HasSuffix(
			still(out.String()), want) {
			t.Errorf("run %d: %q, want it to end in %q", i, &out, want)
		}
	}
}

// What cannot be run at all is an error with go's own words.
func TestNoPackages(t *testing.T) {
	var out, errs strings.Builder
	code, err := run(&out, &errs, module(t), nil, []string{"./absent"})
	if err != nil || code != 1 || !strings.Contains(out.String()+errs.String(), "absent") {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, &out, &errs)
	}
}

// A process that a test leaves behind is a failure with its command line, and is killed.
func TestLeftBehind(t *testing.T) {
	defer func(was time.Duration) { grace = was }(grace)
	grace = 0
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example\n\ngo 1.26.0\n", "x_test.go": `package x

import (
	"os/exec"
	"syscall"
	"testing"
)

func TestLeaves(t *testing.T) {
	c := exec.Command("sleep", "4321")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs strings.Builder
	code, err := run(&out, &errs, dir, nil, []string{"-count=1", "."})
	if err != nil || code != 1 || !strings.Contains(out.String(), "FAIL: a test has left a process: sleep 4321\n") {
		t.Errorf("exit code %d, %v, want 1 and the process:\n%s%s", code, err, &out, &errs)
	}
}
