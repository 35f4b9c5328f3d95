package reduce

import (
	"errors"
	"syscall"
)

// acknowledged has a connection fail when what was sent on it is not acknowledged for some seconds: keep-alive sees
// that a host is gone only while nothing is on the way to it.
func acknowledged(_, _ string, c syscall.RawConn) error {
	const tcpUserTimeout, milliseconds = 18, 15_000 // tcp(7)
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, milliseconds)
	})
	return errors.Join(err, failed)
}
