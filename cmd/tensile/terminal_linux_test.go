package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// No command but top asks a terminal for anything: one that does not answer would be waited for. The terminal is one
// that a process may ask, which it controls and is in the foreground of.
func TestAsksNoTerminal(t *testing.T) {
	master, slave := pty(t)
	c := exec.Command("tensile", "--version")
	c.Env = []string{"TERM=xterm-256color", "HOME=" + t.TempDir()}
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close() // so that the other end ends with the process
	said, err := io.ReadAll(master)
	if err != nil && !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v: %q", err, said)
	}
	if !strings.HasPrefix(string(said), "tensile ") || strings.ContainsRune(string(said), '\x1b') {
		t.Errorf("a terminal was sent %q, want the version alone", said)
	}
}

// pty opens a pseudo-terminal of Linux.
func pty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	var number, unlocked int32
	for request, arg := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(arg))); e != 0 {
			t.Fatal(e)
		}
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}
