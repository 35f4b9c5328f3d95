package lifelock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "tensile/internal/long" // the flag -long
)

// asChild is the variable that makes the test binary a process that holds a lock.
const asChild = "LIFELOCK_CHILD"

// TestMain serves as a child: it holds the lock that it is told, or has inherited, says so, and waits.
func TestMain(m *testing.M) {
	what := strings.Split(os.Getenv(asChild), "|")
	if len(what) != 3 {
		os.Exit(m.Run())
	}
	folder, name, life := what[0], what[1], what[2]
	var l *Lock
	var err error
	if folder == "" {
		l, err = Inherit(3)
	} else {
		l, err = Take(folder, name)
	}
	if err == nil {
		err = l.Sign("here, process 1", time.Now(), life)
	}
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("held after " + strings.Join(l.Dead(), " ") + "\n")
	io.Copy(io.Discard, os.Stdin)
	l.Release()
}

// child is a process that holds a lock.
type child struct {
	t       *testing.T
	command *exec.Cmd
	stdin   io.WriteCloser
	said    string // its line
}

func startChild(t *testing.T, folder, name, life string, inherited ...*os.File) *child {
	t.Helper()
	c := &child{t: t, command: exec.Command(os.Args[0])}
	c.command.Env = append(os.Environ(), asChild+"="+folder+"|"+name+"|"+life)
	c.command.ExtraFiles = inherited
	stdout, err := c.command.StdoutPipe()
	must(t, err)
	c.stdin, err = c.command.StdinPipe()
	must(t, err)
	must(t, c.command.Start())
	t.Cleanup(func() { c.command.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	c.said = strings.TrimSpace(line)
	return c
}

// ends waits for the process.
func (c *child) ends() { c.command.Wait() }

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	must(c.t, c.command.Process.Signal(s))
}

// stopped waits until the process stands still.
func (c *child) stopped() {
	c.t.Helper()
	var status syscall.WaitStatus
	_, err := syscall.Wait4(c.command.Process.Pid, &status, syscall.WUNTRACED, nil)
	if err != nil || !status.Stopped() {
		c.t.Fatalf("the process has not stopped: %v, %v", status, err)
	}
}

func wantLives(t *testing.T, folder string, lives, known bool) {
	t.Helper()
	if gotLives, gotKnown := Lives(folder, "a"); gotLives != lives || gotKnown != known {
		t.Errorf("lives %v, known %v; want %v, %v", gotLives, gotKnown, lives, known)
	}
}

// A process holds its lock until it ends, also while it is stopped. The next one is told which lives have ended.
func TestLives(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "locks")
	wantLives(t, folder, false, false)
	first := startChild(t, folder, "a", "one")
	if first.said != "held after" {
		t.Errorf("the first says %q", first.said)
	}
	wantLives(t, folder, true, true)
	_, err := Take(folder, "a")
	held, ok := errors.AsType[*HeldError](err)
	if !ok || !strings.HasPrefix(held.Holder, "here, process 1 since ") ||
		!strings.HasPrefix(err.Error(), "a runs already on here, process 1 since ") {
		t.Errorf("a second holder: %v", err)
	}
	first.signal(syscall.SIGSTOP)
	first.stopped()
	wantLives(t, folder, true, true)
	first.signal(syscall.SIGKILL)
	first.ends()
	wantLives(t, folder, false, true)

	second := startChild(t, folder, "a", "two")
	if second.said != "held after one" {
		t.Errorf("the second says %q", second.said)
	}
	second.stdin.Close()
	second.ends()
	third := startChild(t, folder, "a", "three")
	if third.said != "held after two one" {
		t.Errorf("the third says %q", third.said)
	}
	third.signal(syscall.SIGKILL)
	third.ends()
	must(t, Remove(folder, "a"))
	must(t, Remove(folder, "a"))
	wantLives(t, folder, false, false)
}

// Nobody who looks while a lock is taken for the first time takes it for that of a process that has ended.
func TestFirstMoment(t *testing.T) {
	folder := t.TempDir()
	for i := range 1000 {
		name := fmt.Sprint("x", i)
		seen := make(chan bool)
		go func() {
			for {
				if lives, known := Lives(folder, name); known {
					seen <- lives
					return
				}
			}
		}()
		l, err := Take(folder, name)
		must(t, err)
		if !<-seen {
			t.Fatalf("lock %s is seen, and nobody holds it", name)
		}
		l.Release()
	}
	if left, err := os.ReadDir(folder); len(left) > 0 {
		t.Errorf("left behind: %d files (%v)", len(left), err)
	}
}

// A child that inherits a lock holds it after its parent has closed it, from before its first instruction.
func TestInherit(t *testing.T) {
	folder := t.TempDir()
	l, err := Take(folder, "a")
	must(t, err)
	c := startChild(t, "", "", "one", l.File())
	l.Leave()
	if c.said != "held after" {
		t.Errorf("the child says %q", c.said)
	}
	wantLives(t, folder, true, true)
	c.signal(syscall.SIGKILL)
	c.ends()
	wantLives(t, folder, false, true)
	if next := startChild(t, folder, "a", "two"); next.said != "held after one" {
		t.Errorf("the next says %q", next.said)
	}
	if c := startChild(t, "", "", "one"); !strings.Contains(c.said, "inherited file 3") {
		t.Errorf("a child that inherits nothing says %q", c.said)
	}
}

// A file remembers the newest lives; one that no process has written to its end counts as empty.
func TestMemory(t *testing.T) {
	folder := t.TempDir()
	for i := range maxLives + 3 {
		l, err := Take(folder, "a")
		must(t, err)
		if dead := l.Dead(); len(dead) != min(i, maxLives) || i > 0 && dead[0] != strings.Repeat("x", i) {
			t.Errorf("round %d: dead are %q", i, dead)
		}
		must(t, l.Sign("here", time.Now(), strings.Repeat("x", i+1)))
		l.Release()
	}
	must(t, os.WriteFile(filepath.Join(folder, "other"), nil, 0o600)) // keeps the folder
	for _, text := range []string{"here\nlife\n", "\x00\xff", ""} {
		must(t, os.WriteFile(path(folder, "a"), []byte(text), 0o600))
		l, err := Take(folder, "a")
		must(t, err)
		if len(l.Dead()) > 0 {
			t.Errorf("of %q it says that %q are dead", text, l.Dead())
		}
		l.Release()
	}
	l, err := Take(filepath.Join(folder, "b"), "a")
	must(t, err)
	l.Release()
	if _, err := os.Stat(filepath.Join(folder, "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lock that nobody has signed leaves something: %v", err)
	}
	if _, err := Take(filepath.Join(folder, "other"), "a"); err == nil {
		t.Error("a file serves as a folder")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A lock that is swept and taken at the same time has a file: the next process that looks for it finds it held.
func TestSweep(t *testing.T) {
	folder := t.TempDir()
	if !sweep(folder, "a") {
		t.Error("a lock that nobody took counts as held")
	}
	stop, swept := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { swept <- n }()
		for {
			select {
			case <-stop:
				return
			default:
				if sweep(folder, "a") {
					n++
				}
			}
		}
	}()
	for range 1000 {
		l, err := Take(folder, "a")
		if _, held := errors.AsType[*HeldError](err); held {
			continue // by the sweeper
		}
		must(t, err)
		for range 20 {
			if removed(l.file, path(folder, "a")) {
				t.Fatal("a lock that is held has no file")
			}
		}
		l.file.Close() // the file stays, for the sweeper
	}
	close(stop)
	if n := <-swept; n == 0 {
		t.Error("no file was swept")
	}
	if !sweep(folder, "a") {
		t.Error("a lock that nobody holds counts as held")
	}
}
