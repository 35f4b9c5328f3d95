//go:build linux

package reap

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "tensile/internal/long" // the flag -long
)

// asTests is the variable by which this binary takes the part of tests that start a process and leave it.
const asTests = "REAP_TESTS"

func TestMain(m *testing.M) {
	how := os.Getenv(asTests)
	if how == "" {
		os.Exit(m.Run())
	}
	os.Exit(Main(func() int {
		// a child that outlives its parent, as an executor does
		c := exec.Command("sh", "-c", "echo $$ >"+filepath.Join(os.Getenv("REAP_DIR"), "pid")+"; exec sleep 1000")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if how == "end" {
			c = exec.Command("true")
		}
		if err := c.Start(); err != nil {
			panic(err)
		}
		for how == "orphan" { // until it is ended
			time.Sleep(time.Minute)
		}
		for how == "die" { // not before the child is there
			if _, err := os.Stat(filepath.Join(os.Getenv("REAP_DIR"), "pid")); err == nil {
				panic("tests have died")
			}
		}
		return 0
	}))
}

// Nothing outlives tests that die: what they started is killed. Tests that pass and leave nothing pass.
func TestMainReaps(t *testing.T) {
	for how, want := range map[string]string{"die": "panic: tests have died", "end": ""} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), asTests+"="+how, "REAP_DIR="+dir)
			var said bytes.Buffer
			c.Stdout, c.Stderr = &said, &said
			if err := c.Run(); (err != nil) != (want != "") || !strings.Contains(said.String(), want) {
				t.Fatalf("%v, want an error with %q: %s", err, want, &said)
			}
			pid, err := os.ReadFile(filepath.Join(dir, "pid"))
			if how == "end" {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
				t.Errorf("process %s is left", pid)
			}
		})
	}
}

// A process that stays is killed after the time that it was given, and named.
func TestLeft(t *testing.T) {
	if err := Adopt(); err != nil {
		t.Fatal(err)
	}
	// the shell ends at once, and its child is adopted
	if err := exec.Command("sh", "-c", "sleep 1234 & exit 0").Run(); err != nil {
		t.Fatal(err)
	}
	left := KillLeftovers(0)
	if len(left) != 1 || !strings.Contains(left[0], "sleep 1234") {
		t.Errorf("%q were left, want the sleep", left)
	}
	if left := KillLeftovers(0); len(left) > 0 {
		t.Errorf("%q are left after that", left)
	}
}

// When the process that runs the tests is killed, the tests and what they started end.
func TestParentDies(t *testing.T) {
	if err := Adopt(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// the shell waits for the tests, as the go command does
	c := exec.Command("sh", "-c", os.Args[0]+"; true")
	c.Env = append(os.Environ(), asTests+"=orphan", "REAP_DIR="+dir)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for pid, err := []byte(nil), error(nil); len(pid) == 0; pid, err = os.ReadFile(filepath.Join(dir, "pid")) {
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	c.Process.Kill()
	c.Wait()
	if left := KillLeftovers(time.Hour); len(left) > 0 { // the tests' own timeout is before that
		t.Errorf("%q were left", left)
	}
}
