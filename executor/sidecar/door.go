package sidecar

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"tensile/device/lease/process"
)

// Door is where the processes of a command come to be planned for: at the other end of a pair of sockets, which the
// command has as a descriptor, or at an address. That is an abstract one, which every process of this machine's network
// can reach, also where a launcher such as torchrun has closed the descriptors that it was given, and which leaves no
// file behind. Only processes of the same user come in.
type Door struct {
	listener *net.UnixListener
	pair     *net.UnixConn // Our end of the pair.
	theirs   *os.File
	joined   chan *net.UnixConn
	served   sync.WaitGroup
}

// maxWaiting is how many processes may have come that nobody has taken yet: a host has fewer processors.
const maxWaiting = 1 << 10

// OpenDoor opens a door at a new address.
func OpenDoor() (*Door, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@tensile-script-" + rand.Text(), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for the script: %w", err)
	}
	d := &Door{listener: l, joined: make(chan *net.UnixConn, maxWaiting+1)}
	if d.pair, d.theirs, err = socketPair(); err != nil {
		l.Close()
		return nil, fmt.Errorf("make a connection to the script: %w", err)
	}
	d.served.Go(d.serve)
	d.served.Go(d.await)
	return d, nil
}

// socketPair makes a pair of connected sockets.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	file, theirs := os.NewFile(uintptr(fds[0]), "sidecar"), os.NewFile(uintptr(fds[1]), "script")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// Theirs is the script's end of the pair. Whoever starts the command closes it here.
func (d *Door) Theirs() *os.File { return d.theirs }

// Address is what a script connects to; an @ stands for the null byte that makes it abstract.
func (d *Door) Address() string { return d.listener.Addr().String() }

// Joined has the connections of the processes that come, in their order. It is closed when no more will.
func (d *Door) Joined() <-chan *net.UnixConn { return d.joined }

// Close lets in who has come before it, and nobody after that.
func (d *Door) Close() {
	_ = d.pair.CloseRead() // what was said before is still read
	defer func() {
		d.served.Wait()
		close(d.joined)
	}()
	// The queue of a listener is in order: when our own connection comes out of it, all have that came before.
	last, err := net.DialUnix("unix", nil, d.listener.Addr().(*net.UnixAddr))
	if err != nil {
		d.listener.Close() // its queue is full of processes that are not let in
		return
	}
	last.Close()
}

// await hands on our end of the pair when its process says something.
func (d *Door) await() {
	raw, err := d.pair.SyscallConn()
	said := false
	if err == nil {
		err = raw.Read(func(fd uintptr) bool {
			n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
			said = n > 0
			return !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
		})
	}
	if said && err == nil {
		d.joined <- d.pair // there is room for one more than for those at the address
	} else {
		d.pair.Close()
	}
}

func (d *Door) serve() {
	defer d.listener.Close()
	for {
		conn, err := d.listener.AcceptUnix()
		if err != nil {
			return
		}
		peer, err := process.PeerOf(conn)
		switch {
		case err != nil || int(peer.Uid) != os.Geteuid():
			conn.Close()
		case int(peer.Pid) == os.Getpid():
			conn.Close()
			return
		default:
			if len(d.joined) < maxWaiting {
				d.joined <- conn
			} else {
				conn.Close()
			}
		}
	}
}
