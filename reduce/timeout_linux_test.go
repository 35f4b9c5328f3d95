package reduce

import (
	"net"
	"syscall"
	"testing"
)

// Both sides of a connection are told by the system when the other host is gone.
func TestHostsThatAreGone(t *testing.T) {
	lines, meetings := open(t, place(0, 2), place(1, 2))
	lines[1].Join(*meetings[0])
	checkReduces(t, lines)
	for name, c := range map[string]any{"who listens": lines[0].above, "who dials": lines[1].below} {
		raw, err := c.(connection).below.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) {
			for option, want := range map[int]int{18: 15_000, syscall.TCP_KEEPIDLE: 5, syscall.TCP_KEEPCNT: 4} {
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
