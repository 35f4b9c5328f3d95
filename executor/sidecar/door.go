package sidecar

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"

	"tensile/device/lease/process"
)

// Door is where the processes of a command come to be planned for. Its address is an abstract one, which every process
// of this machine's network can reach, also where a launcher such as torchrun has closed the descriptors that it was
// given, and which leaves no file behind. Only processes of the same user come in.
type Door struct {
	listener *net.UnixListener
	joined   chan *net.UnixConn
}

// maxWaiting is how many processes may have come that nobody has taken yet: a host has fewer processors.
const maxWaiting = 1 << 10

// OpenDoor opens a door at a new address.
func OpenDoor() (*Door, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@tensile-script-" + rand.Text(), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for the script: %w", err)
	}
	d := &Door{listener: l, joined: make(chan *net.UnixConn, maxWaiting)}
	go d.serve()
	return d, nil
}

// Address is what a script connects to; an @ stands for the null byte that makes it abstract.
func (d *Door) Address() string { return d.listener.Addr().String() }

// Joined has the connections of the processes that come, in their order. It is closed when no more will.
func (d *Door) Joined() <-chan *net.UnixConn { return d.joined }

// Close lets in who has come before it, and nobody after that.
func (d *Door) Close() {
	// The queue of a listener is in order: when our own connection comes out of it, all have that came before.
	last, err := net.DialUnix("unix", nil, d.listener.Addr().(*net.UnixAddr))
	if err != nil {
		d.listener.Close() // its queue is full of processes that are not let in
		return
	}
	last.Close()
}

func (d *Door) serve() {
	defer close(d.joined)
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
			select {
			case d.joined <- conn:
			default:
				conn.Close()
			}
		}
	}
}
