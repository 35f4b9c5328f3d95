//go:build linux

package main

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// family is a command that was started, with all processes that it starts and that these start.
type family struct {
	t       *testing.T
	dir     string // its TMPDIR, and a part of its executors' command lines
	command *exec.Cmd
	lines   *bufio.Scanner // of stdout
	stderr  bytes.Buffer
	alive   *os.File // is at its end when no process of it is left
	wait    func() error
}

// start starts a command line. Its temporary files go to dir, which is the test's own.
func start(t *testing.T, dir string, args ...string) *family {
	t.Helper()
	return startWith(t, dir, nil, args...)
}

// startWith is start with more variables of the environment.
func startWith(t *testing.T, dir string, environment []string, args ...string) *family {
	t.Helper()
	return startCommand(t, dir, environment, append([]string{"tensile"}, args...)...)
}

// startCommand is startWith for any command line, which may end in one of ours.
func startCommand(t *testing.T, dir string, environment []string, words ...string) *family {
	t.Helper()
	alive, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &family{t: t, dir: dir, command: exec.Command(words[0], words[1:]...), alive: alive}
	p.command.Dir = dir
	p.command.Env = slices.Concat(os.Environ(), []string{"GORACE=" + noPause, "TMPDIR=" + dir}, environment)
	// which executors inherit, so that who is the last closes it; file 3 is the lock of each
	p.command.ExtraFiles = []*os.File{nil, held}
	p.command.Stderr = &p.stderr
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(stdout)
	err = p.command.Start()
	held.Close()
	if err != nil {
		t.Fatal(err)
	}
	p.wait = sync.OnceValue(func() error {
		for p.lines.Scan() { // Wait closes the pipe
		}
		return p.command.Wait()
	})
	t.Cleanup(func() { // of a test that has failed
		p.command.Process.Kill()
		if t.Failed() {
			killFamily(t, dir)
		}
		p.wait()
		for _, pid := range executors(t, dir) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		alive.Close()
	})
	return p
}

// killFamily kills all processes below the command of a folder. A script outlives its command, and would hold the
// output for whose end the test waits.
func killFamily(t *testing.T, dir string) {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range environments {
		text, _ := os.ReadFile(path) // it may have ended
		if slices.Contains(strings.Split(string(text), "\x00"), "TMPDIR="+dir) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// stamp is the time before a line of a log.
var stamp = regexp.MustCompile(`^[0-9]{2}:[0-9]{2}:[0-9]{2} `)

// line reads stdout up to a line that matches, and returns the lines.
func (p *family) line(pattern string) []string {
	p.t.Helper()
	wanted := regexp.MustCompile(pattern)
	var lines []string
	for p.lines.Scan() {
		text := stamp.ReplaceAllString(p.lines.Text(), "")
		if lines = append(lines, text); wanted.MatchString(text) {
			return lines
		}
	}
	p.t.Fatalf("%q ended without a line that matches %s: %v, stderr: %s; stdout:\n%s",
		p.command.Args, pattern, p.wait(), &p.stderr, strings.Join(lines, "\n"))
	return nil
}

// unanswered are lines of a log that an executor writes to stderr where the machine is so busy that messages get no
// answer in time, or while it is cut off.
var unanswered = regexp.MustCompile(
	`(?m)^[0-9]{2}:[0-9]{2}:[0-9]{2} (the controller cannot be told|connection to) .*\n`)

// ends waits for the command, wants an exit status and on stderr nothing or one line that matches, beside those that
// are unanswered, and returns the rest of stdout.
func (p *family) ends(code int, pattern string) string {
	p.t.Helper()
	var rest strings.Builder
	for p.lines.Scan() {
		rest.WriteString(stamp.ReplaceAllString(p.lines.Text(), "") + "\n")
	}
	p.wait()
	if got := p.command.ProcessState.ExitCode(); got != code {
		p.t.Errorf("%q: exit status %d, want %d; stderr: %s", p.command.Args, got, code, &p.stderr)
	}
	line, ended := strings.CutSuffix(unanswered.ReplaceAllString(p.stderr.String(), ""), "\n")
	if pattern == "" && line != "" || pattern != "" && (!ended || strings.Contains(line, "\n") ||
		!regexp.MustCompile(pattern).MatchString(line)) {
		p.t.Errorf("%q: stderr is not one line that matches %q: %q", p.command.Args, pattern, line)
	}
	return rest.String()
}

// vanishes waits until no process of it is left.
func (p *family) vanishes() {
	p.t.Helper()
	if end, ok := p.t.Deadline(); ok {
		p.alive.SetReadDeadline(end.Add(-reserve))
	}
	if _, err := io.Copy(io.Discard, p.alive); err != nil {
		p.t.Fatalf("%q: executors %v are left: %v", p.command.Args, executors(p.t, p.dir), err)
	}
}

// reserve is the time for saying what a test waits for when its own is over.
const reserve = 10 * time.Second

// signal signals the command alone.
func (p *family) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// executors maps the names of the executors whose credentials lie below dir to their process ids.
func executors(t *testing.T, dir string) map[string]int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]int)
	for _, path := range lines {
		text, _ := os.ReadFile(path) // it may have ended
		args := strings.Split(string(text), "\x00")
		if i := slices.Index(args, "--credentials"); i > 0 && i+1 < len(args) && strings.HasPrefix(args[i+1], dir+"/") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			found[strings.TrimSuffix(filepath.Base(args[i+1]), ".json")] = pid
		}
	}
	return found
}

// kill ends a process the hard way.
func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 0 { // which would be a whole group
		t.Fatalf("there is no process %d to be killed", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// startRun starts two jobs that train in processes of their own, and returns when both do, with the processes.
func startRun(t *testing.T, args ...string) (*family, map[string]int) {
	t.Helper()
	dir := t.TempDir()
	p := start(t, dir, append([]string{"run", "lenet:2", "--batch", "2", "--image", "12",
		"--link", slow("1MB/s")}, args...)...)
	for first := ""; ; {
		lines := p.line(`^  lenet\.[12] .* it/s `)
		name := strings.Fields(lines[len(lines)-1])[0]
		if first != "" && name != first {
			return p, executors(t, dir)
		}
		first = name
	}
}

// nothing wants every process of the family to end, and no file of a run to be left.
func (p *family) nothing() {
	p.t.Helper()
	p.vanishes()
	if names := files(p.t, p.dir); len(names) > 0 {
		p.t.Errorf("%q were left behind", names)
	}
}

// Jobs that train in processes of their own have the bits of a run without a plan. Nothing is left of either run.
func TestRunProcesses(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "run", "lenet:2", "--batch", "2", "--image", "12", "--iterations", "50", "--budget",
		"70%", "--compare")
	if n := strings.Count(p.ends(0, ""), "  identical\n"); n != 2 {
		t.Errorf("the table says of %d jobs that their bits are identical, want 2", n)
	}
	p.nothing()
}

// With --share one process trains all jobs.
func TestRunShares(t *testing.T) {
	t.Parallel()
	p, found := startRun(t, "--iterations", forever, "--share")
	if len(found) != 1 {
		t.Errorf("%v train the jobs, want one process", found)
	}
	p.signal(syscall.SIGTERM)
	p.ends(130, "^tensile: interrupted: the jobs were stopped")
	p.nothing()
}

// Each job has a process of its own, which ends when the run is interrupted.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	p, found := startRun(t, "--iterations", forever, "--budget", "70%")
	names := slices.Sorted(maps.Keys(found))
	if !slices.Equal(names, []string{"x1", "x2"}) || found["x1"] == found["x2"] ||
		found["x1"] == p.command.Process.Pid {
		t.Errorf("%v train the jobs of process %d, want x1 and x2, each in its own", found, p.command.Process.Pid)
	}
	p.signal(syscall.SIGINT)
	p.ends(130, "^tensile: interrupted: the jobs were stopped")
	p.nothing()
}

// A run can not be finished without one of its jobs, if that does not go on from a checkpoint. It says which, and why.
func TestRunLosesExecutor(t *testing.T) {
	t.Parallel()
	p, found := startRun(t, "--iterations", forever, "--budget", "70%", "--checkpoint", "none")
	kill(t, found["x2"])
	p.ends(1, `^tensile: job lenet\.2 failed after [0-9]+ iterations: its executor ended: signal: killed`)
	p.nothing()
}

// Executors of a run end with it, and tidy up after it.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	p, found := startRun(t, "--iterations", forever, "--budget", "70%")
	if len(found) != 2 {
		t.Errorf("%v train the jobs, want two", found)
	}
	p.signal(syscall.SIGKILL)
	p.ends(-1, "")
	p.nothing()
}

// The controller that bench observe starts, and its executors, end with it, and tidy up after it: whether it is killed
// as soon as there is a controller, or when that starts an executor.
func TestBenchObserveKilled(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{clientFile, filepath.Join("executors", "*.log")} {
		p := start(t, t.TempDir(), "bench", "observe", "--jobs", "2", "--window", "24h")
		end, limited := t.Deadline()
		for found := []string(nil); len(found) == 0; {
			if limited && time.Until(end) < reserve {
				t.Fatalf("there is no %s in %s; stderr: %s", pattern, p.dir, &p.stderr)
			}
			time.Sleep(10 * time.Millisecond)
			found, _ = filepath.Glob(filepath.Join(p.dir, "tensile-bench-*", pattern)) // the pattern is right
		}
		p.signal(syscall.SIGKILL)
		p.ends(-1, "")
		p.nothing()
	}
}
