package reduce

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
)

// Neighbours are told by the system when the other host is gone, by a connection on which nothing is sent. None is cut
// off that only does not read: no timeout counts on what was sent and is not taken.
func TestHostsThatAreGone(t *testing.T) {
	lines, meetings := open(t, place(0, 2), place(1, 2))
	lines[1].Join(*meetings[0])
	checkReduces(t, lines)
	for name, c := range map[string]any{"who listens": lines[0].above, "who dials": lines[1].below} {
		both := c.(*link)
		for _, c := range []net.Conn{both.below, both.idle.below} {
			raw, err := c.(*net.TCPConn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			if err := raw.Control(func(fd uintptr) {
				const userTimeout = 18 // tcp(7)
				for option, want := range map[int]int{userTimeout: 0, syscall.TCP_KEEPIDLE: 5,
					syscall.TCP_KEEPINTVL: 2, syscall.TCP_KEEPCNT: 4} {
					got, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option)
					if err != nil || got != want {
						t.Errorf("%s: option %d is %d, want %d (%v)", name, option, got, want, err)
					}
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// silent is a connection on which nothing is ever read, until it breaks.
type silent struct {
	net.Conn
	broken chan error
}

func (s silent) Read([]byte) (int, error) { return 0, <-s.broken }

// A mean that waits for a neighbour ends when its host is found to be gone; not when only its process has ended, of
// which the connection of the means tells.
func TestHostIsGone(t *testing.T) {
	closed, ended, gone := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	a, b := net.Pipe()
	defer b.Close()
	l := New(0, 2, nil, a)
	l.watch(1, silent{nil, closed})
	l.watch(1, silent{nil, ended})
	l.watch(1, silent{nil, gone})
	var waits sync.WaitGroup
	waits.Go(func() {
		err := l.Mean(t.Context(), 0, "a", make([]float32, 3*chunk))
		if lost, ok := errors.AsType[*LostError](err); !ok || lost.Replica != 1 || !errors.Is(err, syscall.ETIMEDOUT) {
			t.Errorf("%v", err)
		}
	})
	if _, err := b.Read(make([]byte, 1)); err != nil { // it waits
		t.Fatal(err)
	}
	closed <- net.ErrClosed
	ended <- io.EOF
	gone <- &net.OpError{Op: "read", Err: syscall.ETIMEDOUT}
	waits.Wait()
	l.Close()
}

// Each side looks at its idle connection.
func TestNeighbourIsGone(t *testing.T) {
	for gone := range 2 {
		lines, meetings := open(t, place(0, 2), place(1, 2))
		lines[1].Join(*meetings[0])
		checkReduces(t, lines)
		link := []io.ReadWriteCloser{lines[0].above, lines[1].below}[gone].(*link)
		idle := link.idle.below.(*net.TCPConn)
		if err := errors.Join(idle.SetLinger(0), idle.Close()); err != nil { // as the system of a host that is back
			t.Fatal(err)
		}
		stays := 1 - gone
		err := lines[stays].Mean(t.Context(), 9, "a", make([]float32, 1))
		lost, ok := errors.AsType[*LostError](err)
		if !ok || lost.Replica != gone || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("replica %d: %v", stays, err)
		}
	}
}
