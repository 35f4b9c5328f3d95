package process

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// maxClients is how many processes may be clients of a lease at a time.
const maxClients = 1024

// HeldError is returned by [Listen] when another process serves the lease.
type HeldError struct{ Name string }

func (e *HeldError) Error() string { return fmt.Sprintf("another process serves the lease %s", e.Name) }

// Place is where a name of a lease means one lease: this machine since it was booted, this network namespace, whose are
// the names of abstract sockets, and this user. Neither the host's name nor any variable has a part in it.
func Place() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("boot %s, network %s, user %d", strings.TrimSpace(string(boot)), network, os.Geteuid()), nil
}

// address is that of the process of a lease, or of a client's lock where there is a slot. It belongs to one process at
// a time by the kernel, is no file that could be removed, and is free when the last process that has it open has ended.
func address(name, slot string) *net.UnixAddr {
	sum := sha256.Sum256([]byte(name))
	a := fmt.Sprintf("@tensile-lease-%x", sum[:16]) // an address has 108 bytes at most
	if slot != "" {
		a += "-" + slot
	}
	return &net.UnixAddr{Name: a, Net: "unix"}
}

// bind binds an address, or reports that it is another's.
func bind(a *net.UnixAddr) (l *net.UnixListener, held bool, err error) {
	l, err = net.ListenUnix("unix", a)
	return l, errors.Is(err, syscall.EADDRINUSE), err
}

// takeSlot takes the lock of a client: a slot that nobody else has. It returns the client's name, which nobody else
// ever has, and says which slot that is.
func takeSlot(name string) (lock *net.UnixListener, client string, err error) {
	first := randomSlot() // rarely that of a client that has just ended
	for k := range maxClients {
		slot := strconv.Itoa((first + k) % maxClients)
		l, held, err := bind(address(name, slot))
		if err == nil {
			return l, slot + "x" + rand.Text(), nil
		} else if !held {
			return nil, "", fmt.Errorf("lock a place at the lease of this device's memory: %w", err)
		}
	}
	return nil, "", fmt.Errorf("all %d places at the lease of this device's memory are taken: end one of the "+
		"processes that ss -xlp shows at %s-", maxClients, address(name, "").Name)
}

func randomSlot() int {
	var b [2]byte
	rand.Read(b[:]) // never fails
	return (int(b[0])<<8 | int(b[1])) % maxClients
}

// slotOf is the slot of a client by its name.
func slotOf(client string) string {
	slot, _, _ := strings.Cut(client, "x")
	return slot
}

// named reports whether a client may have a name.
func named(client string) bool {
	slot, rest, ok := strings.Cut(client, "x")
	n, err := strconv.Atoi(slot)
	other := func(c rune) bool { return (c < '0' || c > '9') && (c < 'A' || c > 'Z') }
	return ok && err == nil && n >= 0 && n < maxClients && strconv.Itoa(n) == slot && rest != "" && len(rest) <= 64 &&
		!strings.ContainsFunc(rest, other)
}

// free reports whether nobody has a slot. A client that tries to take it in that moment takes another one.
func free(name, slot string) bool {
	l, _, err := bind(address(name, slot))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// foreign reports whether who has a slot is no client: another user, or a socket that does not listen yet, so that its
// process was granted nothing. A connection waits in the slot for ever; a slot that has no room for more is a client's.
func foreign(name, slot string) bool {
	conn, err := net.DialUnix("unix", nil, address(name, slot))
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	defer conn.Close()
	return strange(conn) != nil
}

// taken returns the slots of all clients that live.
func taken(name string) (slots []string) {
	for n := range maxClients {
		if slot := strconv.Itoa(n); !free(name, slot) && !foreign(name, slot) {
			slots = append(slots, slot)
		}
	}
	return slots
}

// Listen takes the place of the process of a lease, which [Serve] then is. The error is a [HeldError] if another
// process has it.
func Listen(name string) (net.Listener, error) {
	l, held, err := bind(address(name, ""))
	if held {
		return nil, &HeldError{name}
	} else if err != nil {
		return nil, fmt.Errorf("listen for clients of the lease %s: %w", name, err)
	}
	return l, nil
}

// PeerOf is the process that listened at the other end of a connection, or connected to it.
func PeerOf(conn syscall.Conn) (peer *syscall.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	return peer, errors.Join(err, failed)
}

// strange is the error for the other end of a connection if that is a process of another user.
func strange(conn syscall.Conn) error {
	peer, err := PeerOf(conn)
	if err != nil {
		return err
	}
	if us := os.Geteuid(); int(peer.Uid) != us {
		return fmt.Errorf("user %d is at the other end of the lease of this device's memory, and this process is of "+
			"user %d: start all executors of a device as one user, or give each user's a --name of its own",
			peer.Uid, us)
	}
	return nil
}
