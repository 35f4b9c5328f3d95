package reap

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// grace is how long processes may take to end by themselves after the tests.
const grace = time.Minute

// inside is the environment variable that says that the tests of a package run below [Main] already: the process id of
// that.
const inside = "TENSILE_TEST_REAPER"

// What prctl(2) sets: PR_SET_CHILD_SUBREAPER, and PR_SET_PDEATHSIG, the signal at the death of the parent.
const (
	subreaper   = 36
	parentDeath = 1
)

// Adopt makes this process the parent of every descendant whose parent ends.
func Adopt() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, subreaper, 1, 0); errno != 0 {
		return fmt.Errorf("reap: prctl: %w", errno)
	}
	return nil
}

// Main runs the tests of a package, for its TestMain, and returns the exit code. It runs this program once more and
// waits for it and for all processes that the tests have started. Tests that passed fail if a process is left after a
// minute. When the tests fail or die, or the go command that runs them dies, what they have started is killed at once.
func Main(run func() int) int {
	if os.Getenv(inside) == strconv.Itoa(os.Getppid()) {
		os.Unsetenv(inside)
		return run()
	}
	runtime.LockOSThread() // the death of this thread is the signal for the child
	if err := Adopt(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c := exec.Command("/proc/self/exe", os.Args[1:]...)
	c.Args[0] = os.Args[0]
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), inside+"="+strconv.Itoa(os.Getpid()))
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGINT, syscall.SIGTERM)
	// the tests are over when the go command dies; where this fails they go on to their end
	syscall.RawSyscall(syscall.SYS_PRCTL, parentDeath, uintptr(syscall.SIGTERM), 0)
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "reap:", err)
		return 1
	}
	go func() { // go test asks for the stacks of tests that take too long
		for s := range signals {
			c.Process.Signal(s)
		}
	}()
	var status syscall.WaitStatus
	for pid := 0; pid != c.Process.Pid; { // the others have been adopted, and have ended
		var err error
		if pid, err = syscall.Wait4(-1, &status, 0, nil); err != nil && err != syscall.EINTR {
			fmt.Fprintln(os.Stderr, "reap: wait4:", err)
			return 1
		}
	}
	if status != 0 {
		KillLeftovers(0)
		return max(status.ExitStatus(), 1) // -1 after a signal
	}
	if left := KillLeftovers(grace); len(left) > 0 {
		fmt.Printf("FAIL: the tests have left processes:\n%s\n", strings.Join(left, "\n"))
		return 1
	}
	return 0
}

// KillLeftovers waits until every process below this one has ended, and kills those that have not after a time. It
// returns their command lines, without repetition. Call it when no other goroutine waits for a child.
func KillLeftovers(grace time.Duration) []string {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR {
				return // ECHILD
			}
		}
	}()
	var left []string
	for wait := grace; ; wait = 100 * time.Millisecond { // the children of what is killed come to this process
		select {
		case <-ended:
			return left
		case <-time.After(wait):
		}
		for _, pid := range children() {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			text := strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
			if text != "" && !slices.Contains(left, text) { // a zombie has none
				left = append(left, text)
			}
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// children are the processes whose parent this one is, by the fields of proc(5).
func children() []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	var pids []int
	for _, file := range files {
		text, _ := os.ReadFile(file)                            // it may have ended
		rest := string(text[bytes.LastIndexByte(text, ')')+1:]) // names may have brackets
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
