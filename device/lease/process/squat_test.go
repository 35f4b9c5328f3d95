package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// asNobody has a function run as another user, on a thread that ends with it.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs another user: run the tests as root")
	}
	const nobody = 65534
	var work sync.WaitGroup
	work.Go(func() {
		runtime.LockOSThread() // for good
		same := ^uintptr(0)
		if _, _, no := syscall.RawSyscall(syscall.SYS_SETRESUID, same, nobody, same); no != 0 {
			t.Error(no)
			return
		}
		f()
	})
	work.Wait()
}

// What another user has at slots is no client, and nobody waits for it, whether it listens or not. A client that finds
// no other slot says so.
func TestSlotsOfStrangers(t *testing.T) {
	name := t.TempDir() // which nobody else has
	c := client(t, Options{Name: name})
	defer c.release()
	silent, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	must(t, err)
	defer syscall.Close(silent)
	bound := -1 // the slot of the one that does not listen
	asNobody(t, func() {
		for n := range maxClients {
			slot := strconv.Itoa(n)
			if bound < 0 && slot != slotOf(c.id) {
				bound = n
				if err := syscall.Bind(silent, &syscall.SockaddrUnix{Name: address(name, slot).Name}); err != nil {
					t.Error(err)
				}
			} else if l, held, err := bind(address(name, slot)); err == nil {
				t.Cleanup(func() { l.Close() })
			} else if !held {
				t.Error(err)
			}
		}
	})
	if got := taken(name); !slices.Equal(got, []string{slotOf(c.id)}) {
		t.Errorf("slots %v are clients', want %s", got, slotOf(c.id))
	}
	if _, err := NewClient(Options{Name: name}); err == nil || !strings.Contains(err.Error(), "ss -xlp") {
		t.Errorf("of a client without a slot: %v", err)
	}
}

// A client finds the only place that is left.
func TestLastSlot(t *testing.T) {
	name := t.TempDir() // which nobody else has
	const last = "17"
	for n := range maxClients {
		if slot := strconv.Itoa(n); slot != last {
			l, _, err := bind(address(name, slot))
			must(t, err)
			defer l.Close()
		}
	}
	lock, client, err := takeSlot(name)
	must(t, err)
	defer lock.Close()
	if slotOf(client) != last {
		t.Errorf("client %s has another slot than %s", client, last)
	}
}

// A client that has ended holds nothing, although another user has its slot by then. One whose slot nobody can look
// into is waited for, and a line says so.
func TestWaitsForClients(t *testing.T) {
	name := t.TempDir() // which nobody else has
	var stranger net.Listener
	asNobody(t, func() { stranger, _, _ = bind(address(name, "7")) })
	defer stranger.Close()
	full, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	must(t, err)
	defer syscall.Close(full)
	must(t, syscall.Bind(full, &syscall.SockaddrUnix{Name: address(name, "8").Name}))
	must(t, syscall.Listen(full, 0))
	for range 3 {
		if conn, err := net.DialUnix("unix", nil, address(name, "8")); err == nil {
			defer conn.Close()
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		s := &server{name: name, start: time.Now(), options: ServeOptions{Log: func(line string) {
			lines = append(lines, line)
		}}}
		s.hub = newHub([]string{"7", "8"})
		for range 2000 {
			time.Sleep(probeEvery)
			s.probe()
		}
		if len(s.hub.awaited) != 1 || !s.hub.awaited["8"] {
			t.Errorf("it waits for %v, want 8", s.hub.awaited)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "does not hear of 1: ") {
			t.Errorf("it says %q", lines)
		}
	})
}

// A process of another user is told nothing and closed, and only the first one is logged.
func TestStrangerIsRefused(t *testing.T) {
	name := t.TempDir() // which nobody else has
	l, err := Listen(name)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var lines []string
	var work sync.WaitGroup
	work.Go(func() {
		Serve(ctx, name, l, ServeOptions{Log: func(line string) { lines = append(lines, line) }})
	})
	asNobody(t, func() {
		for range 3 {
			conn, err := net.DialUnix("unix", nil, address(name, ""))
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprintln(conn, `{"hello":{"version":1,"client":"1xA"}}`)
			if said, _ := io.ReadAll(conn); len(said) > 0 {
				t.Errorf("it is told %s", said)
			}
			conn.Close()
		}
	})
	cancel()
	work.Wait()
	if len(lines) != 1 || !strings.Contains(lines[0], "a process was refused: user 65534") {
		t.Errorf("it logs %q", lines)
	}
}
